"""Templates of prompts: `$ARGUMENTS`, `$1` … `$9`, and `` !`command` ``, whose output replaces it.

A template is taken apart before anything is inserted, so that arguments and outputs never become placeholders or
commands. In a command, an argument is quoted: it is always data of the command.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

_COMMAND = re.compile(r"(?<![\w`\\])!`([^`\n]+)`")
_ARGUMENT = re.compile(r"\$(ARGUMENTS|[1-9])(?!\w)")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a `/` command as typed."""

    text: str

    @property
    def words(self) -> list[str]:
        """The arguments one by one; quotes keep words together."""
        try:
            return shlex.split(self.text)
        except ValueError:
            return self.text.split()

    def value(self, placeholder: str) -> str:
        """Return the text for `ARGUMENTS` or `1` … `9`; empty for a missing argument."""
        if placeholder == "ARGUMENTS":
            return self.text
        words, place = self.words, int(placeholder)
        return words[place - 1] if place <= len(words) else ""


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A template in parts: text, and at every second place a command."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "PromptTemplate":
        """Take a template apart."""
        return cls(tuple(_COMMAND.split(text)))

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as written."""
        return self.parts[1::2]

    def commands_with(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the commands with the arguments inserted as quoted words."""
        return tuple(_with_quoted(command, arguments) for command in self.commands)

    def prompt(self, arguments: Arguments, outputs: Sequence[str] = ()) -> str:
        """Return the prompt; arguments that the template does not name follow at its end.

        Args:
            arguments: the arguments as typed.
            outputs: the texts that replace the commands.
        """
        texts = [_ARGUMENT.sub(lambda match: arguments.value(match[1]), text) for text in self.parts[::2]]
        for place, output in zip(count(1, 2), outputs, strict=False):
            texts.insert(place, output)
        names_arguments = any(_ARGUMENT.search(part) for part in self.parts)
        rest = "" if names_arguments or not arguments.text else f"\n\nArguments: {arguments.text}"
        return "".join(texts).strip() + rest


def framed_output(command: str, output: str) -> str:
    """Return the output of a command for a prompt, marked so that the model does not take it for the user's words."""
    body = output.strip("\n").replace("</output>", "<\\/output>")
    inside = f"\n{body}\n" if "\n" in body else body
    return f"<output of={json_text(command)}>{inside}</output>"


def json_text(text: str) -> str:
    """Return a text in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _with_quoted(command: str, arguments: Arguments) -> str:
    """Return a shell command with the arguments as quoted words, also where a placeholder is inside quotes."""
    pieces: list[str] = []
    end, quote = 0, ""
    for match in _ARGUMENT.finditer(command):
        between = command[end : match.start()]
        before, quote = quote, _open_quote(between, quote)
        value, end = arguments.value(match[1]), match.end()
        if (
            quote
            and between.endswith(quote)
            and not _open_quote(between[:-1], before)
            and command[end : end + 1] == quote
        ):
            # `"$1"`: the quotes of the value replace those of the template.
            between, value, end, quote = between[:-1], shlex.quote(value), end + 1, ""
        elif quote:
            value = f"{quote}{shlex.quote(value)}{quote}"
        elif match[1] == "ARGUMENTS":
            value = shlex.join(arguments.words)
        else:
            value = shlex.quote(value) if value else ""
        pieces += [between, value]
    return "".join([*pieces, command[end:]])


def _open_quote(text: str, quote: str) -> str:
    """Return the quote that is open behind a piece of shell text; empty if none is."""
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            next(letters, "")
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
    return quote
