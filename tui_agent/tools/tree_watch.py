"""What a command changes in the workspace, found by comparing the tree before and after it.

Looking costs no reading where nothing changed: a file with the same inode, size and times is the same, unless it was
written so shortly before that its times would not tell. What git has unchanged is taken from git when it is needed.
Everything else is kept before the command runs, so that it can be had again. Not seen: ignored files, empty
directories, what is outside the workspace.
"""

import os
import stat
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from tui_agent.protocol.events import FileState

from .content_store import ContentStore
from .file_states import TreeChange, read_file_state, same_file, state_of_content
from .tree_listing import GitFiles, TreeListing, walked_listing

MOST_FILES = 50_000
"""Files looked at; in a larger tree the changes of commands are not looked for."""

MAX_SLOW_SNAPSHOTS = 3
"""Looks in a row that took too long, after which there is no further one."""

KEPT_LIMIT = 2 * 1024 * 1024
"""Most bytes of a file that is kept before a command, just in case."""

KEEPING_SECONDS = 1.0
"""Longest time that contents are kept before a command; the rest has its turn before the next one."""

_STAMP_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
"""Clock that Linux stamps files with. It lags behind the real-time clock by a tick of the kernel, so that a file made
after a moment of that clock may carry an earlier time. Python has no name for it."""

TICK_NS = 50_000_000
"""A file written this shortly before it was looked at may be written again without a difference in its times."""

Identity: TypeAlias = tuple[int, int, int, int, int]
"""Inode, size, times of content and of status, mode."""


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A file as it was when the tree was looked at."""

    identity: Identity
    is_settled: bool
    """Whether the same identity means the same content."""
    git_object: str = ""
    """Where git has its content."""
    state: FileState | None = None
    """What it was, where it was read; neither this nor an object: it was too large, or there was no time."""


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    """The whole tree at one moment."""

    began: int
    """When, in nanoseconds of the clock files are stamped with."""
    files: Mapping[str, FileSnapshot] = field(default_factory=dict[str, FileSnapshot])


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed between two looks."""

    files: list[TreeChange]
    is_complete: bool
    """Whether new files were looked for; not where there are too many by now."""


class TreeWatch:
    """Compares the tree of one workspace with what it was. Blocks; safe to use from threads."""

    def __init__(self, root: Path, contents: ContentStore, private: Iterable[Path] = ()) -> None:
        """
        Args:
            root: the workspace, resolved.
            contents: where contents are kept.
            private: resolved directories of ours that are never looked into.
        """
        self.root = root
        """The workspace."""
        self.contents = contents
        """Where contents are kept."""
        self._private = tuple(str(path.relative_to(root)) for path in private if path.is_relative_to(root))
        self._git = GitFiles.of(root)
        self._last: Mapping[str, FileSnapshot] | None = None
        self._is_too_large = False
        self._slow_looks = 0
        self._lock = threading.Lock()

    def look(self) -> TreeSnapshot | None:
        """The tree as it is now, with everything kept that cannot be had from git; None where it is too large, or the
        disk too slow."""
        with self._lock:
            return self._look()

    def changes_since(self, before: TreeSnapshot) -> Changes:
        """Every file that is not what it was, its present content kept."""
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
        for name in sorted(names):
            seen, status = before.files.get(name), now.get(name)
            if seen is None:
                # What is listed only now, but was there before, was ignored until now; nothing is known of it.
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
        """The names; None where there are too many, or no time for all. A slow moment is not held against the tree."""
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
        """What there is under these names: files and symbolic links. What lies behind a link is elsewhere."""
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
        """Keeps the contents of these files, as far as there is time; large ones are left for what they are."""
        deadline = time.monotonic() + KEEPING_SECONDS
        for name in names:
            if time.monotonic() > deadline:
                return
            seen = files[name]
            if seen.identity[1] <= KEPT_LIMIT:
                state = _state_or_none(self.root / name, self.contents)
                files[name] = replace(seen, state=state, git_object="")

    def _previous_states(self, before: TreeSnapshot, names: Iterable[str]) -> dict[str, FileState]:
        """What files were: as they were read, or as git has them; of others only that they were."""
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
                    # With another size it is not what was in the file: git converts line ends and the like.
                    if len(content) == seen.identity[1]:
                        states[name] = self._of_git(content, seen)
        return states

    def _of_git(self, content: bytes, seen: FileSnapshot) -> FileState:
        mode = seen.identity[4]
        state = state_of_content(content, mode, self.contents)
        return state.model_copy(update={"is_link": True, "mode": 0}) if stat.S_ISLNK(mode) else state


def _is_directory(name: str, prefix: str, known: dict[str, bool]) -> bool:
    """Whether a name below the root is a directory, and every part on the way to it; `known` remembers."""
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
    """A file that was there, and of which no more is known."""
    mode = seen.identity[4]
    return FileState(digest="", size=seen.identity[1], mode=stat.S_IMODE(mode), is_link=stat.S_ISLNK(mode), kept=False)


def _state_or_none(path: Path, contents: ContentStore) -> FileState | None:
    """A file's state; None where there is none that can be read."""
    try:
        return read_file_state(path, contents)
    except OSError:
        return None
