"""Files of a tree that a search reads, where its options certainly exclude some.

A rule that denies reading `.env` is no reason to ask about `rg foo`, which skips hidden files. A file that is not
certainly excluded counts as read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from tui_agent.permissions.commands.argv import Arguments
from tui_agent.permissions.commands.find import finds_all_at_once

_GLOB = re.compile(r"[\w.*?@+ -]+\Z", re.ASCII)
_PATHSPEC = re.compile(r"[\w.*?@+ -][\w./*?@+ -]*\Z", re.ASCII)
_TYPES = {"py": ("*.py", "*.pyi"), "rust": ("*.rs",), "go": ("*.go",), "ts": ("*.ts", "*.tsx", "*.cts", "*.mts")}
"""File name patterns of `rg`'s types."""
_SEES_HIDDEN = ("-u", "-.", "--hidden", "--unrestricted", "--no-ignore")
_UNCLEAR = ("--iglob", "--type-not", "-T", "--glob-case-insensitive", "--ignore-file", "--type-add")


@dataclass(frozen=True, slots=True)
class TreeFilter:
    """Filter for a tree; the default is everything."""

    wanted: tuple[str, ...] = ()
    """Patterns for file names; if there are any, only matching files are read."""
    unwanted: tuple[str, ...] = ()
    """Patterns for names of excluded files."""
    without: tuple[str, ...] = ()
    """Patterns for names of directories excluded with their contents."""
    is_hidden_out: bool = False
    """True if hidden directories are excluded, and hidden files unless `has_hidden_files`."""
    has_hidden_files: bool = False
    below: tuple[str, ...] = ()
    """Patterns for paths; if there are any, only matches and the files below them are read."""

    def enters(self, path: str) -> bool:
        """True if anything in a directory may be read.

        Args:
            path: below the tree, relative to it.
        """
        parts = path.split("/")
        if any(fnmatchcase(one, pattern) for one in parts for pattern in self.without):
            return False
        return not (self.is_hidden_out and any(one.startswith(".") for one in parts))

    def includes(self, path: str) -> bool:
        """True if a file may be read.

        Args:
            path: below the tree, relative to it.
        """
        name = path.rpartition("/")[2]
        if self.is_hidden_out and not self.has_hidden_files and name.startswith("."):
            return False
        if "/" in path and not self.enters(path.rpartition("/")[0]):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.without):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self.unwanted):
            return False
        if self.below and not any(_is_below(path, pattern) for pattern in self.below):
            return False
        return not self.wanted or any(fnmatchcase(name, pattern) for pattern in self.wanted)


def search_filter(name: str, options: Arguments) -> TreeFilter | None:
    """Return the filter of a `grep` or `rg` with these options; None for everything."""
    return _of_grep(options) if name == "grep" else _of_rg(options)


def find_filter(words: Sequence[str]) -> TreeFilter | None:
    """Return the filter of a `find` with these words, its name included; None for everything."""
    patterns = tuple(after for before, after in pairwise(words) if before == "-name")
    is_sure = finds_all_at_once(words) and len(patterns) == 1 and _GLOB.match(patterns[0])
    return TreeFilter(patterns) if is_sure else None


def pathspec_filter(specs: Sequence[str]) -> TreeFilter | None:
    """Return the filter of a git command with these paths; None for everything."""
    if not specs or not all(_PATHSPEC.match(spec) and ".." not in spec and spec not in (".", "./") for spec in specs):
        return None
    return TreeFilter(below=tuple(spec.removeprefix("./").rstrip("/") for spec in specs))


def _of_grep(options: Arguments) -> TreeFilter | None:
    wanted, unwanted = (tuple(options.given.get(option, ())) for option in ("--include", "--exclude"))
    without = tuple(options.given.get("--exclude-dir", ()))
    # With both kinds, the result depends on their order.
    if (wanted and unwanted) or not all(map(_GLOB.match, (*wanted, *unwanted, *without))):
        return None
    return TreeFilter(wanted, unwanted, without) if wanted or unwanted or without else None


def _of_rg(options: Arguments) -> TreeFilter | None:
    if options.has(*_UNCLEAR):
        return None
    globs = [*options.given.get("-g", ()), *options.given.get("--glob", ())]
    if not all(_GLOB.match(glob.removeprefix("!")) for glob in globs):
        return None
    wanted = tuple(glob for glob in globs if not glob.startswith("!"))
    if wanted:
        # An explicit glob matches hidden files, too.
        return TreeFilter(wanted)
    types = [*options.given.get("-t", ()), *options.given.get("--type", ())]
    kinds = tuple(ending for one in types for ending in _TYPES.get(one, ("*",)))
    unwanted = tuple(glob[1:] for glob in globs)
    hides = not options.has(*_SEES_HIDDEN)
    # A type matches hidden files, too, but not in hidden directories.
    return TreeFilter(kinds, unwanted, unwanted, is_hidden_out=hides, has_hidden_files=bool(types))


def _is_below(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*") or pattern.startswith(f"{path}/")
