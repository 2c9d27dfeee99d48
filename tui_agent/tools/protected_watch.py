"""Detection of protected files that a command changes: hooks and settings of repositories, and the like.

The judge refuses such changes as far as a command's text shows them, and the sandbox as far as the files exist when the
command begins. This check finds the rest, at any depth, after the command.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .content_store import ContentStore
from .file_states import TreeChange
from .text_format import counted, printable_name
from .tree_watch import TreeSnapshot, TreeWatch

MOST_NAMED = 4
"""Most changes that a message names."""

ListProtectedFiles: TypeAlias = Callable[[], Mapping[str, str] | None]
"""Returns the protected files by path below the workspace, with an identity for each that is a directory and an empty
text for others; None if there are too many. Blocks."""


@dataclass(frozen=True, slots=True)
class ProtectedSnapshot:
    """The protected files at one time."""

    directories: Mapping[str, str]
    """Identity by path."""
    files: TreeSnapshot


@dataclass(frozen=True, slots=True)
class ProtectedChanges:
    """Changes between two times."""

    directories: tuple[str, ...] = ()
    """Directories that appeared, vanished or were replaced, each with that word."""
    files: tuple[TreeChange, ...] = ()

    def only(self, may_be: Callable[[Path], bool]) -> "ProtectedChanges":
        """Return these changes without the files for which `may_be` is False."""
        return ProtectedChanges(self.directories, tuple(change for change in self.files if may_be(change.path)))

    def words(self, root: Path) -> str:
        """Return the changes in one line; empty if there are none."""
        found = [*self.directories, *(_named(change, root) for change in self.files)]
        more = f" and {counted(len(found) - MOST_NAMED, 'more change')}" if len(found) > MOST_NAMED else ""
        return ", ".join(found[:MOST_NAMED]) + more


class ProtectedWatch:
    """Detector of changes in the protected files of one workspace. Blocks; thread-safe."""

    def __init__(self, root: Path, contents: ContentStore, files: ListProtectedFiles) -> None:
        """
        Args:
            root: the workspace, resolved.
            contents: store for contents, so that a change can be undone.
            files: lists the protected files.
        """
        self._list = files
        self._names: Mapping[str, str] | None = None
        """The newest listing."""
        self._tree = TreeWatch(root, contents, names=self._file_names)
        self._lock = threading.Lock()

    def look(self) -> ProtectedSnapshot | None:
        """Record the protected files; None if there are too many."""
        with self._lock:
            self._names = self._list()
            files = None if self._names is None else self._tree.look()
            return None if self._names is None or files is None else ProtectedSnapshot(_directories(self._names), files)

    def changes_since(self, before: ProtectedSnapshot) -> ProtectedChanges:
        """Return the changes since an earlier time."""
        with self._lock:
            self._names = self._list()
            now = before.directories if self._names is None else _directories(self._names)
            files = self._tree.changes_since(before.files).files
            return ProtectedChanges(tuple(_changed(before.directories, now)), tuple(files))

    def _file_names(self) -> list[str] | None:
        return None if self._names is None else [name for name, identity in self._names.items() if not identity]


def _directories(names: Mapping[str, str]) -> dict[str, str]:
    return {name: identity for name, identity in names.items() if identity}


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            how = "appeared" if name not in before else "vanished" if name not in now else "was replaced"
            yield f"{printable_name(name)} {how}"


def _named(change: TreeChange, root: Path) -> str:
    how = "created" if change.before is None else "deleted" if change.after is None else "modified"
    return f"{printable_name(str(change.path.relative_to(root)))} {how}"
