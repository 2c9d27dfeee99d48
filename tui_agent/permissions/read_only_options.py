"""Option parser for read-only commands: reads options as the command does and refuses those not in its entry."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .read_only_table import ReadOnlyCommand, ValueKind
from .shell_syntax import PIPE, UNKNOWN, VARIABLE


class FileFilter(Protocol):
    """Filter for the files of a tree that a command reads."""

    def includes(self, path: str) -> bool:
        """True if the command may read a file below the tree, by its path."""
        ...

    def enters(self, path: str) -> bool:
        """True if the command may read anything in a directory below the tree."""
        ...


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads of a read-only command."""

    paths: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    """Directories read with everything below them."""
    listed: tuple[str, ...] = ()
    """Directories whose names are shown, with all names below them but no contents."""
    includes: FileFilter | None = None
    """Filter for the files read in `trees`; None for all."""
    shows_remote_urls: bool = False
    """True if the output includes the URLs of the repository's remotes."""
    from_top: bool = False
    """True if the reads may be anywhere in the repository, not only in `trees`."""
    follows_links: bool = False
    """True if links in `trees` are followed; none may lead out of its tree."""
    only_files: bool = False
    """True if links inside a directory are followed; no path may be a directory."""
    repository: str | None = None
    """Directory whose git repository, with its settings, is used."""


@dataclass(slots=True)
class Options:
    """Parsed words of a command."""

    operands: list[str] = field(default_factory=list[str])
    paths: list[str] = field(default_factory=list[str])
    """Values of options that are read as files."""
    given: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Values of each option; empty texts for flags."""

    def has(self, *options: str) -> bool:
        """True if one of these options is present."""
        return any(option in self.given for option in options)


def is_known(word: str) -> bool:
    """True if a word is certain; the name of a pipe counts as certain."""
    return UNKNOWN not in word and VARIABLE not in word and (PIPE not in word or word == PIPE)


def parse_options(command: ReadOnlyCommand, words: Sequence[str]) -> Options | None:
    """Parse the words after a command's name; None if one of them is not in the entry or not certain."""
    options = Options()
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if not is_known(word):
            return None
        if word == "--":
            if not all(is_known(operand) for operand in waiting):
                return None
            options.operands.extend(reversed(waiting))
            break
        if not word.startswith("-") or word == "-":
            options.operands.append(word)
        elif not _take(command, word, waiting, options):
            return None
    return options


def reads_of(command: ReadOnlyCommand, options: Options) -> Reads | None:
    """Return the reads of the parsed words, or None if the command does not allow as many operands."""
    operands = tuple(operand for operand in options.operands if operand not in ("-", "", PIPE))
    paths = tuple(options.paths)
    match command.operands:
        case "ANY" | "TEXT":
            return Reads(paths)
        case "NONE":
            return None if options.operands else Reads()
        case "ONE" | "TWO":
            allowed = 1 if command.operands == "ONE" else 2
            return None if len(options.operands) > allowed else Reads(paths + operands)
        case "PATHS":
            return Reads(paths + operands)
        case "LIST":
            return Reads(paths + (operands or (".",)))
        case "TREES":
            return Reads(paths, operands or (".",))
        case "PATTERN" | "SEARCH":
            if options.operands and not options.has(*command.gives_pattern):
                operands = tuple(operand for operand in options.operands[1:] if operand not in ("-", PIPE))
            is_search = command.operands == "SEARCH"
            return Reads(paths, operands or (".",)) if is_search else Reads(paths + operands)


def _take(command: ReadOnlyCommand, word: str, waiting: list[str], options: Options) -> bool:
    """Parse one option word, with its value from the next word if needed."""
    if command.takes_number and word[1:].isdigit():
        return True  # Such as `head -5`.
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        kind = command.options.get(name)
        if kind is None or (equals and kind == ""):
            return False
        if equals or kind in ("", "optional"):
            return _note(options, name, kind, value)
        return bool(waiting) and _note(options, name, kind, waiting.pop())
    if not command.joins:
        return _take_one(command, word, "", waiting, options)
    for place in range(1, len(word)):
        option = f"-{word[place]}"
        kind = command.options.get(option)
        if kind is None:
            return False
        if kind != "":  # The rest of the word is its value.
            return _take_one(command, option, word[place + 1 :], waiting, options)
        options.given.setdefault(option, []).append("")
    return True


def _take_one(command: ReadOnlyCommand, option: str, attached: str, waiting: list[str], options: Options) -> bool:
    kind = command.options.get(option)
    if kind is None:
        return False
    if kind in ("", "optional") or attached:
        return _note(options, option, kind, attached)
    return bool(waiting) and _note(options, option, kind, waiting.pop())


def _note(options: Options, option: str, kind: ValueKind, value: str) -> bool:
    if not is_known(value):
        return False
    options.given.setdefault(option, []).append(value)
    if kind == "path" and value not in ("-", PIPE):
        options.paths.append(value)
    return True
