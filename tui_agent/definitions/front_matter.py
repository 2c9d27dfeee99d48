"""Markdown with front matter: a block of YAML between two lines `---` at the top of a file."""

import json
import re
from dataclasses import dataclass

from tui_agent.protocol.messages import is_array, is_object

MAX_FRONT_MATTER = 16 * 1024
"""Most characters of the block."""
MAX_BRACKETS = 500
_BLOCK = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN = re.compile(r"^(description|argument-hint):[ \t]+([^\s'\"|>].*)$", re.MULTILINE)
"""Values that people write without the quotes that YAML wants, such as `[issue] [label]`."""

TOOL_NAMES = {
    "bash": "bash",
    "read": "read",
    "write": "write",
    "edit": "edit",
    "multiedit": "edit",
    "glob": "glob",
    "grep": "grep",
    "ls": "glob",
    "task": "agent",
    "agent": "agent",
    "webfetch": "fetch",
    "websearch": "web_search",
    "todowrite": "todo",
    "bashoutput": "bash_output",
    "killshell": "kill_bash",
    "killbash": "kill_bash",
    "skill": "skill",
}
"""Our names for the tools of other agents, in lower case."""
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0", "null", "~")
_TOOL = re.compile(r"([^\s,()]+)(\([^)]*\))?")
_BEHIND_BASH = ("bash_output", "kill_bash")
"""Tools for the background commands of `bash`."""


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
            raise FrontMatterError(f"`{key}` must be text")
        return " ".join(value.split())

    def flag(self, key: str, *, default: bool) -> bool:
        """Return a field that is true or false; a value that is neither counts as the opposite of the default."""
        value = self.text(key).lower()
        return default if value in ("", *(_TRUE if default else _FALSE)) else not default

    def tools(self, key: str) -> tuple[str, ...] | None:
        """Return the tools of a field by our names, `(…)` behind a name left out; None if the field is missing.

        Raises:
            FrontMatterError: it is neither text nor a list of texts.
        """
        value = self.fields.get(key)
        if value is None or value == "":
            return None
        parts = value if is_array(value) else [value]
        if not all(isinstance(part, str) for part in parts):
            raise FrontMatterError(f"`{key}` must list names of tools")
        names = [match[1] for part in parts for match in _TOOL.finditer(str(part))]
        known = [TOOL_NAMES.get(name.lower(), name) for name in names]
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
    return Document(_fields(block[1]), text[block.end() :].strip())


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
