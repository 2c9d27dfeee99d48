"""Sorts the words of a command that changes files, by its entry in the table."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .writer_table import EDITS_IN_PLACE, Writer

_REMOTE = re.compile(r"(?:[^/@]*@)?[\w.-]+:|[a-z]+://")


@dataclass(frozen=True, slots=True)
class Write:
    """A path that is changed."""

    path: str
    whole: bool = False
    """With everything below it."""


@dataclass(slots=True)
class SortedWords:
    """A writer's words, sorted."""

    operands: list[str] = field(default_factory=list[str])
    flags: set[str] = field(default_factory=set[str])
    """Every option that was given, those joined behind one dash one by one."""
    written: list[str] = field(default_factory=list[str])
    """Values of options that are changed."""
    into: str | None = None
    """The directory that things go into, where an option names it."""
    directory: str | None = None
    """The directory that the command goes to first."""

    @property
    def sources(self) -> list[str]:
        """What is copied, moved or linked."""
        if self.into is not None or len(self.operands) < 2:
            return self.operands
        return self.operands[:-1]

    @property
    def target(self) -> str:
        """Where that goes; `.` where it is not said."""
        if self.into is not None:
            return self.into
        return self.operands[-1] if len(self.operands) > 1 else "."

    def has(self, *options: str) -> bool:
        """Whether one of these options was given."""
        return not self.flags.isdisjoint(options)


def sort_words(name: str, entry: Writer, words: Sequence[str]) -> SortedWords:
    """Sorts the words behind a command's name."""
    found = SortedWords()
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            found.operands.extend(reversed(waiting))
            break
        if not word.startswith("-") or word == "-":
            found.operands.append(word)
            continue
        option, value = _option(name, entry, word)
        found.flags.update((option,) if word.startswith("--") else (option, *(f"-{letter}" for letter in word[1:])))
        kind = entry.values.get(option, "")
        if kind and value is None and waiting:
            value = waiting.pop()
        if value is None:
            continue
        match kind:
            case "write":
                found.written.append(value)
            case "into":
                found.into = value
            case "directory":
                found.directory = value
            case "text" | "read" | "":
                pass
    return found


def writes_of(name: str, entry: Writer, found: SortedWords) -> list[Write]:
    """What a command changes, by its role."""
    whole = found.has(*entry.whole)
    writes = [Write(path, whole) for path in found.written]
    operands = found.operands
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
    return writes


def is_remote(path: str) -> bool:
    """Whether it names something on another machine: `host:path`, an address."""
    return bool(_REMOTE.match(path))


def _into(found: SortedWords, whole: bool) -> list[Write]:
    """The target and, in case it is a directory, the names that the sources get in it."""
    writes = [Write(found.target, whole)]
    for source in found.sources:
        keeps_path = found.has("--parents", "-R", "--relative")
        name = source.lstrip("/") if keeps_path else source.rstrip("/").rsplit("/", 1)[-1]
        if name not in ("", ".", ".."):
            writes.append(Write(f"{found.target}/{name}"))
    return writes


def _option(name: str, entry: Writer, word: str) -> tuple[str, str | None]:
    """The option a word ends with, and the value that is in the same word."""
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
            break
    return word, None
