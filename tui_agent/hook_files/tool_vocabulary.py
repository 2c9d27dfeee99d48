"""Names and fields of tools as hook files know them, from ours and back, and the matchers of names."""

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.setting_files import FOREIGN_TOOL_NAMES

_FIELDS: dict[str, dict[str, str]] = {
    "read": {"path": "file_path"},
    "write": {"path": "file_path"},
    "edit": {"path": "file_path"},
    "grep": {"context": "-C", "ignore_case": "-i", "limit": "head_limit"},
    "agent": {"task": "prompt", "name": "subagent_type"},
    "bash_output": {"task_id": "bash_id"},
    "kill_bash": {"task_id": "shell_id"},
    "todo": {"items": "todos"},
}
"""Fields with other names."""
_PATHS = frozenset(("read", "write", "edit"))
_EXACT = re.compile(r"[A-Za-z0-9_|]+")
_MILLISECONDS = 1000

LONGEST_SUBJECT = 128
"""Most characters of a text that matchers are compared with."""
MAX_WAYS = LONGEST_SUBJECT**3
"""Most ways in which an accepted pattern may match a text from one place: those of three repeats in a row."""

_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<group>\(\??)|(?P<end>\))|(?P<or>\|)"
    r"|(?P<repeat>(?:[*+?]|\{(?P<least>\d*),?(?P<most>\d*)\})[?+]?)|.",
    re.DOTALL,
)
_COMMENTED = re.compile(r"\(\?(?:[a-zA-Z]*x|#)")
"""Begins a verbose pattern or a comment: comments may contain anything."""


def foreign_name(tool: str) -> str:
    """Return the name of a tool in hook files; tools of servers keep theirs."""
    return FOREIGN_TOOL_NAMES.get(tool, (tool,))[0]


def names_of_tool(tool: str) -> tuple[str, ...]:
    """Return all names by which a matcher can mean a tool."""
    return (*FOREIGN_TOOL_NAMES.get(tool, ()), tool)


def tool_of_name(name: str) -> str:
    """Return our tool of a name; an unknown one as it is."""
    return next((tool for tool, names in FOREIGN_TOOL_NAMES.items() if name in names), name)


def is_matched(matcher: str, *names: str) -> bool:
    """Return True if a matcher means one of these names.

    An empty one and `*` mean all. One of letters, digits, `_` and `|` is a list of exact names; any other is a regular
    expression that is searched for.
    """
    if matcher in ("", "*"):
        return True
    if _EXACT.fullmatch(matcher):
        return not set(matcher.split("|")).isdisjoint(names)
    return any(_is_found(matcher, name) for name in names)


@lru_cache(maxsize=4_096)
def _is_found(matcher: str, name: str) -> bool:
    # The bound of `is_costly` holds for names of this length.
    return re.search(matcher, name[:LONGEST_SUBJECT]) is not None


def foreign_input(tool: str, arguments: JsonObject, working_dir: Path) -> JsonObject:
    """Return a call's arguments under the field names of hook files, with absolute paths."""
    fields = _FIELDS.get(tool, {})
    return {fields.get(name, name): _foreign_value(tool, name, value, working_dir) for name, value in arguments.items()}


def own_input(tool: str, arguments: JsonObject, changed: JsonObject, working_dir: Path) -> JsonObject:
    """Return a call's arguments with the changes of a hook; fields that it leaves out or repeats stay as they are."""
    before = foreign_input(tool, arguments, working_dir)
    own_names = {theirs: ours for ours, theirs in _FIELDS.get(tool, {}).items()}
    result = dict(arguments)
    for name, value in changed.items():
        # A hook often returns the whole input: what it only repeats stays as the model wrote it.
        if name not in before or before[name] != value:
            own = own_names.get(name, name)
            result[own] = _own_value(tool, own, value)
    return result


def foreign_result(tool: str, arguments: JsonObject, text: str, working_dir: Path) -> JsonObject:
    """Return the result of a call that succeeded, for `tool_response`."""
    # Scripts read the fields that they know from there, whether they mean anything here or not.
    if tool == "bash":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    path = foreign_input(tool, arguments, working_dir).get("file_path")
    if tool in _PATHS and path is not None:
        return {"filePath": path, "success": True, "content": text}
    return {"success": True, "content": text}


def _foreign_value(tool: str, name: str, value: object, working_dir: Path) -> object:
    if tool in _PATHS and name == "path" and isinstance(value, str) and "\0" not in value:
        return os.path.normpath(os.path.join(working_dir, os.path.expanduser(value)))
    if tool == "bash" and name == "timeout" and isinstance(value, int | float):
        return int(value * _MILLISECONDS)
    if tool == "todo" and name == "items" and is_array(value):
        return [_foreign_todo(item) if is_object(item) else item for item in value]
    return value


def _own_value(tool: str, name: str, value: object) -> object:
    if tool == "bash" and name == "timeout" and isinstance(value, int | float):
        return value / _MILLISECONDS
    if tool == "todo" and name == "items" and is_array(value):
        return [_own_todo(item) if is_object(item) else item for item in value]
    return value


def _foreign_todo(item: JsonObject) -> JsonObject:
    text, status = item.get("text"), item.get("status")
    return {"content": text, "status": "completed" if status == "done" else status, "activeForm": text}


def _own_todo(item: JsonObject) -> JsonObject:
    status = item.get("status")
    return {"text": item.get("content"), "status": "done" if status == "completed" else status}


# --- the time that a matcher can take ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Group:
    """The alternatives of a group, read so far."""

    closed: int = 0
    """Ways of the alternatives before the present one."""
    atoms: list[int] = field(default_factory=list[int])
    """Ways of each part of the present one."""

    def ways(self) -> int:
        product = 1
        for ways in self.atoms:
            product = min(product * ways, MAX_WAYS + 1)
        return min(self.closed + product, MAX_WAYS + 1)


def is_costly(pattern: str) -> bool:
    """Return True if matching a valid pattern could take long, because it could match in very many ways.

    The count is an upper bound: parts in a row multiply, alternatives add up, and a repeat of what itself can match in
    several ways is always too much. An exact number of repeats counts like any other, because a group can match nothing
    many times.
    """
    groups = [_Group()]
    for token in _TOKEN.finditer(pattern):
        group = groups[-1]
        if token["group"]:
            groups.append(_Group())
        elif token["or"]:
            group.closed, group.atoms = group.ways(), []
        elif token["end"]:
            # A valid pattern has no such end, so it was misread here, and its count says nothing.
            if len(groups) == 1:
                return True
            groups.pop()
            groups[-1].atoms.append(group.ways())
        elif token["repeat"] and group.atoms:
            group.atoms[-1] = _repeated(group.atoms[-1], token)
        else:
            group.atoms.append(1)
    return len(groups) > 1 or groups[0].ways() > MAX_WAYS or _COMMENTED.search(pattern) is not None


def _repeated(ways: int, token: re.Match[str]) -> int:
    if token[0].startswith("?"):
        return ways + 1
    # Repeats of a repeat multiply with each letter, which is the case that never ends.
    if ways > 1 or max(int(token[name] or 0) for name in ("least", "most")) > LONGEST_SUBJECT:
        return MAX_WAYS + 1
    return LONGEST_SUBJECT
