"""Detection of protected files that a command changes: hooks and settings of repositories, and the like.

Rules see what a command names, and a trial keeps no such change without an answer. This check finds what a command
outside of a trial changed, at any depth.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from .file_states import ContentStore, TreeChange
from .text_format import counted, printable_name
from .tree_watch import TreeSnapshot, TreeWatch

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
        """Record the protected files."""
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
