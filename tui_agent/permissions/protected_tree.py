"""Every protected path that exists below a workspace, for a sandbox to bind read-only (safety promise 10).

A decision checks one path. A sandbox needs all of them at once, because a program may open any path.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .path_resolution import is_within
from .protected_paths import PROTECTED_NAMES, git_directories, is_git_directory, protected_name

MAX_DIRECTORIES = 100_000
"""Maximum number of directories to scan."""
MAX_PLACES = 1_000
"""Maximum number of paths to return."""
_SHORT_NAMES = frozenset(name for name in PROTECTED_NAMES if "~" in name)
"""Aliases of other names on file systems with short names."""


def protected_tree(workspace: Path, private_paths: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the paths below a workspace that no program may change. Blocks.

    These are: protected names at any depth, repositories under other names, targets of `.git` files, and unreadable
    directories. The protected names at the top and `private_paths` are included even if they do not exist yet. No path
    is inside another.

    Args:
        workspace: absolute, links followed.
        private_paths: our own settings and sessions; those outside the workspace are ignored.

    Raises:
        ToolError: the workspace has too many directories, or cannot be listed.
    """
    top = str(workspace)
    found = {os.path.join(top, name) for name in PROTECTED_NAMES if name not in _SHORT_NAMES}
    found |= {str(path) for path in private_paths if is_within(str(path), top)}
    waiting = [top]
    seen = 0
    while waiting:
        directory = waiting.pop()
        seen += 1
        if seen > MAX_DIRECTORIES or len(found) > MAX_PLACES:
            raise ToolError(
                f"{top} is too large for the sandbox: more than {MAX_DIRECTORIES:,} directories, or {MAX_PLACES:,} "
                "protected paths. Work in a subdirectory."
            )
        waiting += _look_into(directory, top, found)
    return tuple(Path(path) for path in sorted(found) if not any(is_within(path, one) for one in found - {path}))


def _look_into(directory: str, top: str, found: set[str]) -> list[str]:
    """Add the protected entries of one directory; return the directories to scan next."""
    try:
        with os.scandir(directory) as entries:
            listed = list(entries)
    except OSError as error:
        if directory == top:
            raise ToolError(f"{top} cannot be listed: {error.strerror}") from error
        if not isinstance(error, FileNotFoundError):
            found.add(directory)
        return []
    if any(entry.name == "HEAD" for entry in listed) and is_git_directory(directory):
        found.add(directory)
        return []
    below: list[str] = []
    for entry in listed:
        if protected_name(entry.name):
            found |= _places_of(entry, directory, top)
        elif entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
    return below


def _places_of(entry: os.DirEntry[str], directory: str, top: str) -> set[str]:
    """Return the paths behind one protected entry: itself, a link's target, a pointer file's targets."""
    places = {entry.path}
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        places = {target} if directory != top else {entry.path, target}
    if entry.name == ".git" and entry.is_file():
        places |= set(git_directories(directory))
    return {place for place in places if is_within(place, top) and place != top}
