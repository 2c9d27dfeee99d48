"""Every protected path that exists below a workspace, for the sandbox and for the check after a command (promise 10).

A decision checks one path. A sandbox needs all of them at once, because a program may open any path.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .path_resolution import is_within
from .protected_paths import PROTECTED_NAMES, git_directories, is_git_directory, protected_name

MAX_DIRECTORIES = 100_000
"""Maximum number of directories to scan."""
MAX_PLACES = 1_000
"""Maximum number of paths to return."""
MAX_FILES = 2_000
"""Maximum number of files to list."""

_SHORT_NAMES = frozenset(name for name in PROTECTED_NAMES if "~" in name)
"""Aliases of other names on file systems with short names."""
_GIT_FILES = ("config", "config.worktree", "info/attributes")
"""Files of a repository that can make git start a program, beside its hooks."""
_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
"""`CLOCK_REALTIME_COARSE`, from which Linux takes the times of files; Python has no name for it."""
_TICK_NS = 50_000_000
"""Nanoseconds in which a directory may change twice with the same times."""


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory as it was listed."""

    identity: tuple[int, int, int, int]
    """Device, inode, times of content and of status."""
    is_settled: bool
    """True if the same identity means the same entries."""
    below: tuple[str, ...] = ()
    """Directories to scan next."""
    places: tuple[str, ...] = ()
    """Protected entries, and the directory itself if it is a repository's data or unreadable."""
    links: tuple[str, ...] = ()
    """Links with a protected name."""


class ProtectedTree:
    """The protected paths of one workspace. Blocks; thread-safe.

    A directory with the same inode and times as before is not listed again: a scan of a known tree takes one `lstat`
    for each directory.
    """

    def __init__(self, workspace: Path, private_paths: Sequence[Path] = ()) -> None:
        """
        Args:
            workspace: absolute, links followed.
            private_paths: our own settings and sessions; those outside the workspace are ignored.
        """
        self._top = str(workspace)
        self._always = {os.path.join(self._top, name) for name in PROTECTED_NAMES if name not in _SHORT_NAMES}
        self._always |= {str(path) for path in private_paths if is_within(str(path), self._top)}
        self._private = {str(path) for path in private_paths}
        self._known: dict[str, _Directory] = {}
        self._lock = threading.Lock()

    def places(self) -> tuple[Path, ...]:
        """Return the paths that no program may change. No path is inside another.

        These are: protected names at any depth, repositories under other names, targets of `.git` files, and unreadable
        directories. The protected names at the top and our own paths are included even if they do not exist yet.

        Raises:
            ToolError: the workspace has too many directories, or cannot be listed.
        """
        with self._lock:
            found = self._scan()
        if found is None:
            raise ToolError(
                f"{self._top} is too large for the sandbox: more than {MAX_DIRECTORIES:,} directories, or "
                f"{MAX_PLACES:,} protected paths. Work in a subdirectory."
            )
        return tuple(map(Path, _outermost(found)))

    def files(self) -> dict[str, str] | None:
        """Return the protected files that could make a program run, by path below the workspace; None if there are too
        many.

        These are the settings and hooks of repositories, `.git` files, links with a protected name, and the files in
        other protected directories. Of installed packages and other contents only the directory is listed: the value
        is a path, or for a directory its path with its inode, which differs if another one takes its place.
        """
        with self._lock:
            try:
                places = self._scan()
            except ToolError:
                return None
            links = [link for directory in self._known.values() for link in directory.links]
        if places is None:
            return None
        found = {link[len(self._top) + 1 :]: "" for link in links}
        for place in _outermost(places):
            for path, identity in _files_of(place):
                if any(is_within(path, private) for private in self._private):
                    continue
                found[path[len(self._top) + 1 :]] = identity
                if len(found) > MAX_FILES:
                    return None
        return found

    def _scan(self) -> set[str] | None:
        """Return every protected path; None if there are too many directories or paths."""
        began = time.clock_gettime_ns(_CLOCK)
        found, waiting = set(self._always), [self._top]
        known, self._known = self._known, {}
        while waiting:
            directory = waiting.pop()
            look = _look(directory, self._top, known.get(directory), began)
            if look is None:
                continue
            self._known[directory] = look
            found.update(look.places)
            waiting += look.below
            if len(self._known) > MAX_DIRECTORIES or len(found) > MAX_PLACES:
                return None
        return found


def protected_tree(workspace: Path, private_paths: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the paths below a workspace that no program may change, as `ProtectedTree.places`. Blocks.

    Raises:
        ToolError: the workspace has too many directories, or cannot be listed.
    """
    return ProtectedTree(workspace, private_paths).places()


def _outermost(paths: set[str]) -> list[str]:
    """Return the paths that are not inside another one, sorted."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not is_within(path, kept[-1]):
            kept.append(path)
    return sorted(kept)


def _look(directory: str, top: str, known: _Directory | None, began: int) -> _Directory | None:
    """Return the protected entries of one directory and those to scan next; None if it is gone.

    Raises:
        ToolError: the workspace itself cannot be listed.
    """
    try:
        status = os.lstat(directory)
        identity = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
        if known is not None and known.is_settled and known.identity == identity:
            return known
        with os.scandir(directory) as entries:
            listed = list(entries)
    except OSError as error:
        if directory == top:
            raise ToolError(f"{top} cannot be listed: {error.strerror}") from error
        # Not settled: whether it can be read may change without a change of the directory.
        return None if isinstance(error, FileNotFoundError) else _Directory((0, 0, 0, 0), False, places=(directory,))
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < began - _TICK_NS
    if any(entry.name == "HEAD" for entry in listed) and is_git_directory(directory):
        return _Directory(identity, is_settled, places=(directory,))
    below: list[str] = []
    links: list[str] = []
    places: set[str] = set()
    for entry in listed:
        if protected_name(entry.name):
            own = _places_of(entry, directory, top)
            places |= own
            links += [entry.path] if entry.is_symlink() else []
            # A link or a pointer file leads elsewhere as soon as its target changes.
            is_settled = is_settled and own == {entry.path} and not entry.is_file()
        elif entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
    return _Directory(identity, is_settled, tuple(below), tuple(places), tuple(links))


def _places_of(entry: os.DirEntry[str], directory: str, top: str) -> set[str]:
    """Return the paths behind one protected entry: itself, a link's target, a pointer file's targets."""
    places = {entry.path}
    if entry.is_symlink():
        target = os.path.realpath(entry.path)
        places = {target} if directory != top else {entry.path, target}
    if entry.name == ".git" and entry.is_file():
        places |= set(git_directories(directory))
    return {place for place in places if is_within(place, top) and place != top}


def _files_of(place: str) -> Iterator[tuple[str, str]]:
    """Yield path and identity of the files of a protected path; for a directory that is listed as a whole, its own."""
    try:
        status = os.lstat(place)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield place, ""
        return
    if status.st_mode & stat.S_ISVTX and not _names_in(place):
        return  # A placeholder of the sandbox, which another command needs at the moment.
    yield place, f"{status.st_dev}:{status.st_ino}"
    name = os.path.basename(place).lower()
    if name == "node_modules":
        return
    if name == ".git" or is_git_directory(place):
        for one in (*_GIT_FILES, *(f"modules/{module}/config" for module in _names_in(f"{place}/modules"))):
            if os.path.lexists(f"{place}/{one}"):
                yield f"{place}/{one}", ""
        hooks = (f"{place}/hooks/{hook}" for hook in _names_in(f"{place}/hooks") if not hook.endswith(".sample"))
        yield from ((hook, "") for hook in hooks)
        return
    for directory, _, files in os.walk(place):
        yield from ((os.path.join(directory, file), "") for file in files)


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
