"""Hooks as their files define them."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from .foreign_rules import ForeignRule

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
    """Return the event of a name."""
    return name if name in EVENTS else None


Origin: TypeAlias = Literal["user", "project"]

DEFAULT_TIMEOUT = 60.0
"""Seconds that a hook may run."""
MAX_TIMEOUT = 3600.0
_PROJECT_DIR = "${CLAUDE_PROJECT_DIR}"
"""Replaced in a command with arguments, which no shell reads."""


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
