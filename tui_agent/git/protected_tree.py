"""The protected paths that exist in a workspace, by name and by content.

A repository under another path is as protected as the file that points to it.
"""

import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from .protected_names import PROTECTED_NAMES, is_definition, protected_name
from .repository_layout import OWN_DIRECTORY, data_directories, files_of_repository, holds_repository, is_within

MAX_DIRECTORIES = 100_000
"""Maximum number of directories to scan."""
MAX_FILES = 10_000
"""Maximum number of files to list."""
MAX_FILES_OF_PLACE = 2_000
"""Maximum number of files to list in one protected directory, so that one cannot crowd out the others."""
SCAN_SECONDS = 1.0
"""Maximum duration of a scan for the files; the next one gets further, as it knows the directories of this one."""
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
            private_paths: our own settings and sessions, which are not listed.
        """
        self._top = str(workspace)
        # Found also if the scan stops early.
        self._always = {os.path.join(self._top, name) for name in PROTECTED_NAMES}
        self._private = {str(path) for path in private_paths}
        self._known: dict[str, _Directory] = {}
        self._lock = threading.Lock()

    def files(self) -> tuple[dict[str, str], bool]:
        """Return the protected files that could make a program run, by path below the workspace, and True if none is
        missing, as the deepest ones and the last of very many in one directory may be in a large workspace.

        These are the settings and hooks of repositories, files that point to one, links with a protected name, and the
        files in other protected directories; of installed packages only the directory. The value is empty for a file,
        and for a directory its inode, which differs if another one takes its place.
        """
        with self._lock:
            try:
                places, is_complete = self._scan()
            except OSError:
                return {}, False
            links = [link for directory in self._known.values() for link in directory.links]
        found = dict.fromkeys(links[:MAX_FILES], "")
        is_complete = is_complete and len(links) <= MAX_FILES
        # The outermost first: what is deep in the tree never displaces the workspace's own repository.
        for place in sorted(_outermost(places), key=lambda path: path.count("/")):
            most = 1 if len(found) > MAX_FILES else MAX_FILES_OF_PLACE
            listed = list(islice(_files_of(place), most + 1))
            is_complete = is_complete and len(listed) <= most
            found |= dict(entry for entry in listed[:most] if entry is not None)
        start = len(self._top) + 1
        return {path[start:]: identity for path, identity in found.items() if self._is_watched(path)}, is_complete

    def _is_watched(self, path: str) -> bool:
        return is_within(path, self._top) and not any(is_within(path, private) for private in self._private)

    def _scan(self) -> tuple[set[str], bool]:
        """Return the protected paths and False if some are missing, those in the deepest directories.

        Stops after `SCAN_SECONDS`, or at `MAX_DIRECTORIES`.

        Raises:
            OSError: the workspace cannot be listed.
        """
        began, end = time.clock_gettime_ns(_CLOCK), time.monotonic() + SCAN_SECONDS
        found, waiting = set(self._always), deque([self._top])
        known, self._known = self._known, {}
        while waiting:
            if len(self._known) >= MAX_DIRECTORIES or time.monotonic() > end:
                return found, False
            directory = waiting.popleft()
            listed = _list_directory(directory, self._top, known.get(directory), began)
            if listed is None:
                continue
            self._known[directory] = listed
            found.update(listed.places)
            waiting += listed.below
        return found, True


def _outermost(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not inside another one, sorted."""
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not kept or not is_within(path, kept[-1]):
            kept.append(path)
    return sorted(kept)


def _list_directory(directory: str, top: str, known: _Directory | None, began: int) -> _Directory | None:
    """Return the protected entries of one directory and those to scan next; None if it is gone.

    Raises:
        OSError: the workspace itself cannot be listed.
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
            raise
        # Not settled: whether it can be read may change without a change of the directory.
        return None if isinstance(error, FileNotFoundError) else _Directory((0, 0, 0, 0), False, places=(directory,))
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < began - _TICK_NS
    if any(entry.name == "HEAD" for entry in listed) and holds_repository(directory):
        return _Directory(identity, is_settled, places=(directory,))
    below: list[str] = []
    links: list[str] = []
    places: set[str] = set()
    folder = os.path.basename(directory)
    for entry in listed:
        if protected_name(entry.name) or (folder.startswith(".") and is_definition(folder, entry.name)):
            own = _places_of(entry, directory, top)
            places |= own
            links += [entry.path] if entry.is_symlink() else []
            # A link or a pointer file leads elsewhere as soon as its target changes, a repository with its `commondir`.
            is_plain = not entry.is_file() and entry.name.lower() != OWN_DIRECTORY
            is_settled = is_settled and own == {entry.path} and is_plain
        elif entry.is_dir(follow_symlinks=False):
            below.append(entry.path)
    return _Directory(identity, is_settled, tuple(below), tuple(places), tuple(links))


def _places_of(entry: os.DirEntry[str], directory: str, top: str) -> set[str]:
    """Return the paths behind one protected entry: itself, a link's target, a pointer file's targets."""
    places = {os.path.realpath(entry.path) if entry.is_symlink() else entry.path}
    if entry.name == OWN_DIRECTORY:
        places |= set(data_directories(directory)) - ({entry.path} if entry.is_symlink() else set())
    return {place for place in places if is_within(place, top) and place != top}


def _files_of(place: str) -> Iterator[tuple[str, str] | None]:
    """Yield path and identity of the files of a protected path; for a directory that is listed as a whole, its own.

    Yields None for each directory that was searched, so that the caller can limit the work.
    """
    try:
        status = os.lstat(place)
    except OSError:
        return
    if not stat.S_ISDIR(status.st_mode):
        yield place, ""
        return
    yield place, f"{status.st_dev}:{status.st_ino}"
    name = os.path.basename(place).lower()
    if name == OWN_DIRECTORY or holds_repository(place):
        yield from files_of_repository(place)
    elif name != "node_modules":
        for directory, directories, files in os.walk(place):
            yield None
            links = (name for name in directories if os.path.islink(os.path.join(directory, name)))
            yield from ((os.path.join(directory, name), "") for name in (*files, *links))
