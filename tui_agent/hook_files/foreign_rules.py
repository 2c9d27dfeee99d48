"""Permission rules of hook files, in our own language of rules. Only those that deny or ask are read."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.setting_files import RecordFormat, as_list

from .tool_vocabulary import tool_of_name

MAX_RULES = 1_000
"""Most rules of one file."""

_PERMISSIONS = RecordFormat(
    used=frozenset(("deny", "ask")), harmless=frozenset(("allow", "additionalDirectories")), guards=True
)
_VERDICTS: tuple[Literal["deny", "ask"], ...] = ("deny", "ask")
_LENIENT_MODES = ("default", "acceptEdits", "bypassPermissions", "auto")
"""Modes to begin with that restrict nothing."""
_RULE = re.compile(r"\s*([\w*][\w.*-]*)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_PATH_TOOLS = frozenset(("read", "write", "edit", "glob", "grep"))
RULE_TOOLS = frozenset(("bash", "fetch", "web_search", "agent", "todo", "bash_output", "kill_bash", "*")) | _PATH_TOOLS
"""Our tools that rules of this format can name, beside those of servers."""
_DOMAIN = re.compile(r"domain:[^\s/:]+")
_SPECIAL = re.compile(r"[*?\[\]\\]")


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """A rule in our language."""

    verdict: Literal["deny", "ask"]
    text: str
    origin: str
    """The file, with the rule as written."""


def read_permissions(
    values: JsonObject, path: str, project_dir: Path, line_of: Callable[[object], int | None]
) -> tuple[list[ForeignRule], list[str]]:
    """Return the rules of a settings file that deny or ask, and a message about each part that is not used."""

    def at(value: object) -> str:
        line = line_of(value)
        return path if line is None else f"{path}:{line}"

    permissions = values.get("permissions", {})
    if not is_object(permissions):
        return [], [f"{at('permissions')}: permissions is not an object, so no rule of it is used"]
    rules: list[ForeignRule] = []
    problems: list[str] = []
    for verdict, text in _entries(permissions):
        own = own_rule(text, project_dir) if isinstance(text, str) else None
        if len(rules) == MAX_RULES:
            problems.append(f"{path}: more than {MAX_RULES} rules; the rest is not used")
            break
        if own is None:
            named = f"the {verdict} rule {str(text)[:100]!r}"
            problems.append(f"{at(text)}: {named} has no counterpart here and is not used")
        else:
            rules.append(ForeignRule(verdict, own, f"{path}: {text}"))
    unused = _PERMISSIONS.changing(permissions)
    if permissions.get("defaultMode") in _LENIENT_MODES:
        unused = tuple(name for name in unused if name != "defaultMode")
    if unused:
        problems.append(f"{at(unused[0])}: {as_list(unused)} of permissions is not supported and not used")
    return rules, problems


def _entries(permissions: JsonObject) -> Iterator[tuple[Literal["deny", "ask"], object]]:
    """Yield the rules that deny, then those that ask."""
    for verdict in _VERDICTS:
        texts = permissions.get(verdict)
        if is_array(texts):
            for text in texts:
                yield verdict, text
        elif texts is not None:
            yield verdict, texts


def own_rule(text: str, project_dir: Path) -> str | None:
    """Return a rule such as `Bash(git push:*)` in our language; None if it has no counterpart."""
    match = _RULE.match(text)
    if match is None:
        return None
    tool, pattern = tool_of_name(match[1]), match[2]
    tool = {"LS": "glob", "notebook_edit": "edit"}.get(tool, tool)
    if tool.startswith("mcp__"):
        tool = f"{tool}__*" if tool.count("__") == 1 else tool
    elif tool not in RULE_TOOLS:
        return None
    if pattern is None or pattern.strip() in ("*", "**"):
        return tool
    if not pattern.strip() or "\0" in pattern:
        return None
    if tool == "bash":
        return f"{tool}({pattern})"
    if tool == "fetch":
        return f"{tool}({pattern.strip()})" if _DOMAIN.fullmatch(pattern.strip()) else None
    if tool not in _PATH_TOOLS:
        return None
    return None if (path := _own_path(pattern.strip(), project_dir)) is None else f"{tool}({path})"


def _own_path(pattern: str, project_dir: Path) -> str | None:
    if pattern.startswith(("//", "~/")):
        return pattern
    if pattern.startswith("/"):
        return None if _SPECIAL.search(str(project_dir)) else f"/{project_dir}{pattern}"
    return pattern.removeprefix("./") or None
