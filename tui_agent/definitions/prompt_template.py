"""Templates of prompts: `$ARGUMENTS`, `$1` … `$9`, and `` !`command` ``, whose output replaces it.

A template is taken apart before anything is inserted, so that arguments and outputs never become placeholders or
commands. In a command, an argument is quoted: it is always data of the command.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from tui_agent.protocol.errors import ConfigurationError

_COMMAND = re.compile(r"(?<![\w`\\])!`([^`\n]+)`")
_UNCLEAR = re.compile(r"\$['$\[]|\$\{(?!\w+\})|\(\(|(?<!<)<<(?!<)|(?:^|[\s;&|(])#|\bcase\b")
"""Shell text in which quotes have another meaning than that of their usual place."""
_PLAIN_WORDS = re.compile(r"[\w./:@%+=, -]*", re.ASCII)
_ARGUMENT = re.compile(r"\$(ARGUMENTS(?:\[\d\])?|[1-9])(?!\w)")


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
        """Return the text for `ARGUMENTS`, `ARGUMENTS[0]` or `1` … `9`; empty for a missing argument."""
        if placeholder == "ARGUMENTS":
            return self.text
        words, place = self.words, int(placeholder) if placeholder.isdigit() else int(placeholder[-2]) + 1
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
        """Return the commands with the arguments inserted as quoted words.

        Raises:
            ConfigurationError: it is not certain how an argument must be quoted in one of them.
        """
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
    """Return a shell command with the arguments as quoted words, also where a placeholder is inside quotes.

    Raises:
        ConfigurationError: it is not certain how an argument must be quoted.
    """
    pieces: list[str] = []
    end, open_now = 0, ""
    for match in _ARGUMENT.finditer(command):
        between = command[end : match.start()]
        before, open_now = _open_in(between[:-1], open_now), _open_in(between, open_now)
        value, end = arguments.value(match[1]), match.end()
        quote = open_now[-1:].strip("(")
        if _UNCLEAR.search(command) and not _PLAIN_WORDS.fullmatch(value):
            raise ConfigurationError(
                f"`{command}` was not run: its quotes are too complex for the argument {value!r}. Use letters and "
                "digits, or a simpler command."
            )
        if quote and between.endswith(quote) and before == open_now[:-1] and command[end : end + 1] == quote:
            # `"$1"`: the quotes of the value replace those of the template.
            between, value, end, open_now = between[:-1], shlex.quote(value), end + 1, before
        elif quote:
            value = f"{quote}{shlex.quote(value)}{quote}"
        elif match[1] == "ARGUMENTS":
            value = shlex.join(arguments.words)
        else:
            value = shlex.quote(value) if value else ""
        pieces += [between, value]
    return "".join([*pieces, command[end:]])


def _open_in(text: str, open_now: str) -> str:
    """Return the quotes and the `(` that are open behind a piece of shell text, the innermost last."""
    letters, previous = iter(text), ""
    for letter in letters:
        inner = open_now[-1:]
        if letter == "\\" and inner != "'":
            next(letters, "")
            previous = ""
            continue
        if (letter in "'\"" and letter == inner) or (letter == ")" and inner == "("):
            open_now = open_now[:-1]
        elif inner == '"':
            open_now += letter if letter == "(" and previous == "$" else ""
        elif inner != "'" and letter in "'\"(":
            open_now += letter
        previous = letter
    return open_now
