"""Parses the user's input: a `/` command, a shell command (`!`), a message to one call or sub-agent (`@`), or a prompt.

A text that begins with a slash and a name is a command, whatever follows, and never reaches the model by mistake. A
first word with a second slash, a dot or another sign is a path, and the text a prompt.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal
from urllib.parse import unquote

from tui_agent.protocol.prompt_references import PromptCommand, is_media_path, mention_of
from tui_agent.ui.base.command_type import Command
from tui_agent.ui.base.commands import slash_commands

_AIMED = re.compile(r"@(#[0-9]{1,9}|[\w.-]+)[ \t]+(\S.*)\Z", re.DOTALL)
_MENTION = re.compile(r"(?:\A|(?<=\s))@([^\s@]*)\Z")
_ARGUMENT = re.compile(r"/([a-z][a-z-]*) (\S*)")
_NAMED = re.compile(r"/([^\W\d_][\w:-]*)(?=\s|\Z)[ \t]*(.*)\Z", re.DOTALL)
_FIRST = {
    name: place
    for place, name in enumerate(
        (
            *("help", "model", "mode", "resume", "files", "diff", "settings", "permissions", "rewind", "context"),
            *("report", "search"),
        )
    )
}
"""Commands that the menu offers first while the user has used none."""
_NEVER_CHOSEN = frozenset(("clear", "quit", "fork", "demo", "compact", "stop", "init"))
"""Commands that end or change a session or cost tokens, so that the menu chooses them only by their letters."""


@dataclass(frozen=True, slots=True)
class SlashCall:
    """A `/` command with its argument."""

    command: Command
    argument: str = ""


@dataclass(frozen=True, slots=True)
class UnknownSlash:
    """Input that looks like a `/` command but is none: no command has the name, or this one takes no such text."""

    name: str
    nearest: str | None
    """Name of the closest command, or None."""
    exists: bool = False
    """True if a command has the name, but takes no text, or only one line."""


@dataclass(frozen=True, slots=True)
class ShellCall:
    """A shell command of the user."""

    command: str
    """The command for bash; empty if the user typed only the marks."""
    said: str
    """The input as typed."""
    shared: bool
    """True if the model reads the output (`!`), False if only the user does (`!!`)."""


@dataclass(frozen=True, slots=True)
class TargetedMessage:
    """A message to one call or one sub-agent."""

    target: str
    """`#3` for a call by its number, otherwise a sub-agent's name."""
    text: str

    @property
    def number(self) -> int | None:
        """Number of the call; None for a sub-agent."""
        return int(self.target[1:]) if self.target.startswith("#") else None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One entry of the menu above the composer."""

    text: str
    """The text it stands for: `/mode`, `@worker` or `@src/price.py`."""
    label: str
    """The text as shown, with its argument."""
    help: str = ""
    kind: Literal["command", "mention", "prompt", "note", "key"] = "mention"
    path: str = ""
    """Path of the file or directory that it names; empty for anything else."""
    line: int = 1
    """Number of the first line that it names."""

    @classmethod
    def of_command(cls, command: Command | PromptCommand) -> "Suggestion":
        """Return the suggestion of a `/` command."""
        return cls(f"/{command.slash}", f"/{command.slash} {command.argument}".rstrip(), command.help, "command")

    @classmethod
    def of_file(cls, path: str) -> "Suggestion":
        """Return the suggestion of a file; a path with blanks is quoted."""
        text = mention_of(path)
        return cls(text, text, path=path)

    @classmethod
    def of_symbol(cls, name: str, path: str, first: int, last: int) -> "Suggestion":
        """Return the suggestion of a function or class: its lines are attached."""
        lines = f"{path}:{first}-{last}" if last > first else f"{path}:{first}"
        return cls(mention_of(lines), name, f"{path}:{first}", path=path, line=first)

    @classmethod
    def of_key(cls, command: Command) -> "Suggestion":
        """Return a key with what it does."""
        return cls(command.id, command.key_text, command.text, "key")

    @classmethod
    def of_prompt(cls, text: str) -> "Suggestion":
        """Return the suggestion of an earlier prompt."""
        return cls(text, " ".join(text.split()), kind="prompt")


def mention_before(line: str, column: int) -> str | None:
    """Return the text between an `@` and the cursor; None if the cursor is not at the end of such a word.

    `@#3` names a call, but only at the start of the line.
    """
    match = _MENTION.search(line[:column])
    if match is None or line[column : column + 1].strip():
        return None
    return None if match[1].startswith("#") and match.start() else match[1]


def pasted_media_path(text: str) -> str | None:
    """Return the path if a paste is the path of an image or a PDF and nothing else; None for any other.

    Terminals paste the path of a file that is dropped on their window.
    """
    line = text.strip()
    if "\n" in line or not is_media_path(line.rstrip("'\"")):
        return None
    if line.startswith("file://"):
        return unquote(line.removeprefix("file://"))
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    is_path = len(words) == 1 and ("/" in words[0] or words[0].startswith("~"))
    return words[0] if is_path else None


def matches_in_order(text: str, letters: str) -> bool:
    """Return True if a text contains some letters in their order, in either case."""
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold())


def parse_targeted_message(text: str) -> TargetedMessage | None:
    """Return the message and its target; None if the text does not begin with `@` and a name or number.

    A blank in front of the `@` makes it a message for the agent.
    """
    match = _AIMED.match(text)
    return TargetedMessage(match[1], match[2].strip()) if match is not None else None


def parse_shell_call(text: str) -> ShellCall | None:
    """Return the shell command in a text; None if it does not begin with `!`."""
    said = text.strip()
    if not said.startswith("!"):
        return None
    command = said.removeprefix("!")
    return ShellCall(command.removeprefix("!").strip(), said, shared=not command.startswith("!"))


def own_command(text: str, own: Iterable[PromptCommand]) -> PromptCommand | None:
    """Return the command of the user's and the project's files that a text names; None if it names none."""
    name = text.strip().partition("\n")[0].partition(" ")[0]
    return next((entry for entry in own if f"/{entry.slash}" == name), None)


def parse_slash_call(text: str, own: Iterable[PromptCommand] = ()) -> SlashCall | UnknownSlash | None:
    """Return the built-in `/` command in a text; None if it is a prompt, or one of the user's `own` commands.

    A misspelt command must not reach the model, nor one with text that it does not take. `\\/` sends it.
    """
    match = _NAMED.match(text.strip())
    if match is None:
        return None
    built_in = {command.slash: command for command in slash_commands() if command.slash}
    name, argument = match[1], match[2].strip()
    if (found := built_in.get(name)) is not None:
        # Several lines are a message that begins like a command, not its argument.
        fits = not argument or (found.argument and "\n" not in argument)
        return SlashCall(found, argument) if fits else UnknownSlash(name, None, exists=True)
    if own_command(text, own) is not None:
        return None
    near = difflib.get_close_matches(name.lower(), [*built_in, *(entry.slash for entry in own)])
    near.sort(key=lambda other: sorted(other) != sorted(name))  # Letters that changed places come first.
    return UnknownSlash(name, near[0] if near else None)


def suggestions(
    draft: str,
    own: Iterable[PromptCommand] = (),
    *,
    offers: Callable[[Command], bool] = lambda _: True,
    uses: Mapping[str, int] = MappingProxyType({}),
) -> tuple[Command | PromptCommand, ...]:
    """Return the commands that a draft such as `/he` may become; none if it has more than one word.

    Those used most come first, then the built-in ones. Any part of the name of one of the user's `own` commands may be
    typed: `/test` finds `/frontend:test`. From the second letter on, own commands that begin with the draft come first,
    unless it is a built-in name: `/fi` offers the user's `/fix` before `/files`. Behind the name of a command with
    known arguments, such as `/model `, these are found by any part.
    """
    typed = draft[1:]
    if (words := _ARGUMENT.fullmatch(draft)) is not None:
        name, part = words[1], words[2].casefold()
        return tuple(entry for entry in own if entry.slash.startswith(f"{name} ") and part in entry.slash[len(name) :])
    own = [entry for entry in own if " " not in entry.slash]
    if not re.fullmatch(r"/[\w:.-]*", draft, re.ASCII):
        return ()
    built_in = [one for one in slash_commands() if (one.slash or "").startswith(typed) and offers(one)]
    if not typed:
        built_in.sort(key=lambda command: _FIRST.get(command.slash or "", len(_FIRST)))
    begun = [entry for entry in own if typed and entry.slash.startswith(typed)]
    found = [entry for entry in own if entry not in begun and f":{typed}".casefold() in f":{entry.slash}".casefold()]
    own_first = len(typed) > 1 and all(command.slash != typed for command in built_in)
    entries = [*begun, *built_in, *found] if own_first else [*built_in, *begun, *found]
    entries.sort(key=lambda entry: (entry.slash != typed, -uses.get(entry.slash or "", 0)))
    first = next((place for place, entry in enumerate(entries) if _may_be_chosen(entry, typed)), 0)
    # Enter takes the first one, so it must be one that a part of its name may run.
    entries[:0] = [entries.pop(first)] if entries else []
    return tuple(entries)


def _may_be_chosen(entry: Command | PromptCommand, typed: str) -> bool:
    """Return True if enter may run the command although only a part of its name is typed."""
    if isinstance(entry, PromptCommand):
        # It sends a prompt.
        return bool(typed)
    return entry.slash == typed or entry.slash not in _NEVER_CHOSEN
