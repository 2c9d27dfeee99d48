"""The places that no call may write, in any mode: version control, hooks, installed packages, our own settings.

They are known by name, at any depth, whether they exist or not and however the name is spelled, and by what is in
them: a repository kept elsewhere is as protected as the `.git` file that points to it.
"""

import os
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache

from tui_agent.protocol.regular_file import read_regular_file

from .path_resolution import is_within, resolve

PROTECTED_NAMES = {
    ".git": "version control data",
    "git~1": "version control data",
    ".husky": "commit hooks",
    "node_modules": "installed packages",
    ".tui-agent": "the agent's own settings",
}
"""Directory names (or pointer files) that are never written, and what they hold."""

_PATTERN = frozenset("*?[")
_POINTER_BYTES = 4_096
_MAX_DEPTH = 40
_GIT_DIRECTORY_SIGNS = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
_IGNORABLE_RANGES = ((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164),
                     (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF))  # fmt: skip


def protected_name(path: str) -> str | None:
    """Why a path is protected by one of its names; None if it is not. Backslashes separate names, too."""
    for name in path.replace("\\", "/").split("/"):
        if len(name) >= 4 and (what := PROTECTED_NAMES.get(fold_name(name))):
            return f"{name} holds {what}"
    return None


def may_mean_protected(pattern: str) -> bool:
    """Whether a component with a pattern, and with letters of its own, fits a protected name."""
    is_pattern = not _PATTERN.isdisjoint(pattern) and bool(pattern.strip("*?[]"))
    return is_pattern and any(fnmatchcase(name, pattern.lower()) for name in PROTECTED_NAMES)


@lru_cache(maxsize=4_096)
def fold_name(name: str) -> str:
    """A file name as the most forgiving file system compares it: without case, ignorable letters, stream suffixes."""
    if name.isascii():
        folded = name.lower()
    else:
        composed = unicodedata.normalize("NFKC", name).casefold()
        folded = "".join(letter for letter in composed if not _is_ignorable(letter))
    return folded.partition(":")[0].rstrip(". ") or folded


def protected_repository(path: str, workspace: str) -> str | None:
    """Why a resolved path is protected by what lies around it: inside a repository, or where a `.git` file points.

    Looks at the directories from the path up to the workspace (for a path outside: up to the root), and at where the
    workspace's own repository is.
    """
    top = workspace if is_within(path, workspace) else "/"
    directory: str = path
    for _ in range(_MAX_DEPTH):
        if is_git_directory(directory):
            return f"{directory} is a repository's data"
        for target in _pointed_at(directory):
            if is_within(path, target):
                return f"{target} is where {directory}/.git points"
        if directory in (top, "/"):
            break
        directory = os.path.dirname(directory)
    return _pointed_from_above(path, workspace)


def holds_protected(directory: str) -> str | None:
    """The name of a protected place directly below a directory that is to be changed as a whole; None if none is."""
    try:
        with os.scandir(directory) as entries:
            return next((entry.name for entry in entries if protected_name(entry.name)), None)
    except OSError:
        return None


def git_directories(directory: str) -> list[str]:
    """Where the repository of a directory with a `.git` keeps its data, and where it keeps what it shares."""
    own = os.path.join(directory, ".git")
    if not os.path.isdir(own):
        return _pointed_at(directory)
    common = _first_line(os.path.join(own, "commondir"))
    return [own, resolve(common, own).path] if common else [own]


def is_git_directory(directory: str) -> bool:
    """Whether a directory is a repository's data, whatever its name."""
    if not os.path.lexists(os.path.join(directory, "HEAD")):
        return False
    return any(all(os.path.lexists(os.path.join(directory, name)) for name in signs) for signs in _GIT_DIRECTORY_SIGNS)


def _pointed_from_above(path: str, workspace: str) -> str | None:
    directory: str = workspace
    for _ in range(_MAX_DEPTH):
        for target in _pointed_at(directory):
            if is_within(path, target):
                return f"{target} is where {directory}/.git points"
        if directory == "/":
            break
        directory = os.path.dirname(directory)
    return None


def _pointed_at(directory: str) -> list[str]:
    """The repository that a `.git` file in `directory` points to, and the one it shares its data with."""
    pointer = os.path.join(directory, ".git")
    if not os.path.isfile(pointer):
        return []
    target = _first_line(pointer).removeprefix("gitdir:").strip()
    if not target:
        return []
    git_directory = resolve(target, directory).path
    common = _first_line(os.path.join(git_directory, "commondir"))
    return [git_directory, resolve(common, git_directory).path] if common else [git_directory]


def _first_line(path: str) -> str:
    try:
        first, _, _ = read_regular_file(path).partition(b"\n")
        return first[:_POINTER_BYTES].decode("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


def _is_ignorable(letter: str) -> bool:
    code = ord(letter)
    return unicodedata.category(letter) in ("Cf", "Cc") or any(low <= code <= high for low, high in _IGNORABLE_RANGES)
