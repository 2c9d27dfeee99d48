"""Which files of a tree a search looks into, where its options leave some out for certain.

A rule that denies reading `.env` is no reason to ask about `rg foo`, which passes hidden files by. What is not sure to
be left out counts as looked into.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise

from .read_only_find import finds_all_at_once
from .read_only_options import Options

_GLOB = re.compile(r"[\w.*?@+ -]+\Z", re.ASCII)
_PATHSPEC = re.compile(r"[\w.*?@+ -][\w./*?@+ -]*\Z", re.ASCII)
_TYPES = {"py": ("*.py", "*.pyi"), "rust": ("*.rs",), "go": ("*.go",), "ts": ("*.ts", "*.tsx", "*.cts", "*.mts")}
"""Names of the files that `rg` takes for those of a type."""
_SEES_HIDDEN = ("-u", "-.", "--hidden", "--unrestricted", "--no-ignore")
_UNCLEAR = ("--iglob", "--type-not", "-T", "--glob-case-insensitive", "--ignore-file", "--type-add")


@dataclass(frozen=True, slots=True)
class TreeFilter:
    """What of a tree is looked into; without anything said: all of it."""

    wanted: tuple[str, ...] = ()
    """Patterns for names of files; some: only files that fit one of them."""
    unwanted: tuple[str, ...] = ()
    """Patterns for names of files that are left out."""
    without: tuple[str, ...] = ()
    """Patterns for names of directories that are left out with everything in them."""
    is_hidden_out: bool = False
    """Directories with a dot in front of their names are left out, and files unless `has_hidden_files`."""
    has_hidden_files: bool = False
    below: tuple[str, ...] = ()
    """Patterns for paths; some: only what fits one of them, or is below one that does."""

    def enters(self, path: str) -> bool:
        """Whether anything in a directory may be looked into.

        Args:
            path: below the tree, relative to it.
        """
        parts = path.split("/")
        if any(fnmatchcase(one, pattern) for one in parts for pattern in self.without):
            return False
        return not (self.is_hidden_out and any(one.startswith(".") for one in parts))

    def includes(self, path: str) -> bool:
        """Whether a file may be looked into.

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


def search_filter(name: str, options: Options) -> TreeFilter | None:
    """What `grep` or `rg` with these options looks into; None: perhaps everything."""
    return _of_grep(options) if name == "grep" else _of_rg(options)


def find_filter(words: Sequence[str]) -> TreeFilter | None:
    """What `find` with these words, its name included, comes upon; None: perhaps everything."""
    patterns = tuple(after for before, after in pairwise(words) if before == "-name")
    is_sure = finds_all_at_once(words) and len(patterns) == 1 and _GLOB.match(patterns[0])
    return TreeFilter(patterns) if is_sure else None


def pathspec_filter(specs: Sequence[str]) -> TreeFilter | None:
    """What git looks into that is given these paths; None: perhaps everything."""
    if not specs or not all(_PATHSPEC.match(spec) and ".." not in spec and spec not in (".", "./") for spec in specs):
        return None
    return TreeFilter(below=tuple(spec.removeprefix("./").rstrip("/") for spec in specs))


def _of_grep(options: Options) -> TreeFilter | None:
    wanted, unwanted = (tuple(options.given.get(option, ())) for option in ("--include", "--exclude"))
    without = tuple(options.given.get("--exclude-dir", ()))
    # Which of both kinds counts depends on their order.
    if (wanted and unwanted) or not all(map(_GLOB.match, (*wanted, *unwanted, *without))):
        return None
    return TreeFilter(wanted, unwanted, without) if wanted or unwanted or without else None


def _of_rg(options: Options) -> TreeFilter | None:
    if options.has(*_UNCLEAR):
        return None
    globs = [*options.given.get("-g", ()), *options.given.get("--glob", ())]
    if not all(_GLOB.match(glob.removeprefix("!")) for glob in globs):
        return None
    wanted = tuple(glob for glob in globs if not glob.startswith("!"))
    if wanted:
        # What is asked for by name is looked into, hidden or not.
        return TreeFilter(wanted)
    types = [*options.given.get("-t", ()), *options.given.get("--type", ())]
    kinds = tuple(ending for one in types for ending in _TYPES.get(one, ("*",)))
    unwanted = tuple(glob[1:] for glob in globs)
    hides = not options.has(*_SEES_HIDDEN)
    # A file of a wanted type is looked into though it is hidden, but not in a hidden directory.
    return TreeFilter(kinds, unwanted, unwanted, is_hidden_out=hides, has_hidden_files=bool(types))


def _is_below(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*") or pattern.startswith(f"{path}/")
