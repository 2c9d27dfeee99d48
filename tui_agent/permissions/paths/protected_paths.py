"""Paths that no call may write, in any mode: version control, hooks, installed packages, our own settings.

They are recognised by name, at any depth and in any spelling, whether they exist or not; and by content: a repository
under another path is as protected as the file that points to it.
"""

import os
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache

from .path_resolution import TooMuchError, entries_below
from .repository import REPOSITORY_NAMES, holds_repository

PROTECTED_NAMES = {
    **dict.fromkeys(REPOSITORY_NAMES, "version control data"),
    ".husky": "commit hooks",
    "node_modules": "installed packages",
    ".tui-agent": "the agent's own settings",
    ".mcp.json": "tool servers that the agent starts",
}
"""Names of directories (or files) that are never written, with their contents."""

_DEFINITIONS = {
    ".claude": ("settings*.json", "hooks", "skills", "commands", "agents"),
    ".agents": ("skills",),
}
"""Directories of a project, and patterns of names in them: agents run or read what is there."""

MAX_ENTRIES = 100_000
"""Maximum number of directory entries to search for protected ones."""

_PATTERN = frozenset("*?[")
_IGNORABLE_RANGES = ((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
                     (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF))  # fmt: skip


def protected_name(path: str) -> str | None:
    """Return why one of a path's names is protected, or None. Backslashes separate names, too."""
    for name in path.replace("\\", "/").split("/"):
        if len(name) >= 4 and (what := PROTECTED_NAMES.get(fold_name(name))):
            return f"{name} contains {what}"
    return None


def names_project_definition(path: str) -> bool:
    """Return True if a path is that of a definition or hook that agents take from a project, or contains some."""
    names = [fold_name(name) for name in path.replace("\\", "/").split("/") if name not in ("", ".")]
    for place, name in enumerate(names):
        if name in _DEFINITIONS:
            return place + 1 == len(names) or is_definition(name, names[place + 1])
    return False


def is_definition(directory: str, name: str) -> bool:
    """Return True if agents run or read what has this name in a directory of that name."""
    patterns = _DEFINITIONS.get(fold_name(directory), ())
    return any(fnmatchcase(fold_name(name), pattern) for pattern in patterns)


def may_mean_protected(pattern: str) -> bool:
    """True if a component with a pattern and with literal characters matches a protected name."""
    is_pattern = not _PATTERN.isdisjoint(pattern) and bool(pattern.strip("*?[]"))
    return is_pattern and any(fnmatchcase(name, pattern.lower()) for name in PROTECTED_NAMES)


@lru_cache(maxsize=4_096)
def fold_name(name: str) -> str:
    """Return a file name as the most lenient file system compares it.

    Case, ignorable characters and stream suffixes do not count.
    """
    if name.isascii():
        folded = name.lower()
    else:
        composed = unicodedata.normalize("NFKC", name).casefold()
        folded = "".join(letter for letter in composed if not _is_ignorable(letter))
    return folded.partition(":")[0].rstrip(". ") or folded


def holds_protected(top: str) -> str | None:
    """Return the path of a protected entry below a directory that is to be changed as a whole, or None."""
    try:
        for entry in entries_below(top, MAX_ENTRIES):
            directory = os.path.dirname(entry.path)
            if entry.name == "HEAD" and directory != top and holds_repository(directory):
                return os.path.relpath(directory, top)
            if protected_name(entry.name):
                return os.path.relpath(entry.path, top)
    except TooMuchError:
        return f"more than {MAX_ENTRIES:,} files"
    return None


def _is_ignorable(letter: str) -> bool:
    code = ord(letter)
    return unicodedata.category(letter) in ("Cf", "Cc") or any(low <= code <= high for low, high in _IGNORABLE_RANGES)
