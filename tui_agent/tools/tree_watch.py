"""Detection of the files that a command changes, by comparing the workspace before and after it.

An unchanged file is not read: the same inode, size and times mean the same content, unless the file was written so
recently that its times might not show a further write. Contents that git has are read from git when they are needed;
all others are stored before the command runs, so that a rewind can restore them. Not detected: ignored files, empty
directories, everything outside the workspace.

Protected files, such as hooks and settings of repositories, are watched at any depth besides. Rules see what a command
names, and a trial keeps no such change without an answer; this finds what a command outside of a trial changed.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from tui_agent.protocol.events import FileState

from .file_states import ContentStore, TreeChange, read_file_state, same_file, state_of_content
from .search.tree_listing import GitFiles, TreeListing, walked_listing
from .text_format import counted, printable_name

MOST_FILES = 50_000
"""Most files in a tree; in a larger one, changes of commands are not detected."""

MAX_SLOW_SNAPSHOTS = 3
"""Scans in a row that may take too long; after that, changes are no longer detected."""

KEPT_LIMIT = 2 * 1024 * 1024
"""Largest file in bytes that is stored before a command."""

KEEPING_SECONDS = 1.0
"""Most seconds for storing contents before a command; the next command continues with the rest."""

_STAMP_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
"""`CLOCK_REALTIME_COARSE`, from which Linux takes the times of files; Python has no name for it. It lags behind the
real-time clock, so a file written after a moment of that clock may have an earlier time."""

TICK_NS = 50_000_000
"""Nanoseconds before a scan in which a written file may be written again without a change of its times."""

Identity: TypeAlias = tuple[int, int, int, int, int]
"""Inode, size, times of content and of status, mode."""


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file at the time of a scan."""

    identity: Identity
    is_settled: bool
    """True if the same identity means the same content."""
    git_object: str = ""
    """Git object with its content; empty if git does not have it."""
    state: FileState | None = None
    """Its state, if it was read. With neither state nor object, the file was too large or the time ran out."""


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """A scan of the whole tree."""

    began: int
    """Start of the scan, in nanoseconds of the clock for file times."""
    files: Mapping[str, FileSnapshot] = field(default_factory=dict[str, FileSnapshot])


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes between two scans."""

    files: list[TreeChange]
    is_complete: bool
    """False if new files may be missing, because there are too many files by now."""


class TreeWatch:
    """Detector of changes in the tree of one workspace. Blocks; thread-safe."""

    def __init__(
        self,
        root: Path,
        contents: ContentStore,
        private: Iterable[Path] = (),
        names: Callable[[], Iterable[str] | None] | None = None,
        *,
        is_trusted: bool = True,
    ) -> None:
        """
        Args:
            root: the workspace, resolved.
            private: resolved directories of tui-agent that are never scanned.
            names: returns the files to watch, or None if there are too many; None: those git tracks or would track.
            is_trusted: False if git may run only behind walls.
        """
        self.root = root
        """The workspace."""
        self.contents = contents
        """Store for contents."""
        self._private = tuple(str(path.relative_to(root)) for path in private if path.is_relative_to(root))
        self._names = names
        self._git = GitFiles(root, is_trusted) if names is None else None
        self._last: Mapping[str, FileSnapshot] | None = None
        self._is_too_large = False
        self._slow_looks = 0
        self._lock = threading.Lock()

    def look(self) -> TreeSnapshot | None:
        """Scan the tree and store contents that git does not have; return None if it is too large or too slow."""
        with self._lock:
            return self._look()

    def changes_since(self, before: TreeSnapshot) -> Changes:
        """Return the files that changed since a scan, and store their present contents."""
        with self._lock:
            return self._changes_since(before)

    def _look(self) -> TreeSnapshot | None:
        began = time.clock_gettime_ns(_STAMP_CLOCK)
        listing = None if self._is_too_large else self._listing()
        if listing is None:
            return None
        known = self._last or {}
        files: dict[str, FileSnapshot] = {}
        unread: list[str] = []
        for name, status in self._statuses(listing.names):
            old = known.get(name)
            if old is not None and old.is_settled and old.identity == _identity(status) and _is_known(old):
                files[name] = old
                continue
            files[name] = seen = _seen(status, began, listing.names[name])
            if not seen.git_object or not seen.is_settled:
                unread.append(name)
        self._read(files, unread)
        self._last = files
        return TreeSnapshot(began, files)

    def _changes_since(self, before: TreeSnapshot) -> Changes:
        began = time.clock_gettime_ns(_STAMP_CLOCK)
        listing = self._listing()
        names = before.files.keys() | (listing.names.keys() if listing is not None else set[str]())
        now = dict(self._statuses(names))
        files = {name: before.files[name] for name in now if name in before.files}
        touched: list[str] = []
        # Events come by name, whatever order a listing has.
        for name in sorted(names):
            seen, status = before.files.get(name), now.get(name)
            if seen is None:
                # A file listed only now that existed before was ignored until now: its old content is unknown.
                if status is not None and status.st_ctime_ns >= before.began:
                    touched.append(name)
            elif status is None or seen.identity != _identity(status) or (not seen.is_settled and _is_known(seen)):
                touched.append(name)
        befores = self._previous_states(before, touched)
        changes: list[TreeChange] = []
        for name in touched:
            path = self.root / name
            after = _state_or_none(path, self.contents)
            if after is not None and (status := now.get(name)) is not None:
                files[name] = replace(_seen(status, began, ""), state=after)
            old = befores.get(name)
            if not same_file(old, after):
                changes.append(TreeChange(path, old, after))
        self._last = files
        return Changes(changes, is_complete=listing is not None)

    def _listing(self) -> TreeListing | None:
        """Return the names; None if there are too many or listing them takes too long. One slow scan is forgiven."""
        if self._names is not None:
            names = self._names()
            return None if names is None else TreeListing(dict.fromkeys(names, ""))
        found = None if self._git is None else self._git.list(compared=self._last is None)
        listing = found or walked_listing(self.root)
        self._slow_looks = 0 if listing.complete else self._slow_looks + 1
        self._is_too_large = len(listing.names) > MOST_FILES or self._slow_looks >= MAX_SLOW_SNAPSHOTS
        if not listing.complete or self._is_too_large:
            return None
        if not self._private:
            return listing
        return TreeListing({name: held for name, held in listing.names.items() if not self._is_private(name)})

    def _is_private(self, name: str) -> bool:
        return any(name == ours or name.startswith(f"{ours}/") for ours in self._private)

    def _statuses(self, names: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
        """Yield name and `lstat` of each file and symbolic link, but of none behind a linked directory."""
        prefix = os.path.join(self.root, "")
        directories = {"": True}
        for name in names:
            if not _is_directory(name.rpartition("/")[0], prefix, directories):
                continue
            try:
                status = os.lstat(prefix + name)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                yield name, status

    def _read(self, files: dict[str, FileSnapshot], names: Iterable[str]) -> None:
        """Store the contents of these files, as far as time permits; large ones are skipped."""
        deadline = time.monotonic() + KEEPING_SECONDS
        for name in names:
            if time.monotonic() > deadline:
                return
            seen = files[name]
            if seen.identity[1] <= KEPT_LIMIT:
                state = _state_or_none(self.root / name, self.contents)
                files[name] = replace(seen, state=state, git_object="")

    def _previous_states(self, before: TreeSnapshot, names: Iterable[str]) -> dict[str, FileState]:
        """Return the states of files before: as they were read, or as git has them, or without a content."""
        states: dict[str, FileState] = {}
        by_object: dict[str, list[str]] = {}
        for name in names:
            seen = before.files.get(name)
            if seen is None:
                continue
            states[name] = seen.state or _unknown(seen)
            if seen.state is None and seen.git_object:
                by_object.setdefault(seen.git_object, []).append(name)
        if self._git is not None and by_object:
            for identity, content in self._git.contents(list(by_object)):
                for name in by_object[identity]:
                    seen = before.files[name]
                    # A different size means that the file's content differed: git may convert line endings.
                    if len(content) == seen.identity[1]:
                        states[name] = self._of_git(content, seen)
        return states

    def _of_git(self, content: bytes, seen: FileSnapshot) -> FileState:
        mode = seen.identity[4]
        state = state_of_content(content, mode, self.contents)
        return state.model_copy(update={"is_link": True, "mode": 0}) if stat.S_ISLNK(mode) else state


def _is_directory(name: str, prefix: str, known: dict[str, bool]) -> bool:
    """Return True if a name below the root and every part of it is a directory, not a link; `known` is a cache."""
    found = known.get(name)
    if found is None:
        found = _is_directory(name.rpartition("/")[0], prefix, known)
        if found:
            try:
                found = stat.S_ISDIR(os.lstat(prefix + name).st_mode)
            except OSError:
                found = False
        known[name] = found
    return found


def _seen(status: os.stat_result, began: int, git_object: str) -> FileSnapshot:
    is_settled = max(status.st_mtime_ns, status.st_ctime_ns) < began - TICK_NS
    return FileSnapshot(_identity(status), is_settled, git_object)


def _identity(status: os.stat_result) -> Identity:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


def _is_known(seen: FileSnapshot) -> bool:
    return seen.state is not None or bool(seen.git_object)


def _unknown(seen: FileSnapshot) -> FileState:
    """Return the state of a file of unknown content."""
    mode = seen.identity[4]
    return FileState(digest="", size=seen.identity[1], mode=stat.S_IMODE(mode), is_link=stat.S_ISLNK(mode), kept=False)


def _state_or_none(path: Path, contents: ContentStore) -> FileState | None:
    """Return the state of a file; None if it is missing or cannot be read."""
    try:
        return read_file_state(path, contents)
    except OSError:
        return None


MOST_NAMED = 4

TOO_MANY = "so many protected files that others may have changed unnoticed"

ListProtectedFiles: TypeAlias = Callable[[], tuple[Mapping[str, str], bool]]
"""Returns the protected files by path below the workspace, with an identity for each that is a directory and an empty
text for others; and False if some are missing, because there are too many. Blocks."""


@dataclass(frozen=True, slots=True)
class ProtectedSnapshot:
    """The protected files at one time."""

    directories: Mapping[str, str]
    """Identity by path."""
    files: TreeSnapshot
    is_complete: bool
    """False if some are missing."""


@dataclass(frozen=True, slots=True)
class ProtectedChanges:
    """Changes between two times."""

    directories: tuple[str, ...] = ()
    """Directories that appeared, vanished or were replaced, each with that word."""
    files: tuple[TreeChange, ...] = ()
    is_cut: bool = False
    """True if more files may have changed, because there are too many now and were not before."""

    def only(self, may_be: Callable[[Path], bool]) -> "ProtectedChanges":
        """Return these changes without the files for which `may_be` is False."""
        return replace(self, files=tuple(change for change in self.files if may_be(change.path)))

    def without(self, known: "Collection[TreeChange | str]") -> "ProtectedChanges":
        """Return these changes without those that led to the same state as one of `known`."""
        states = {_state(change) for change in known}
        directories = tuple(change for change in self.directories if change not in states)
        return replace(
            self, directories=directories, files=tuple(change for change in self.files if _state(change) not in states)
        )

    def words(self, root: Path) -> str:
        """Return the changes in one line; empty if there are none."""
        # Files first: they say more than the directories around them, and those at the top more than the deep ones.
        files = sorted(self.files, key=lambda change: len(change.path.parts))
        found = [*(_named(change, root) for change in files), *self.directories]
        more = f" and {counted(len(found) - MOST_NAMED, 'more change')}" if len(found) > MOST_NAMED else ""
        cut = [TOO_MANY] if self.is_cut else []
        return ", ".join((*cut, *found[:MOST_NAMED])) + more


class ProtectedWatch:
    """Detector of changes in the protected files of one workspace. Blocks; thread-safe."""

    def __init__(self, root: Path, contents: ContentStore, files: ListProtectedFiles) -> None:
        """Store the resolved workspace, and a store for contents, so that a change can be undone."""
        self._root = root
        self._list = files
        self._names: Mapping[str, str] = {}
        """The newest listing."""
        self._tree = TreeWatch(root, contents, names=self._file_names)
        self._lock = threading.Lock()
        self.reported: list[TreeChange | str] = []
        """Changes that the user has seen, the oldest first; those of directories as words."""

    def look(self) -> ProtectedSnapshot | None:
        """Record the protected files; return None if they are too many or reading them takes too long."""
        with self._lock:
            self._names, is_complete = self._list()
            files = self._tree.look()
            return None if files is None else ProtectedSnapshot(_directories(self._names), files, is_complete)

    def changes_since(self, before: ProtectedSnapshot) -> ProtectedChanges:
        """Return the changes since an earlier time."""
        with self._lock:
            self._names, is_complete = self._list()
            directories = tuple(self._changed(before, _directories(self._names), is_complete=is_complete))
            files = self._tree.changes_since(before.files).files
            return ProtectedChanges(directories, tuple(files), is_cut=before.is_complete and not is_complete)

    def _file_names(self) -> list[str]:
        return [name for name, identity in self._names.items() if not identity]

    def _changed(self, before: ProtectedSnapshot, now: Mapping[str, str], *, is_complete: bool) -> Iterator[str]:
        """Yield the directories that changed; what only one of two incomplete listings has may be unchanged."""
        for name in sorted(before.directories.keys() | now.keys()):
            if name not in now:
                # An incomplete listing may just not have reached it.
                if is_complete or not os.path.lexists(self._root / name):
                    yield f"{printable_name(name)} vanished"
            elif name not in before.directories:
                if before.is_complete or _changed_since(self._root / name, before.files.began):
                    yield f"{printable_name(name)} appeared"
            elif before.directories[name] != now[name]:
                yield f"{printable_name(name)} was replaced"


def _state(change: TreeChange | str) -> object:
    return (change.path, change.after) if isinstance(change, TreeChange) else change


def _changed_since(directory: Path, time: int) -> bool:
    """Return True if an entry of the directory around this one changed after a time, in nanoseconds."""
    try:
        return directory.parent.stat().st_mtime_ns >= time
    except OSError:
        return True


def _directories(names: Mapping[str, str]) -> dict[str, str]:
    return {name: identity for name, identity in names.items() if identity}


def _named(change: TreeChange, root: Path) -> str:
    how = "created" if change.before is None else "deleted" if change.after is None else "modified"
    return f"{printable_name(str(change.path.relative_to(root)))} {how}"
