"""Option parser for commands that change files, by their entries in the table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from .writer_table import EDITS_IN_PLACE, PLAIN_FLAGS, OptionValue, Writer

_REMOTE = re.compile(r"(?:[^/@]*@)?[\w.-]+:|[a-z]+://")
_KINDS: tuple[OptionValue, ...] = get_args(OptionValue)
_NO_VALUE: OptionValue = ""


@dataclass(frozen=True, slots=True)
class Write:
    """A path that is changed."""

    path: str
    whole: bool = False
    """True if everything below it is changed, too."""


@dataclass(slots=True)
class ParsedArguments:
    """Parsed words of a writer."""

    operands: list[str] = field(default_factory=list[str])
    flags: set[str] = field(default_factory=set[str])
    """Every option, in full and as written; joined flags one by one."""
    written: list[str] = field(default_factory=list[str])
    """Values of options that are changed."""
    code: list[str] = field(default_factory=list[str])
    """Values of options that are programs."""
    unclear: list[str] = field(default_factory=list[str])
    """Values of options that the entry does not contain."""
    read: list[str] = field(default_factory=list[str])
    """Values of options that are read."""
    into: str | None = None
    """Target directory named by an option."""
    directory: str | None = None
    """Directory that the command changes to first."""

    @property
    def sources(self) -> list[str]:
        """Files that are copied, moved or linked."""
        if self.into is not None or len(self.operands) < 2:
            return self.operands
        return self.operands[:-1]

    @property
    def target(self) -> str:
        """Target of these files; `.` by default."""
        if self.into is not None:
            return self.into
        return self.operands[-1] if len(self.operands) > 1 else "."

    def has(self, *options: str) -> bool:
        """True if one of these options is present."""
        return not self.flags.isdisjoint(options)


def parse_writer_arguments(name: str, entry: Writer, words: Sequence[str]) -> ParsedArguments:
    """Parse the words after a command's name."""
    found = ParsedArguments()
    waiting = list(reversed(words))
    is_after_unknown = False
    while waiting:
        word = waiting.pop()
        if word == "--":
            found.operands.extend(reversed(waiting))
            break
        if not word.startswith("-") or word == "-":
            found.operands.append(word)
            found.unclear.extend([word] if is_after_unknown else ())
            is_after_unknown = False
            continue
        option, value = _option(name, entry, word)
        meant = _meant(entry, option)
        letters = "" if word.startswith("--") else word[1 : len(word) - len(value or "")]
        found.flags |= {option, *meant, *(f"-{letter}" for letter in letters)}
        kind = _NO_VALUE
        for one in meant:
            kind = _stricter(kind, entry.values.get(one, _NO_VALUE))
        is_after_unknown = word.startswith("--") and not meant and value is None and word not in PLAIN_FLAGS
        if kind and value is None and waiting:
            # An abbreviation may also be an option of its own without a value: then the next word is an operand, too.
            value = waiting.pop() if option in meant else waiting[-1]
        if value is None and not kind and not word.startswith("--"):
            # An unknown letter may take the rest of the word as its value.
            found.unclear.extend(word[at:] for at in range(2, min(len(word) - 3, 6)))
        if value is not None:
            _keep(found, kind, value)
    return found


def writes_of(name: str, entry: Writer, found: ParsedArguments) -> list[Write]:
    """Return the changes of a command, by its role."""
    whole = found.has(*entry.whole)
    writes = [Write(path, whole) for path in found.written]
    if found.into is not None:
        writes.append(Write(found.into, whole))
    operands = found.operands
    if name == "sed" and not found.has("-e", "-f", "--expression", "--file"):
        operands = operands[1:]  # The first operand is the script.
    is_active = (not entry.needed or found.has(*entry.needed)) and not found.has(*entry.preventing)
    if not is_active or not operands:
        return writes
    if entry.role == "ALL" or (name == "install" and found.has("-d", "--directory")):
        writes.extend(Write(operand, whole) for operand in operands)
    elif entry.role == "FIRST":
        writes.append(Write(operands[0], whole))
    elif entry.role == "SECOND":
        writes.extend(Write(operand, whole) for operand in operands[1:2])
    elif entry.role in ("LAST", "MOVE"):
        if not is_remote(found.target):
            writes.extend(_into(found, whole))
        if entry.role == "MOVE":
            writes.extend(Write(source, whole=True) for source in found.sources)
    return list(dict.fromkeys(writes))


def options_of(name: str, entry: Writer, word: str) -> list[str]:
    """Return the options with a value, or their full names, that a word may mean."""
    option, _ = _option(name, entry, word)
    return _meant(entry, option)


def is_remote(path: str) -> bool:
    """True for a file on another machine: `host:path` or a URL."""
    return bool(_REMOTE.match(path))


def _stricter(first: OptionValue, second: OptionValue) -> OptionValue:
    return first if _KINDS.index(first) >= _KINDS.index(second) else second


def _keep(found: ParsedArguments, kind: OptionValue, value: str) -> None:
    match kind:
        case "write":
            found.written.append(value)
        case "into":
            found.into = value
        case "directory":
            found.directory = value
        case "code":
            found.code.append(value)
        case "":
            found.unclear.append(value)
        case "read":
            found.read.append(value)
        case "text":
            pass


def _into(found: ParsedArguments, whole: bool) -> list[Write]:
    """Return the target and, in case it is a directory, the paths of the sources in it."""
    writes = [Write(found.target, whole)]
    for source in found.sources:
        keeps_path = found.has("--parents", "-R", "--relative")
        name = source.lstrip("/") if keeps_path else source.rstrip("/").rsplit("/", 1)[-1]
        if name not in ("", ".", ".."):
            writes.append(Write(f"{found.target}/{name}"))
    return writes


def _meant(entry: Writer, option: str) -> list[str]:
    """Return the options of the entry that a word may mean: itself, or the long options it may abbreviate."""
    known = entry.options
    if option in known:
        return [option]
    return [name for name in known if option.startswith("--") and name.startswith(option)]


def _option(name: str, entry: Writer, word: str) -> tuple[str, str | None]:
    """Return the option that a word ends with, and the value attached to it."""
    if word in entry.values:
        return word, None
    if word.startswith("--"):
        option, equals, value = word.partition("=")
        return option, value if equals else None
    for place in range(1, len(word)):
        option = f"-{word[place]}"
        if option in entry.values:
            return option, word[place + 1 :] or None
        if option == "-i" and name in EDITS_IN_PLACE:
            break  # The rest of the word is its suffix.
    return word, None
