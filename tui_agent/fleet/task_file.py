"""The tasks of a fleet, from TOML or from JSON lines.

Every value at the top level of a TOML file applies to all its tasks, unless a task has its own. A file with a mistake
starts nothing.
"""

import difflib
import json
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import UnitPermissions, UnitTask
from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.setting_files import parse_toml

MOST_UNITS = 100_000
_SHORTEST_TOKEN = 20
"""Characters of the user's name in a URL from which on it is taken for a token."""
_TASK_HEADER = re.compile(r"^\s*\[\[\s*task\s*\]\]")


class TaskMistakesError(ConfigurationError):
    """Tasks have mistakes; nothing was started."""

    def __init__(self, mistakes: Sequence[str]) -> None:
        self.mistakes = tuple(dict.fromkeys(mistakes))
        super().__init__("the tasks have mistakes; nothing was started:\n  " + "\n  ".join(self.mistakes))


class _Permissions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Literal["ask", "deny", "plan", "accept_edits"] = "accept_edits"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class _Task(BaseModel):
    """A task as it is written; every other key is a field of the prompt."""

    model_config = ConfigDict(frozen=True, extra="allow")

    prompt: str = Field(pattern=r"\S")
    repo: str = Field(min_length=1)
    ref: str = Field(default="HEAD", min_length=1)
    n: int = Field(default=1, ge=1, le=100)
    verify: str = ""
    model: str = ""
    budget: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    permissions: _Permissions = _Permissions()
    timeout: float | None = Field(default=None, gt=0, allow_inf_nan=False)


def read_toml_tasks(content: bytes, directory: Path) -> tuple[UnitTask, ...]:
    """Return the units of a TOML file, from whose directory relative paths of repositories begin.

    Raises:
        ConfigurationError: it has mistakes; each is named with its line and field.
    """
    try:
        values = parse_toml(content)
    except ValueError as error:
        raise ConfigurationError(f"{error}; nothing was started") from error
    tasks = values.pop("task", None)
    if not is_array(tasks) or not tasks or not all(is_object(task) for task in tasks):
        raise ConfigurationError("no [[task]]: each task needs one, with at least `repo`")
    text = content.decode("utf-8-sig")
    headers = [number for number, line in enumerate(text.split("\n"), 1) if _TASK_HEADER.match(line)]
    # Tasks may also be written as an inline array, which has no header to name.
    places = headers if len(headers) == len(tasks) else [1] * len(tasks)
    lines = text.split("\n")

    def line_of(index: int, field: str) -> int:
        end = places[index + 1] - 1 if index + 1 < len(places) else len(lines)
        named = re.compile(rf'^\s*"?{re.escape(field)}"?\s*[.=]|^\s*\[task\.{re.escape(field)}')
        inside = (number for number in range(places[index], end + 1) if named.match(lines[number - 1]))
        above = (number for number in range(1, places[0] + 1) if named.match(lines[number - 1]))
        return next(inside, 0) or next(above, 0) or places[index]

    found = [({**values, **task}, index) for index, task in enumerate(tasks) if is_object(task)]
    return _units(found, directory, line_of)


def read_line_tasks(content: bytes, directory: Path) -> tuple[UnitTask, ...]:
    """Return the units of JSON lines, one task a line.

    Raises:
        ConfigurationError: there are mistakes; each is named with its line and field.
    """
    found: list[tuple[JsonObject, int]] = []
    mistakes: list[str] = []
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record: object = json.loads(line.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as error:
            mistakes.append(f"line {number}: no JSON ({error})")
            continue
        if is_object(record):
            found.append((record, number))
        else:
            mistakes.append(f"line {number}: not an object")
    if mistakes:
        raise TaskMistakesError(mistakes)
    if not found:
        raise ConfigurationError("no task: each line is one, with at least `prompt` and `repo`")
    return _units(found, directory, lambda number, _: number)


def _units(
    found: Iterable[tuple[JsonObject, int]], directory: Path, line_of: Callable[[int, str], int]
) -> tuple[UnitTask, ...]:
    units: list[UnitTask] = []
    mistakes: list[str] = []
    for count, (values, place) in enumerate(found, 1):
        try:
            task = _Task.model_validate(values)
            units += _attempts(task, str(count), directory)
        except ValidationError as error:
            for fault in error.errors(include_url=False, include_input=False):
                field = ".".join(str(part) for part in fault["loc"])
                line = line_of(place, str(fault["loc"][0]))
                mistakes.append(f"line {line}: {field}: {_in_words(fault)}")
        except _FieldError as error:
            mistakes.append(f"line {line_of(place, error.field)}: {error.field}: {error}")
    if mistakes:
        raise TaskMistakesError(mistakes)
    if len(units) > MOST_UNITS:
        raise ConfigurationError(f"{len(units):,} units are more than {MOST_UNITS:,}")
    return tuple(units)


def _in_words(fault: Mapping[str, Any]) -> str:
    match fault["type"]:
        case "missing":
            return "is missing"
        case "model_type":
            return f"must be a table of {', '.join(_Permissions.model_fields)}"
        case "extra_forbidden":
            near = difflib.get_close_matches(str(fault["loc"][-1]), _Permissions.model_fields, 1)
            return "unknown" + (f"; did you mean {near[0]}?" if near else "")
        case _:
            return str(fault["msg"]).removeprefix("Value error, ").replace("Input should", "must")


class _FieldError(ValueError):
    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


def _attempts(task: _Task, number: str, directory: Path) -> list[UnitTask]:
    """Return the units of a task, one for each attempt."""
    fields = {name: _field(name, value) for name, value in (task.model_extra or {}).items()}
    known = {"repo": task.repo, "ref": task.ref, **fields}
    prompt = _filled("prompt", task.prompt, known)
    _check_names(task, fields)
    repo = _repository(task.repo, directory)
    rights = UnitPermissions.model_validate(
        {**task.permissions.model_dump(), "mode": PermissionMode(task.permissions.mode)}
    )
    return [
        UnitTask(
            id=number if task.n == 1 else f"{number}.{attempt}",
            task=number,
            attempt=attempt,
            prompt=prompt,
            repo=repo,
            ref=_reference(task.ref),
            fields=fields,
            verify=task.verify,
            model=task.model,
            budget=task.budget,
            permissions=rights,
            timeout=task.timeout,
        )
        for attempt in range(1, task.n + 1)
    ]


def _check_names(task: _Task, fields: Mapping[str, str]) -> None:
    """Refuse a field that seems to be a misspelled key or has one brace too many, and fields in a command."""
    for name in fields:
        # Every unknown key is a field of the prompt, so that a misspelled one would be dropped without a word.
        near = difflib.get_close_matches(name, _Task.model_fields, 1, 0.82)
        if near and f"{{{name}}}" not in task.prompt:
            raise _FieldError(name, f"unknown, and the prompt does not use it; did you mean {near[0]}?")
        if f"{{{{{name}}}}}" in task.prompt and not re.search(rf"(?<!\{{)\{{{name}\}}", task.prompt):
            raise _FieldError("prompt", f"{{{{{name}}}}} is text in braces, not the field; write {{{name}}}")
    for name in ("repo", "ref", *fields):
        if re.search(rf"(?<!\$)\{{{name}\}}", task.verify):
            raise _FieldError("verify", f"{{{name}}} is filled in only in prompts; write its value")


def _field(name: str, value: object) -> str:
    if not name.isidentifier():
        raise _FieldError(name, "a field of the prompt is named like a variable")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _FieldError(name, "unknown, or a field of the prompt, which must be a text or a number")
    return str(value)


def _filled(field: str, text: str, values: Mapping[str, str]) -> str:
    """Return a text with its `{name}` fields filled in; `{{` and `}}` are braces."""
    parts: list[str] = []
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise _FieldError(field, f"{error}; write {{{{ and }}}} for braces") from None
    for literal, name, form, conversion in pieces:
        parts.append(literal)
        if name is None:
            continue
        if name not in values or form or conversion:
            raise _FieldError(field, f"no field {{{name}}}; write {{{{ and }}}} for braces")
        parts.append(values[name])
    return "".join(parts)


def _repository(repo: str, directory: Path) -> str:
    """Return the absolute path, or the URL, of a repository."""
    # Git would read the dash as that of an option.
    if "\0" in repo or "\n" in repo or repo.startswith("-"):
        raise _FieldError("repo", "not a path or URL")
    if "://" in repo:
        try:
            parts = urlsplit(repo)
        except ValueError:
            raise _FieldError("repo", "not a URL") from None
        # The URL is stored in `OUT`, and the workers show it in their process lists.
        if parts.password is not None or len(parts.username or "") >= _SHORTEST_TOKEN:
            raise _FieldError(
                "repo", "a URL with a password or a token; use a credential helper of git on the workers instead"
            )
        return repo
    if re.match(r"[^/:]+:", repo):
        return repo
    return str((directory / Path(repo).expanduser()).resolve())


def _reference(ref: str) -> str:
    if ref.startswith("-") or any(not one.isprintable() or one in " ~^:?*[\\" for one in ref):
        raise _FieldError("ref", "not the name of a branch or tag, or a hash")
    return ref
