"""Hooks from files in the form of other agents, and the digests of the scripts that they run."""

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tui_agent.protocol.regular_file import read_regular_file, target_outside

FileHookEvent: TypeAlias = Literal[
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "SessionStart",
    "SessionEnd",
    "PreCompact",
    "Notification",
]
EVENTS: tuple[FileHookEvent, ...] = get_args(FileHookEvent)
"""Events with hooks, in the order of a page."""
CALL_EVENTS: tuple[FileHookEvent, ...] = ("PreToolUse", "PostToolUse")
"""Events about a call; the call's own events report their hooks."""
ABOUT_CALLS: tuple[FileHookEvent, ...] = (*CALL_EVENTS, "PermissionRequest")
"""Events whose matchers and rules are about a call."""


def as_event(name: str) -> FileHookEvent | None:
    """Return the event of a name; None for an unknown one."""
    return name if name in EVENTS else None


Origin: TypeAlias = Literal["user", "project"]

DEFAULT_TIMEOUT = 60.0
"""Seconds that a hook may run."""
MAX_TIMEOUT = 3600.0
_PROJECT_DIR = "${CLAUDE_PROJECT_DIR}"
"""Replaced in a command with arguments, which no shell reads."""

PROJECT_DIR = "CLAUDE_PROJECT_DIR"
"""Variable with the directory of a hook's project."""
MAX_SCRIPTS = 500
"""Most scripts of one project whose content is read; of further ones, the status is compared."""

_VARIABLE = re.compile(r"\$(?:CLAUDE_PROJECT_DIR\b|\{CLAUDE_PROJECT_DIR[^}]*\})")
_WORDS = re.compile(r"[^\s;|&<>()=`]+")
_SUFFIXES = frozenset(
    (".sh", ".bash", ".zsh", ".fish", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".rb", ".pl", ".php", ".lua", ".awk",
     ".sed", ".jq")
)  # fmt: skip
_FOLDER = Path(".claude/hooks")

Status = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileHook:
    """One command for one event."""

    event: FileHookEvent
    matcher: str
    """Name, names or regular expression; empty: any."""
    command: str
    timeout: float
    """Seconds after which it is killed."""
    source: str
    """`FILE:LINE`."""
    origin: Origin
    project_dir: Path
    """Value of `$CLAUDE_PROJECT_DIR`."""
    args: tuple[str, ...] | None = None
    """Arguments of the program `command`, which then runs without a shell; None: `command` is a line for bash."""
    fail_open: bool = False
    """True if a call continues although the hook could not answer about it."""
    rule: str = ""
    """Rule in our language: the hook runs only for calls that it matches; empty: for all."""
    runs_beside: bool = False
    """True if nothing waits for the hook, so that it decides nothing."""

    @property
    def options(self) -> tuple[object, ...]:
        """Its further fields, as far as they are set."""
        given = {"args": self.args, "fail_open": self.fail_open, "if": self.rule, "async": self.runs_beside}
        return tuple((name, value) for name, value in given.items() if value)

    @property
    def argv(self) -> tuple[str, ...] | None:
        """The program with its arguments; None: `command` is a line for bash."""
        if self.args is None:
            return None
        return tuple(word.replace(_PROJECT_DIR, str(self.project_dir)) for word in (self.command, *self.args))

    @property
    def line(self) -> str:
        """The command with its arguments on one line."""
        return self.command if self.args is None else shlex.join((self.command, *self.args))

    @property
    def shown(self) -> str:
        """The hook on one line: event, matcher and command."""
        matcher = f"({self.matcher})" if self.matcher else ""
        timeout = f"  [{self.timeout:g} s]" if self.timeout != DEFAULT_TIMEOUT else ""
        words = ((self.rule, f"if {self.rule}"), (self.runs_beside, "async"), (self.fail_open, "fail_open"))
        options = "".join(f"  [{word}]" for given, word in words if given)
        return f"{self.event}{matcher}: {self.line}{timeout}{options}"


@dataclass(frozen=True, slots=True)
class ForeignRule:
    """A rule in our language."""

    verdict: Literal["deny", "ask"]
    text: str
    origin: str
    """The file, with the rule as written."""


@dataclass(frozen=True, slots=True)
class HookFile:
    """The hooks of one file."""

    path: str
    """As shown to the user."""
    hooks: tuple[FileHook, ...] = ()
    problems: tuple[str, ...] = ()
    """Reasons why parts of it are not used, each with `FILE:` or `FILE:LINE:`."""
    disables_all: bool = False
    """True if it turns hooks off."""
    is_broken: bool = False
    """True if nothing of it can be used."""
    rules: tuple[ForeignRule, ...] = ()
    """Its permission rules that deny or ask."""
    rule_problems: tuple[str, ...] = ()
    """Reasons why parts of its permissions are not used."""
    unused_guards: tuple[str, ...] = ()
    """The problems of hooks that decide about calls."""
    unread: tuple[str, ...] = ()
    """A message about its other settings."""


# --- scripts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Script:
    """One script as it was read."""

    digest: str
    """SHA-256 of the content; of the status if the content was not read."""
    status: Status
    """Inode, size, times of content and of status: the same ones mean the same content."""


def read_scripts(hooks: Iterable[FileHook], known: Mapping[str, Script] | None = None) -> dict[str, Script]:
    """Return the scripts of a project's hooks by path. Blocks; never raises.

    These are the scripts in `.claude/hooks`, and those that the commands name; files without a script's suffix or
    permission, such as logs, do not count, nor do files outside the repository. `known` scripts of the same
    status are not read again.
    """
    found: dict[str, Script] = {}
    for path in _paths(hooks):
        try:
            status = os.stat(path)
        except OSError:
            continue
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        before = (known or {}).get(path)
        if before is not None and before.status == seen:
            found[path] = before
        elif status.st_mode & 0o111 or Path(path).suffix in _SUFFIXES:
            found[path] = Script(_digest(path, seen, is_read=len(found) < MAX_SCRIPTS), seen)
    return found


def changed_script(before: Mapping[str, Script], hooks: Iterable[FileHook]) -> str | None:
    """Return the path of a script that is not as it was, or is new or gone; None if all are the same. Blocks."""
    present = read_scripts(hooks, before)
    for path in dict.fromkeys((*before, *present)):
        if path not in before or path not in present or before[path].digest != present[path].digest:
            return path
    return None


def _paths(hooks: Iterable[FileHook]) -> Iterator[str]:
    """Yield the files that may be scripts, each once."""
    seen: set[str] = set()
    all_hooks = tuple(hooks)
    folders = dict.fromkeys(hook.project_dir for hook in all_hooks)
    # Those that commands name come first: their content is read even if a folder has very many others.
    named = ((hook.project_dir, path) for hook in all_hooks for path in _named(hook))
    listed = ((folder, path) for folder in folders for path in _listed(folder / _FOLDER))
    for folder, found in (*named, *listed):
        path = os.path.normpath(found)
        # The answer of the user covers the repository; what a link elsewhere leads to could change unseen.
        if path not in seen and os.path.isfile(path) and target_outside(Path(path), folder) is None:
            seen.add(path)
            yield path


def _named(hook: FileHook) -> Iterator[str]:
    """Yield the paths that a command may name."""
    folder = str(hook.project_dir)
    # Quotes may be around any part of a path, most often around the variable.
    text = _VARIABLE.sub(lambda _: folder, re.sub("[\"']", "", hook.line))
    for word in _WORDS.findall(text):
        if "\0" not in word:
            yield os.path.join(folder, os.path.expanduser(word))


def _listed(folder: Path) -> Iterator[str]:
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "node_modules", ".git"))
        # In order: of very many scripts, the content of the same ones is read each time.
        for name in sorted(names):
            yield os.path.join(top, name)


def _digest(path: str, status: Status, *, is_read: bool) -> str:
    if is_read:
        with suppress(OSError):
            return hashlib.sha256(read_regular_file(path)).hexdigest()
    # One that is too large to be read can still run, so that every change of it counts.
    return f"status {hashlib.sha256(repr(status).encode()).hexdigest()}"
