"""Content of settings files: TOML of any origin, and records in the formats of other programs."""

import re
import tomllib
from dataclasses import dataclass

from .messages import JsonObject, nests_deeper

MAX_KEY_PARTS = 50
"""Maximum parts of a dotted key: the time to parse one grows with the square of their number."""

_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")


def parse_toml(content: bytes) -> JsonObject:
    """Return the values of a TOML file.

    Raises:
        ValueError: the content is not valid TOML; the text has the reason and the line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"cannot be read: {error} (at line {line})") from error
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise ValueError(f"not valid TOML: a key has more than {MAX_KEY_PARTS} parts (at line {line})")
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(f"not valid TOML: nested too deeply (at line {_deepest_line(text)})") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from error
    except ValueError as error:
        # Python refuses to parse integers of more than some thousand digits.
        line = next((at for at, part in enumerate(text.split("\n"), 1) if _LONG_NUMBER.search(part)), 1)
        raise ValueError(f"not valid TOML: a number is too long (at line {line})") from error
    if nests_deeper(values):
        raise ValueError(f"not valid TOML: nested too deeply (at line {_deepest_line(text)})")
    return values


_LONG_NUMBER = re.compile(r"[\d_]{4000}")


def _deepest_line(text: str) -> int:
    """Return the line with the most opening brackets, for an error message; brackets in strings count, too."""
    counts = [line.count("[") + line.count("{") for line in text.split("\n")]
    return counts.index(max(counts)) + 1


FOREIGN_TOOL_NAMES: dict[str, tuple[str, ...]] = {
    "bash": ("Bash",),
    "read": ("Read", "NotebookRead"),
    "write": ("Write",),
    "edit": ("Edit", "MultiEdit"),
    "notebook_edit": ("NotebookEdit",),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "agent": ("Task", "Agent"),
    "fetch": ("WebFetch",),
    "web_search": ("WebSearch",),
    "todo": ("TodoWrite",),
    "ask_user": ("AskUserQuestion",),
    "present_plan": ("ExitPlanMode",),
    "skill": ("Skill",),
    "bash_output": ("BashOutput", "TaskOutput"),
    "kill_bash": ("KillShell", "KillBash", "TaskStop"),
}
"""The other agent's name of each tool, and further ones that matchers use."""

LENIENT_MODES = ("default", "acceptEdits", "bypassPermissions", "auto")
"""Permission modes of other agents that restrict nothing."""


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """The fields of one kind of record. None and False are like a field that is not there."""

    used: frozenset[str]
    harmless: frozenset[str]
    """Fields without a use here that change nothing about what runs, when it runs and what its answer means."""
    needed: frozenset[str] = frozenset()
    """Fields without a use here that change the meaning of the record."""
    guards: bool = False
    """True if the record runs something or restricts something: then an unknown field may change its meaning, too."""

    def changing(self, record: JsonObject) -> tuple[str, ...]:
        """Return the fields because of which the record must not be used."""
        return tuple(name for name in self._unused(record) if name in self.needed or self.guards)

    def ignored(self, record: JsonObject) -> tuple[str, ...]:
        """Return the unknown fields that are left out, although the record is used."""
        return tuple(name for name in self._unused(record) if not (name in self.needed or self.guards))

    def _unused(self, record: JsonObject) -> list[str]:
        known = self.used | self.harmless
        set_names = (name for name, value in record.items() if value is not None and value is not False)
        return [name for name in set_names if name not in known]


def as_list(names: tuple[str, ...]) -> str:
    """Return names of fields for a message: the first five, quoted and cut to 60 characters, and how many others."""
    return ", ".join(repr(name[:60]) for name in names[:5]) + ("" if len(names) <= 5 else f" and {len(names) - 5} more")
