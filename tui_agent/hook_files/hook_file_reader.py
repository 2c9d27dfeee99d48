"""Reads hook files. Nothing raises: whatever cannot be used becomes a problem with file and line."""

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeGuard

from tui_agent.protocol.messages import JsonObject, is_array, is_object
from tui_agent.protocol.programs import script_reader, script_reader_of_line
from tui_agent.protocol.setting_files import LENIENT_MODES, RecordFormat, as_list

from .foreign_hooks import (
    ABOUT_CALLS,
    DEFAULT_TIMEOUT,
    MAX_TIMEOUT,
    FileHook,
    FileHookEvent,
    ForeignRule,
    HookFile,
    Origin,
    as_event,
)
from .tool_vocabulary import is_costly, tool_of_name

MAX_HOOKS = 200
"""Most hooks of one file."""

_GUARDS = ("PreToolUse", "PermissionRequest")
"""Events whose hooks decide about calls."""
MAX_PROBLEMS = 200
"""Most problems of one file that are named."""

HOOK = RecordFormat(
    used=frozenset(("type", "command", "args", "timeout", "fail_open", "shell", "if", "async")),
    harmless=frozenset(("statusMessage", "description", "name")),
    guards=True,
)
GROUP = RecordFormat(used=frozenset(("matcher", "hooks")), harmless=frozenset(("description", "name")), guards=True)

_READ = frozenset(("hooks", "permissions", "disableAllHooks", "$schema"))
"""Settings of such a file that are read."""
_NO_ARGUMENT = re.compile("[\\0\\ud800-\\udfff]")
"""Characters that no argument of a program can have: NUL, and half a character."""
_COMMAND = re.compile(r'"command"\s*:\s*("(?:[^"\\]|\\.)*")')

MAX_RULES = 1_000
"""Most rules of one file."""

_PERMISSIONS = RecordFormat(
    used=frozenset(("deny", "ask")), harmless=frozenset(("allow", "additionalDirectories")), guards=True
)
_VERDICTS: tuple[Literal["deny", "ask"], ...] = ("deny", "ask")
_RULE = re.compile(r"\s*([\w*][\w.*-]*)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_PATH_TOOLS = frozenset(("read", "write", "edit", "glob", "grep"))
RULE_TOOLS = frozenset(("bash", "fetch", "web_search", "agent", "todo", "bash_output", "kill_bash", "*")) | _PATH_TOOLS
"""Our tools that rules of this format can name, beside those of servers."""
_DOMAIN = re.compile(r"domain:[^\s/:]+")
_SPECIAL = re.compile(r"[*?\[\]\\]")


def parse_hook_file(content: bytes, path: str, origin: Origin, project_dir: Path) -> HookFile:
    """Return the hooks of a settings file, and its permission rules that deny or ask.

    Args:
        path: the file, as messages name it.
        project_dir: value of `$CLAUDE_PROJECT_DIR`; rules that begin with `/` are relative to it.
    """
    try:
        # Some editors begin a file with a byte order mark.
        text = content.decode("utf-8-sig")
        values: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        return HookFile(path, problems=(f"{path}: not valid JSON: {reason}",), is_broken=True)
    if not is_object(values):
        return HookFile(path, problems=(f"{path}: not a JSON object",), is_broken=True)
    reader = _Reader(text, path, origin, project_dir)
    hooks = tuple(reader.hooks(values.get("hooks", {})))
    rules, rule_problems = read_permissions(values, path, project_dir, reader.line_of)
    return HookFile(
        path,
        hooks,
        tuple(reader.problems),
        disables_all=values.get("disableAllHooks") is True,
        rules=tuple(rules),
        rule_problems=tuple(rule_problems),
        unused_guards=tuple(reader.unused_guards),
        unread=tuple(_unread(values, path, reader)),
    )


def _unread(values: JsonObject, path: str, reader: "_Reader") -> Iterator[str]:
    others = tuple(name for name in values if name not in _READ)
    if others:
        line = reader.line_of(others[0])
        place = path if line is None else f"{path}:{line}"
        yield f"{place}: only hooks and permissions are read of this file, not {as_list(others)}"


class _Reader:
    """Collects the hooks and the problems of one file."""

    def __init__(self, text: str, path: str, origin: Origin, project_dir: Path) -> None:
        self.problems: list[str] = []
        self.unused_guards: list[str] = []
        self._path = path
        self._origin: Origin = origin
        self._project_dir = project_dir
        self._text = text
        self._lines = {command: deque(lines) for command, lines in _lines_of_commands(text).items()}

    def line_of(self, value: object) -> int | None:
        """Return the first line with a text or number; None if it is written in another way."""
        start = self._text.find(json.dumps(value, ensure_ascii=False))
        return None if start < 0 else self._text.count("\n", 0, start) + 1

    def hooks(self, table: object) -> Iterator[FileHook]:
        """Yield the hooks in the order of the file."""
        if not is_object(table):
            self._note("hooks is not an object", self.line_of("hooks"))
            return
        left = MAX_HOOKS
        for name, groups in table.items():
            event = as_event(name)
            for matcher, entry in self._entries(name, groups):
                hook = self._hook(event, name, matcher, entry)
                if hook is not None and left == 0:
                    self._note(f"more than {MAX_HOOKS} hooks; the rest is not used")
                    return
                if hook is not None:
                    left -= 1
                    yield hook

    def _entries(self, event: str, groups: object) -> Iterator[tuple[str, JsonObject]]:
        """Yield the matcher and the table of each hook of an event."""
        line = self.line_of(event)
        if not is_array(groups):
            self._note(f"hooks.{event} is not a list", line)
            return
        for group in groups:
            entries: object = group.get("hooks") if is_object(group) else None
            matcher: object = group.get("matcher", "") if is_object(group) else ""
            if not is_array(entries) or not isinstance(matcher, str | None):
                self._note(f"hooks.{event}: an entry is not of the form {{matcher, hooks: […]}}", line)
                continue
            unused = GROUP.changing(group) if is_object(group) else ()
            if unused:
                self._note(
                    f"hooks.{event}: {as_list(unused)} is not supported beside matcher and hooks",
                    self.line_of(unused[0]),
                )
                continue
            for entry in entries:
                if is_object(entry):
                    yield matcher or "", entry
                else:
                    self._note(f"hooks.{event}: a hook is not an object", line)

    def _hook(self, event: FileHookEvent | None, name: str, matcher: str, entry: JsonObject) -> FileHook | None:
        command, kind, timeout = entry.get("command"), entry.get("type"), entry.get("timeout", DEFAULT_TIMEOUT)
        args, fail_open, condition = entry.get("args"), entry.get("fail_open", False), entry.get("if")
        runs_beside = entry.get("async", False)
        rule = own_rule(condition, self._project_dir) if isinstance(condition, str) else None
        line = self._line(command) or self.line_of(name)
        if event is None:
            self._note(f"the event {name} is not known here", line)
        elif kind != "command":
            self._note(f"{name}: only hooks of the type command run here, not {json.dumps(kind)[:60]}", line)
        elif not isinstance(command, str) or not command.strip() or _NO_ARGUMENT.search(command):
            self._note(f"{name}: a hook without a command", line)
        elif args is not None and not _is_text_list(args):
            self._note(f"{name}: args is not a list of texts", line)
        elif entry.get("shell", "bash") not in (None, "bash"):
            self._note(f"{name}: only bash is supported as its shell", line)
        elif not isinstance(fail_open, bool) or not isinstance(runs_beside, bool):
            self._note(f"{name}: fail_open or async is neither true nor false", line)
        elif condition is not None and (rule is None or event not in ABOUT_CALLS):
            self._note(f"{name}: its `if` is not a rule for calls such as Bash(git *)", line)
        # It may be what limits the hook, which therefore does not run without it.
        elif unused := HOOK.changing(entry):
            self._note(f"{name}: {as_list(unused)} is not supported and may change what the hook does", line)
        # The input contains words of the model, which would then run as a program.
        elif (
            reader := script_reader_of_line(command) if args is None else script_reader((command, *args))
        ) is not None:
            self._note(f"{name}: {reader} would run its input as a script; name the script that it is to run", line)
        elif not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < math.inf:
            self._note(f"{name}: timeout is not a number of seconds", line)
        elif (problem := _regex_problem(matcher)) is not None:
            self._note(f"{name}: the matcher {matcher!r} {problem}", line)
        else:
            source = self._path if line is None else f"{self._path}:{line}"
            limit = float(min(timeout, MAX_TIMEOUT))
            words = None if args is None else tuple(args)
            return FileHook(
                event,
                matcher,
                command,
                limit,
                source,
                self._origin,
                self._project_dir,
                words,
                fail_open=fail_open,
                rule=rule or "",
                runs_beside=runs_beside,
            )
        return None

    def _line(self, command: object) -> int | None:
        """Return the line of a command; the same command in several places has its lines in order."""
        lines = self._lines.get(command) if isinstance(command, str) else None
        # A message names the right one of several equal commands.
        return (lines.popleft() if len(lines) > 1 else lines[0]) if lines else None

    def _note(self, problem: str, line: int | None = None) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            text = f"{self._path}{'' if line is None else f':{line}'}: {problem}"
            self.problems.append(text)
            if any(event in problem for event in _GUARDS):
                self.unused_guards.append(text)


def _is_text_list(value: object) -> TypeGuard[list[str]]:
    return is_array(value) and all(isinstance(item, str) and not _NO_ARGUMENT.search(item) for item in value)


def _lines_of_commands(text: str) -> dict[str, list[int]]:
    lines: dict[str, list[int]] = {}
    line, seen = 1, 0
    for match in _COMMAND.finditer(text):
        line, seen = line + text.count("\n", seen, match.start(1)), match.start(1)
        try:
            command: object = json.loads(match[1])
        except ValueError:
            continue
        lines.setdefault(str(command), []).append(line)
    return lines


def _regex_problem(matcher: str) -> str | None:
    try:
        re.compile(matcher if matcher != "*" else "")
    except (re.error, RecursionError, OverflowError, ValueError) as error:
        return f"is not a regular expression: {error}"
    return "could take too long: repeat fewer parts, and no group" if is_costly(matcher) else None


# --- permission rules -------------------------------------------------------------------------------------------------


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
    # A mode that asks less restricts nothing that the user would miss.
    if permissions.get("defaultMode") in LENIENT_MODES:
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
        # In a rule, a folder with such signs in its name would mean others, too.
        return None if _SPECIAL.search(str(project_dir)) else f"/{project_dir}{pattern}"
    return pattern.removeprefix("./") or None
