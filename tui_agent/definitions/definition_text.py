"""The text of a definition file: front matter, a block of YAML between two lines `---`, and the template of a prompt.

A template has `$ARGUMENTS`, `$1` … `$9`, and `` !`command` ``, or a block fenced with ```` ```! ````, whose output
replaces it. It is taken apart before anything is inserted, so that arguments and outputs never become placeholders or
commands. In a command, an argument is quoted: it is always data of the command. A template that has `$0` counts its
arguments from zero.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import is_array, is_object
from tui_agent.protocol.setting_files import FOREIGN_TOOL_NAMES

MAX_FRONT_MATTER = 16 * 1024
"""Most characters of the block."""
MAX_BRACKETS = 500
_BLOCK = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"^(description|argument-hint):[ \t]+([^\s'\"|>].*)$", re.MULTILINE)
"""Values that people write without the quotes that YAML wants, such as `[issue] [label]`."""

_TOOL_NAMES = {
    **{name.lower(): tool for tool, names in FOREIGN_TOOL_NAMES.items() for name in names},
    "notebookedit": "edit",
    "ls": "glob",
    "all": "*",
}
"""Our names for the tools of other agents, in lower case."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "null", "~")
_TOOL = re.compile(r"([^\s,()]+)(\([^)]*\))?")
_BEHIND_BASH = ("bash_output", "kill_bash")
"""Tools for the background commands of `bash`."""

_COMMAND = re.compile(r"(?<![\w`\\])!`([^`\n]+)`|^```![ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)
_UNCLEAR = re.compile(r"\$['$\[]|\$\{(?!\w+\})|\(\(|(?<!<)<<(?!<)|(?:^|[\s;&|(])#|\bcase\b")
"""Shell text in which quotes have another meaning than that of their usual place."""
_PLAIN_WORDS = re.compile(r"[\w./:@%+=, -]*", re.ASCII)
_ARGUMENT = re.compile(r"\$((?:ARGUMENTS(?:\[\d\])?|[1-9])(?!\w)|\{CLAUDE_\w+\})")
_ARGUMENT_FROM_ZERO = re.compile(r"\$((?:ARGUMENTS(?:\[\d\])?|[0-9])(?!\w|[.,]\d)|\{CLAUDE_\w+\})")
_ZEROTH = re.compile(r"\$0(?!\w|[.,]\d)")
_PLACE = re.compile(r"\$\{(CLAUDE_\w+)\}")
PLACES = ("CLAUDE_SKILL_DIR", "CLAUDE_SESSION_ID", "CLAUDE_PROJECT_DIR")
"""Placeholders with a value of the session or the file."""


class FrontMatterError(Exception):
    """The front matter cannot be used."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line
        """Line of the file; 0: none in particular."""


@dataclass(frozen=True, slots=True)
class Document:
    """A Markdown file."""

    fields: dict[str, object]
    """Front matter; all scalars are text."""
    body: str
    front: str = ""
    """Front matter as written."""
    above: int = 0
    """Lines above the body."""

    def line(self, key: str) -> int:
        """Return the line of the file that a field is in; 1 for a missing one."""
        return next((n for n, text in enumerate(self.front.split("\n"), 2) if _bare_key(text) == bare(key)), 1)

    def body_line(self, text: str) -> int:
        """Return the line of the file that a text of the body is in; the body's first line for a missing text."""
        return self.above + self.body.count("\n", 0, max(self.body.find(text), 0)) + 1

    def text(self, key: str) -> str:
        """Return a text field on one line; empty if it is missing.

        Raises:
            FrontMatterError: it is a table, or a list of anything but text.
        """
        value = self.fields.get(key, "")
        if is_array(value) and all(isinstance(part, str) for part in value):
            # `[issue]` is a list for YAML.
            return f"[{', '.join(str(part) for part in value)}]"
        if not isinstance(value, str):
            raise FrontMatterError(f"`{key}` must be text", self.line(key))
        return " ".join(value.split())

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a field that is true or false; a value that is neither counts as the opposite of the default.

        Raises:
            FrontMatterError: as for `text`.
        """
        value = self.text(key).lower()
        # These fields restrict: an unclear value counts as the restriction.
        return default if value in ("", *(_TRUE if default else _FALSE)) else not default

    def tools(self, key: str) -> tuple[str, ...] | None:
        """Return the tools of a field by our names, without `(…)` after a name; None if the field is missing or empty.

        Raises:
            FrontMatterError: it is neither text nor a list of texts.
        """
        value = self.fields.get(key)
        if value is None or value == "":
            return None
        parts = value if is_array(value) else [value]
        if not all(isinstance(part, str) for part in parts):
            raise FrontMatterError(f"`{key}` must list names of tools", self.line(key))
        names = [match[1] for part in parts for match in _TOOL.finditer(str(part))]
        known = [_TOOL_NAMES.get(name.lower(), name) for name in names]
        # A command in the background must be read and stopped, too.
        return tuple(dict.fromkeys([*known, *(_BEHIND_BASH if "bash" in known else ())]))


def parse_document(text: str) -> Document:
    """Split a file into front matter and body; without front matter it is all body.

    Raises:
        FrontMatterError: the front matter is not a YAML table, has no end, or is too long.
    """
    if not re.match(r"---[ \t]*\n", text):
        return Document({}, text.strip())
    block = _BLOCK.match(text)
    if block is None:
        raise FrontMatterError("the front matter has no end: a line `---` is missing", 1)
    if len(block[1]) > MAX_FRONT_MATTER:
        raise FrontMatterError(f"the front matter is longer than {MAX_FRONT_MATTER:,} characters", 1)
    body = text[block.end() :]
    above = text.count("\n", 0, len(text) - len(body.lstrip()))
    return Document(_fields(block[1]), body.strip(), block[1], above)


def bare(name: str) -> str:
    """Return a field's name without the signs and capitals in which programs differ."""
    return name.lower().replace("-", "").replace("_", "")


def _bare_key(line: str) -> str:
    return bare(line.partition(":")[0].strip().strip("'\""))


def unknown_placeholders(text: str) -> tuple[str, ...]:
    """Return the placeholders of a text, such as `CLAUDE_EFFORT`, that have no value here."""
    return tuple(dict.fromkeys(name for name in _PLACE.findall(text) if name not in PLACES))


def _fields(source: str) -> dict[str, object]:
    if source.count("[") + source.count("{") > MAX_BRACKETS:
        # The time to parse them grows with the square of their number.
        raise FrontMatterError("the front matter is nested too deeply", 1)
    # Imported with the first file that needs it.
    import yaml

    try:
        try:
            # Makes text of every scalar, and of no tag anything else.
            values: object = yaml.load(source, yaml.BaseLoader)
        except yaml.YAMLError:
            quoted = _PLAIN.sub(lambda match: f"{match[1]}: {json.dumps(match[2].rstrip())}", source)
            if quoted == source:
                raise
            values = yaml.load(quoted, yaml.BaseLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        # The file begins with the line `---`.
        raise FrontMatterError(f"not valid YAML: {error.problem}", mark.line + 2 if mark is not None else 1) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise FrontMatterError("not valid YAML", 1) from error
    if values is None or values == "":
        return {}
    if not is_object(values):
        raise FrontMatterError("the front matter must be a table of fields", 2)
    return dict(values)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a `/` command as typed."""

    text: str
    first: int = 1
    """Number of the first one: 0 in a template that has `$0`."""
    places: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of `PLACES`."""

    @property
    def placeholders(self) -> re.Pattern[str]:
        """Matches the placeholders for them."""
        return _ARGUMENT if self.first else _ARGUMENT_FROM_ZERO

    @property
    def words(self) -> list[str]:
        """The arguments one by one; quotes keep words together."""
        try:
            return shlex.split(self.text)
        except ValueError:
            # A single quote is text, as in `it's`.
            return self.text.split()

    def value(self, placeholder: str) -> str:
        """Return the text for `ARGUMENTS`, `ARGUMENTS[0]`, `1` … `9` or `{PLACE}`; empty for a missing argument.

        An unknown place is returned as it is written, with its `$`.
        """
        if placeholder.startswith("{"):
            return self.places.get(placeholder[1:-1], f"${placeholder}")
        if placeholder == "ARGUMENTS":
            return self.text
        words, place = self.words, int(placeholder) - self.first if placeholder.isdigit() else int(placeholder[-2])
        return words[place] if 0 <= place < len(words) else ""


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A template in parts: text, and at every second place a command."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "PromptTemplate":
        """Take a template apart."""
        parts, end = list[str](), 0
        for match in _COMMAND.finditer(text):
            parts += [text[end : match.start()], match[1] or match[2]]
            end = match.end()
        return cls((*parts, text[end:]))

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands as written."""
        return self.parts[1::2]

    def commands_with(self, arguments: Arguments) -> tuple[str, ...]:
        """Return the commands with the arguments inserted as quoted words.

        Raises:
            ConfigurationError: it is not certain how an argument must be quoted in one of them.
        """
        counted = self._counted(arguments)
        return tuple(_with_quoted(command, counted) for command in self.commands)

    def prompt(self, arguments: Arguments, outputs: Sequence[str] = ()) -> str:
        """Return the prompt; if the template names no arguments, they follow at its end.

        Args:
            outputs: replacements for `commands`, in order; a missing one is empty.
        """
        counted = self._counted(arguments)
        texts = [counted.placeholders.sub(lambda match: counted.value(match[1]), text) for text in self.parts[::2]]
        for place, output in zip(count(1, 2), outputs, strict=False):
            texts.insert(place, output)
        found = (match for part in self.parts for match in counted.placeholders.finditer(part))
        names_arguments = any(not match[1].startswith("{") for match in found)
        rest = "" if names_arguments or not arguments.text else f"\n\nArguments: {arguments.text}"
        return "".join(texts).strip() + rest

    def _counted(self, arguments: Arguments) -> Arguments:
        """Return the arguments as this template counts them. `$0` of a command is that of awk or of the shell."""
        return replace(arguments, first=0) if any(map(_ZEROTH.search, self.parts[::2])) else arguments


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
    end, open_now = 0, ""
    for match in arguments.placeholders.finditer(command):
        between = command[end : match.start()]
        before, open_now = _open_in(between[:-1], open_now), _open_in(between, open_now)
        value, end = arguments.value(match[1]), match.end()
        quote = open_now[-1:].strip("(")
        if value == match[0]:
            # A variable of the shell.
            pieces += [between, value]
            continue
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
