"""Finds and reads the files of definitions: the user's own, and those from the repository root to a directory.

Files of a project that link out of the repository, and files of a skill that link out of its folder, are not used. The
user's own folders may be links to anywhere. Nothing raises: a file that cannot be used becomes a `Problem`.
"""

import codecs
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import read_regular_file, repository_root, target_outside
from tui_agent.protocol.setting_files import LENIENT_MODES, RecordFormat, as_list
from tui_agent.protocol.visible_text import escaped

from .definition_text import Document, FrontMatterError, bare, parse_document, unknown_placeholders
from .records import AgentFile, CommandFile, Found, Kind, Origin, Problem, Skill, Source, shortened

MAX_FILE = 256 * 1024
"""Most bytes of one file."""
MAX_FILES = 500
"""Most files of one kind in one folder."""
MAX_DEPTH = 5
"""Levels of folders below `commands` and `agents`."""
MAX_DESCRIPTION = 1_024
"""Most characters of a description."""
MAX_HINT = 100

_ABOUT = frozenset(
    ("version", "author", "license", "compatibility", "metadata", "tags", "category", "keywords", "homepage", "color")
)
"""Fields that only describe a file."""
_PROMPT = frozenset(("description", "argument-hint", "arguments", "model", "user-invocable", "disallowed-tools"))
_FORMATS: dict[Kind, RecordFormat] = {
    "skill": RecordFormat(
        _PROMPT | {"name", "when_to_use", "disable-model-invocation", "paths"},
        _ABOUT | {"allowed-tools"},
        frozenset(("hooks", "shell")),
    ),
    "command": RecordFormat(
        _PROMPT | {"allowed-tools"}, _ABOUT | {"name", "disable-model-invocation"}, frozenset(("hooks", "shell"))
    ),
    "agent": RecordFormat(
        frozenset(("name", "description", "tools", "disallowedTools", "model", "maxTurns")),
        _ABOUT,
        frozenset(("hooks", "permissionMode", "permission", "permissions", "isolation")),
    ),
}
_NAME = re.compile(r"(?=.{1,64}\Z)[A-Za-z0-9][\w.-]*", re.ASCII)
_SKILL_FILE = "SKILL.md"
_File: TypeAlias = tuple[Path, str]
"""Path and name of a file."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with folders of definitions."""

    path: Path
    origin: Origin
    kinds: tuple[Kind, ...] = ("skill", "command", "agent")


def user_places(config_dir: Path, home: Path) -> tuple[Place, ...]:
    """Return the user's own folders, in order of preference."""
    others = (Place(home / ".claude", "user"), Place(home / ".agents", "user", ("skill",)))
    return (Place(config_dir, "user"), *others)


def project_places(working_dir: Path) -> tuple[Place, ...]:
    """Return the folders from `working_dir` up to the root of its repository, the nearest first. Blocks."""
    here = Path(os.path.realpath(working_dir))
    root = repository_root(here)
    return tuple(
        place
        for folder in (here, *here.parents)
        if folder.is_relative_to(root)
        for place in (
            Place(folder / ".tui-agent", "project"),
            Place(folder / ".claude", "project"),
            Place(folder / ".agents", "project", ("skill",)),
        )
    )


def read_definitions(places: Iterable[Place]) -> tuple[Found, ...]:
    """Read all files of some folders, in order of preference; each file once. Blocks; never raises."""
    seen: set[str] = set()
    found: list[Found] = []
    for place in places:
        for kind, path, name in _files(place, found):
            # `.claude/skills` is often a link to `.agents/skills`.
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                found.append(_read(place, kind, path, name))
    return tuple(found)


def skill_files(skill: Skill, limit: int = 200) -> tuple[str, ...]:
    """Return the paths of a skill's other files, at most `limit`, relative to its folder. Blocks.

    Hidden folders and links that lead out of the skill's folder are left out; control characters are escapes.
    """
    root = os.path.realpath(skill.folder)
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            is_inside = os.path.realpath(path).startswith(root + os.sep)
            if is_inside and os.path.isfile(path) and (shown := os.path.relpath(path, root)) != _SKILL_FILE:
                found.append(escaped(shown).replace("\n", "\\n"))
        if len(found) >= limit:
            break
    return tuple(found[:limit])


def _files(place: Place, problems: list[Found]) -> Iterator[tuple[Kind, Path, str]]:
    """Yield kind, path and name of each file of a folder."""
    for kind in place.kinds:
        folder = place.path / f"{kind}s"
        files = _skill_files(folder, place, problems) if kind == "skill" else _markdown_files(folder, MAX_DEPTH)
        for count, (path, name) in enumerate(files, 1):
            if count > MAX_FILES:
                reason = f"only the first {MAX_FILES} files are used"
                problems.append(Problem(kind, _shown(folder, place), reason))
                break
            yield kind, path, name


def _skill_files(folder: Path, place: Place, problems: list[Found], depth: int = MAX_DEPTH) -> Iterator[_File]:
    """Yield the skills of a folder and of the folders in it that only group them."""
    for name in _names(folder):
        path = folder / name
        if not path.is_dir():
            if reason := _stray(path):
                problems.append(Problem("skill", _shown(path, place), reason))
            continue
        names = _names(path)
        files = [file for file in names if file.lower() == _SKILL_FILE.lower()]
        if files:
            yield path / files[0], name
            continue
        # A folder that is a link could lead back to itself.
        inner = () if depth == 1 or path.is_symlink() else tuple(_skill_files(path, place, [], depth - 1))
        if names and not inner:
            problems.append(Problem("skill", _shown(path, place), f"it has no {_SKILL_FILE}"))
        yield from inner


def _stray(path: Path) -> str:
    """Return why a file among the folders of skills is not one; empty for a file that means something else."""
    if path.is_symlink() and not path.exists():
        return "the link leads nowhere"
    is_skill = path.suffix == ".md" and path.name.lower() != "readme.md"
    return f"a skill is a folder with {_SKILL_FILE}; move it to {path.stem}/{_SKILL_FILE}" if is_skill else ""


def _markdown_files(folder: Path, depth: int, prefix: str = "") -> Iterator[_File]:
    names = _names(folder)
    for name in names:
        if name.endswith(".md"):
            yield folder / name, prefix + name.removesuffix(".md")
    for name in names if depth > 1 else ():
        # A folder that is a link could lead back to itself.
        if not name.endswith(".md") and (folder / name).is_dir() and not (folder / name).is_symlink():
            yield from _markdown_files(folder / name, depth - 1, f"{prefix}{name}:")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return []


def _read(place: Place, kind: Kind, path: Path, name: str) -> Found:
    shown, content = _shown(path, place), b""
    try:
        content = read_regular_file(str(path), MAX_FILE)
        # Checked after reading, so that a link created meanwhile is noticed.
        if outside := _target_outside(place, kind, path):
            return Problem(kind, shown, outside, is_link=True)
        source = Source(path, place.origin, shown, hashlib.sha256(content).hexdigest())
        return _definition(kind, name, content, source)
    except FrontMatterError as error:
        return Problem(kind, shown, str(error), error.line or 1)
    except UnicodeDecodeError as error:
        return Problem(kind, shown, "it is not UTF-8 text", content.count(b"\n", 0, error.start) + 1)
    except OSError as error:
        return Problem(kind, shown, f"it cannot be read: {escaped(error.strerror or str(error))}")


def _definition(kind: Kind, name: str, content: bytes, source: Source) -> Found:
    is_utf_16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = content.decode("utf-16" if is_utf_16 else "utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    # Before it is taken apart, so that no field can have a hidden character.
    document = parse_document(escaped(text))
    document = replace(document, fields=_with_usual_names(kind, document.fields))
    # Templates of such files have empty fields, which mean the same as missing ones.
    fields = {key: value for key, value in document.fields.items() if value not in ("", "null", "~", "false")}
    _expect_supported(kind, fields, document)
    named, notes = _noted(kind, name, fields, document)
    source = replace(source, notes=tuple(f"{source.shown}:{line}: {note}" for line, note in notes))
    description, model = document.text("description"), document.text("model")
    description, model = shortened(description, MAX_DESCRIPTION), "" if model == "inherit" else model
    if kind == "agent":
        return _agent(named or name.rpartition(":")[2], description, model, document, source)
    body, hint = _with_numbers(document), shortened(document.text("argument-hint"), MAX_HINT)
    first = shortened(document.body.partition("\n\n")[0].lstrip("#"), MAX_DESCRIPTION)
    forbidden = tuple(f"!{tool}" for tool in document.tools("disallowed-tools") or ())
    for_user = document.flag("user-invocable", default=True)
    if kind == "command":
        if not all(_NAME.fullmatch(part) for part in name.split(":")):
            raise FrontMatterError("a command's name has letters, digits, `.`, `_` and `-`, at most 64 each part")
        if not for_user:
            raise FrontMatterError("`user-invocable` is false, and the model runs no commands here")
        description = description or shortened(first)
        tools = _tools(document, "allowed-tools", "disallowed-tools")
        return CommandFile(name, description, body, source, hint, tools, model)
    name = named or _slug(name)
    if not name or not document.body:
        raise FrontMatterError("the text of the skill is missing" if name else "the folder has no name for a skill")
    # What the model loads during a run cannot restrict that run.
    for_model = not document.flag("disable-model-invocation", default=False) and not forbidden
    paths = f"For files such as {found.strip('[]')}." if (found := document.text("paths")) else ""
    description = " ".join(filter(None, (description or first, document.text("when_to_use"), paths)))
    description = shortened(description, MAX_DESCRIPTION)
    return Skill(name, description, body, source, hint, forbidden or None, model, for_model, for_user)


def _noted(kind: Kind, name: str, fields: JsonObject, document: Document) -> tuple[str, list[tuple[int, str]]]:
    """Return the name that a file gives itself, empty if it gives none, and lines with what has no effect there."""
    notes = [(document.line(key), f"{as_list((key,))} has no effect here") for key in _FORMATS[kind].ignored(fields)]
    if (length := len(document.text("description"))) > MAX_DESCRIPTION:
        text = f"`description` has {length:,} characters and is cut after {MAX_DESCRIPTION:,}"
        notes.append((document.line("description"), text))
    written = document.text("name") if kind != "command" else ""
    if (named := _slug(written)) != written:
        notes.append((document.line("name"), f"`name` is {written}; it is {named or name} here"))
    elif kind == "skill" and written and written != name:
        notes.append((document.line("name"), f"`name` is {written}, but the folder is {name}; both load it"))
    unknown = unknown_placeholders(document.body)
    return named, [*notes, *((document.body_line(place), f"${{{place}}} has no value here") for place in unknown)]


def _with_usual_names(kind: Kind, fields: dict[str, object]) -> dict[str, object]:
    """Return fields by the names that they have here: other programs write them with other signs and letters."""
    names = _FORMATS[kind]
    usual = {bare(name): name for name in (*names.harmless, *names.used, *names.needed)}
    return {key if (name := usual.get(bare(key), key)) in fields else name: value for key, value in fields.items()}


def _agent(name: str, description: str, model: str, document: Document, source: Source) -> AgentFile:
    if not _NAME.fullmatch(name):
        raise FrontMatterError("a sub-agent's `name` has 1 to 64 letters, digits, `.`, `_` and `-`")
    if not description:
        raise FrontMatterError("`description` is missing: the model chooses sub-agents by it")
    if not document.body:
        raise FrontMatterError("the text below the front matter is missing: it is the sub-agent's prompt")
    steps = document.text("maxTurns")
    if steps and not (steps.isdecimal() and int(steps)):
        raise FrontMatterError("`maxTurns` must be a number of steps", document.line("maxTurns"))
    tools = _tools(document, "tools", "disallowedTools")
    max_steps = int(steps) if steps else None
    return AgentFile(name, description, document.body, source, tools=tools, model=model, max_steps=max_steps)


def _tools(document: Document, allowed: str, forbidden: str) -> tuple[str, ...] | None:
    """Return patterns for the only tools: those of one field without those of another; an empty list allows none."""
    names, others = document.tools(allowed), document.tools(forbidden) or ()
    if names == () or (names is None and not others):
        return names
    return (*(names or ()), *(f"!{tool}" for tool in others))


def _expect_supported(kind: Kind, fields: JsonObject, document: Document) -> None:
    changing = _FORMATS[kind].changing(fields)
    if fields.get("shell") == "bash" or fields.get("permissionMode") in LENIENT_MODES:
        changing = tuple(key for key in changing if key not in ("shell", "permissionMode"))
    if changing:
        line = min(document.line(key) for key in changing)
        raise FrontMatterError(f"{as_list(changing)} is not supported and changes what it may do", line)


def _slug(name: str) -> str:
    """Return a name in the characters that names have here; empty if nothing is left."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-_.")[:64]


def _with_numbers(document: Document) -> str:
    """Return the text with `$1` … `$9` for the names that the field `arguments` gives to arguments."""
    names = re.findall(r"[A-Za-z_]\w*", document.text("arguments"))
    numbers = {name: str(place) for place, name in enumerate(names[:9], 1)}
    pattern = re.compile(rf"\$({'|'.join(numbers)})(?!\w)")
    return pattern.sub(lambda match: f"${numbers[match[1]]}", document.body) if numbers else document.body


def _target_outside(place: Place, kind: Kind, path: Path) -> str:
    """Return why the target of a link is not used; empty if it is."""
    if place.origin == "project" and (target := target_outside(path, place.path.parent)) is not None:
        return f"a link to {escaped(str(target))}, outside this repository"
    real = Path(os.path.realpath(path))
    if kind == "skill" and not real.is_relative_to(os.path.realpath(path.parent)):
        return f"a link to {escaped(str(real))}, outside the skill's folder"
    return ""


def _shown(path: Path, place: Place) -> str:
    """Return a path for messages."""
    base = repository_root(place.path.parent) if place.origin == "project" else Path.home()
    inside = path.is_relative_to(base)
    text = os.path.relpath(path, base) if inside else str(path)
    return escaped(f"~/{text}" if inside and place.origin == "user" else text).replace("\n", "\\n")
