"""Reads what was typed: a `/` command, a `!` command for the shell, a word to one call or sub-agent (`@`), or a
message. A path or a sentence that begins with a slash is plain text."""

import difflib
import re
from dataclasses import dataclass

from tui_agent.ui.base.commands import Command, slash_commands

_AIMED = re.compile(r"@(#[0-9]{1,9}|[\w.-]+)[ \t]+(\S.*)\Z", re.DOTALL)
_COMMAND_LINE = re.compile(r"/([a-z][a-z-]*)(?:[ \t]+(\S[^\n]*))?\s*\Z")


@dataclass(frozen=True, slots=True)
class SlashCall:
    """A command with what follows it."""

    command: Command
    argument: str = ""


@dataclass(frozen=True, slots=True)
class UnknownSlash:
    """A word that looks like a command and is none."""

    name: str
    nearest: str | None
    """The nearest command's name."""


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A command that a person runs with `!`."""

    command: str
    """What bash is given; empty where nothing but the mark was typed."""
    said: str
    """As it was typed."""
    shared: bool
    """Whether the model reads what it gives; not after `!!`."""


@dataclass(frozen=True, slots=True)
class TargetedMessage:
    """Something said to one call or one sub-agent."""

    target: str
    """`#3` for a call by its number, else a sub-agent's name."""
    text: str

    @property
    def number(self) -> int | None:
        """The call's number; None for a sub-agent."""
        return int(self.target[1:]) if self.target.startswith("#") else None


def parse_targeted_message(text: str) -> TargetedMessage | None:
    """What is said to whom; None where the text does not begin with `@` and a name or number."""
    match = _AIMED.match(text.strip())
    return TargetedMessage(match[1], match[2].strip()) if match is not None else None


def parse_shell_call(text: str) -> ShellCall | None:
    """The shell command a text asks for; None where it does not begin with `!`."""
    said = text.strip()
    if not said.startswith("!"):
        return None
    command = said.removeprefix("!")
    return ShellCall(command.removeprefix("!").strip(), said, shared=not command.startswith("!"))


def parse_slash_call(text: str) -> SlashCall | UnknownSlash | None:
    """The command a text asks for; None where it is a message."""
    match = _COMMAND_LINE.match(text.strip())
    if match is None:
        return None
    by_name = {command.slash: command for command in slash_commands() if command.slash}
    name, argument = match[1], (match[2] or "").strip()
    found = by_name.get(name)
    if found is not None and (not argument or found.argument):
        return SlashCall(found, argument)
    if argument:
        return None
    near = difflib.get_close_matches(name, by_name, n=1)
    return UnknownSlash(name, near[0] if near else None)


def suggestions(draft: str) -> tuple[Command, ...]:
    """The commands a draft such as `/he` may become; none once it is more than one word."""
    if not re.fullmatch(r"/[a-z-]*", draft):
        return ()
    return tuple(command for command in slash_commands() if (command.slash or "").startswith(draft[1:]))
