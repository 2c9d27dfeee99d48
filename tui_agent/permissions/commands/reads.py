"""Reads of a read-only command, by its sorted words."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tui_agent.permissions.shell.syntax import PIPE

from .argv import Arguments, parse_arguments
from .catalogue import CommandFacts


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


def parse_options(command: CommandFacts, words: Sequence[str]) -> Arguments | None:
    """Parse the words after a command's name; None if one of them is not certain or not known to be harmless."""
    found = parse_arguments(command, words)
    return found if found.is_exact else None


def reads_of(command: CommandFacts, options: Arguments) -> Reads | None:
    """Return the reads of the parsed words, or None if the command does not allow as many operands."""
    operands = tuple(operand for operand in options.operands if operand not in ("-", "", PIPE))
    paths = tuple(options.paths)
    match command.reads:
        case "ANY" | "TEXT":
            return Reads(paths)
        case "NONE":
            return None if options.operands else Reads()
        case "ONE" | "TWO":
            allowed = 1 if command.reads == "ONE" else 2
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
            is_search = command.reads == "SEARCH"
            return Reads(paths, operands or (".",)) if is_search else Reads(paths + operands)
        case None:
            return None
