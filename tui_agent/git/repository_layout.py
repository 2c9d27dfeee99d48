"""Repositories of git: the directories of their data, and the nested ones in their index. All functions block."""

import os
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from tui_agent.protocol.regular_file import read_regular_file

OWN_DIRECTORY = ".git"
"""Usual name of a repository's own directory."""
REPOSITORY_NAMES = (OWN_DIRECTORY, "git~1")
"""Names of it, also on file systems with short names."""
MAX_INDEX_BYTES = 50_000_000
"""Maximum size of an index that is searched for nested repositories."""

_MAX_DEPTH = 40
_GIT_DIRECTORY_SIGNS = (("HEAD", "objects", "refs"), ("HEAD", "commondir"))
_GIT_FILES = ("config", "config.worktree", "commondir", "info/attributes")
"""Files of a repository that can make git start a program, beside its hooks."""
_GIT_DIRECTORIES = ("hooks", "info", "modules", "worktrees")
"""Directories of a repository that contain such files. A link in place of one leads to others."""
_OTHER_HASH = re.compile(b"sha256", re.IGNORECASE)
_INDEX_HEADER = struct.Struct(">4sLL")
_FIXED = 62
"""Bytes of an index entry before its name: times, numbers, size, hash, flags."""
_NESTED = 0o160000
"""Type of the entry for a nested repository."""


# --- data of repositories ---------------------------------------------------------------------------------------------


def protected_repository(path: str, workspace: str) -> str | None:
    """Return why a repository around a resolved path, or a `.git` file that points to it, protects it; None if not.

    Checks the directories from the path up to the workspace (up to the root for a path outside), and the repository of
    the workspace itself.
    """
    around = list(islice(_upwards(path, workspace if is_within(path, workspace) else "/"), _MAX_DEPTH))
    for directory in around:
        if holds_repository(directory):
            return f"{directory} is a repository's data"
        if holds_repository(directory, path):
            return f"{directory} would become a repository's data"
    for directory in dict.fromkeys((*around, *_upwards(workspace))):
        for target in data_directories(directory):
            if is_within(path, target):
                return f"{target} is where {directory}/.git points"
    return None


def data_directories(directory: str) -> list[str]:
    """Return the data directory of a directory's repository, then the one that it shares with other work trees, if any.

    Empty without a `.git` that is a directory or points to one.
    """
    own = os.path.join(directory, OWN_DIRECTORY)
    if not os.path.isdir(own):
        target = pointer(own, b"gitdir: ")
        if not target:
            return []
        own = os.path.realpath(os.path.join(directory, target))
    common = pointer(f"{own}/commondir")
    return [own, os.path.realpath(os.path.join(own, common))] if common else [own]


def pointer(path: str, prefix: bytes = b"") -> str:
    """Return the path in a file that points to a directory, read as git reads it; empty if there is none.

    Only line ends at the end are cut: a path may contain others, and blanks at both ends.
    """
    try:
        content = read_regular_file(path)
    except OSError:
        return ""
    if not content.startswith(prefix):
        return ""
    return os.fsdecode(content[len(prefix) :].rstrip(b"\r\n").partition(b"\0")[0])


def holds_repository(directory: str, made: str = "") -> bool:
    """True if a directory holds a repository's data, whatever its name, or would if the path `made` existed."""

    def has(name: str) -> bool:
        return os.path.lexists(f"{directory}/{name}") or is_within(made, f"{directory}/{name}")

    if not made and not os.path.lexists(f"{directory}/HEAD"):
        return False  # Asked for each directory above every path.
    return has("HEAD") and any(all(map(has, signs)) for signs in _GIT_DIRECTORY_SIGNS)


def repository_roots(directory: str) -> list[str]:
    """Return every directory from here upwards that has a `.git`, the nearest first. git skips an invalid one."""
    return [place for place in _upwards(directory) if os.path.lexists(f"{place}/{OWN_DIRECTORY}")]


def is_within(path: str, directory: str) -> bool:
    """True if `path` is `directory` or below it, by components; both absolute and without links."""
    return path == directory or directory == "/" or path.startswith(directory + "/")


def possible_repositories(directory: str) -> list[str]:
    """Return the directories from here upwards that git may take for a repository, also for one without a work tree."""
    return [
        place for place in _upwards(directory) if os.path.lexists(f"{place}/{OWN_DIRECTORY}") or holds_repository(place)
    ]


def possible_data(top: str) -> list[list[str]]:
    """Return the data directories of each repository that a directory may be, each with the one that it shares."""
    found = [data_directories(top)]
    if holds_repository(top):
        common = pointer(f"{top}/commondir")
        found.append([top, os.path.realpath(os.path.join(top, common))] if common else [top])
    return [places for places in found if places]


def _upwards(path: str, top: str = "/") -> Iterator[str]:
    """Yield a path and the directories above it up to `top`."""
    yield path
    while path not in (top, "/"):
        path = path.rpartition("/")[0] or "/"
        yield path


def files_of_repository(place: str) -> Iterator[tuple[str, str] | None]:
    """Yield the settings and hooks of a repository, its submodules and its other work trees, each with an empty text.

    Yields None for each directory that was searched, so that the caller can limit the work.
    """
    waiting = [place]
    while waiting:
        directory = waiting.pop()
        yield None
        if os.path.islink(directory):
            yield directory, ""
            continue
        files = (f"{directory}/{name}" for name in _GIT_FILES)
        yield from ((path, "") for path in files if os.path.lexists(path))
        links = (f"{directory}/{name}" for name in _GIT_DIRECTORIES)
        yield from ((path, "") for path in links if os.path.islink(path))
        # Of hooks behind a link, the files are watched where they are.
        hooks = os.path.realpath(f"{directory}/hooks")
        yield from ((f"{hooks}/{hook}", "") for hook in names_in(hooks) if not hook.endswith(".sample"))
        waiting += [f"{directory}/worktrees/{name}" for name in names_in(f"{directory}/worktrees")]
        # The name of a submodule may contain slashes.
        searched = [f"{directory}/modules"]
        for parent in searched:
            yield None
            for path in (f"{parent}/{name}" for name in names_in(parent)):
                is_repository = os.path.islink(path) or os.path.lexists(f"{path}/HEAD")
                (waiting if is_repository else searched).append(path)


def names_in(directory: str) -> list[str]:
    """Return the names in a directory; none if it cannot be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


# --- index ------------------------------------------------------------------------------------------------------------


def nested_repositories(place: str) -> tuple[str, ...] | None:
    """Return the paths of nested repositories in the index of a git directory, relative to the work tree. Blocks.

    None if they are not certain: the index is too large, split, unreadable or of another format.
    """
    index = f"{place}/index"
    try:
        # A split index stores some entries in another file.
        is_split = any(name.startswith("sharedindex.") for name in os.listdir(place))
        status = os.stat(index)
        if is_split or status.st_size > MAX_INDEX_BYTES:
            return None
        return _read_index(place, (status.st_mtime_ns, status.st_size, status.st_ino))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError:
        return None


@lru_cache(maxsize=64)
def _read_index(place: str, _: tuple[int, int, int]) -> tuple[str, ...] | None:
    """Return the nested repositories in an index, or None for an unsupported format."""
    data = read_regular_file(f"{place}/index", MAX_INDEX_BYTES)
    if _NESTED.to_bytes(4) not in data:
        return ()
    # SHA-256 changes the size of entries.
    if _holds(f"{place}/config", _OTHER_HASH) or len(data) < _INDEX_HEADER.size:
        return None
    sign, version_number, count = _INDEX_HEADER.unpack_from(data)
    if sign != b"DIRC" or version_number not in (2, 3):
        return None
    found: list[str] = []
    at = _INDEX_HEADER.size
    for _entry in range(count):
        if len(data) < at + _FIXED:
            return None
        mode, flags = int.from_bytes(data[at + 24 : at + 28]), int.from_bytes(data[at + 60 : at + 62])
        start = at + _FIXED + (2 if flags & 0x4000 else 0)
        end = data.find(b"\0", start)
        if end < 0:
            return None
        if mode == _NESTED:
            found.append(data[start:end].decode("utf-8", "surrogateescape"))
        at += (end - at) // 8 * 8 + 8
    return tuple(found)


def _holds(file: str, pattern: re.Pattern[bytes]) -> bool:
    """True if a file can be read and contains a match."""
    try:
        return bool(pattern.search(read_regular_file(file)))
    except OSError:
        return False
