"""Files that a command names and that no listing of the workspace has: ignored ones, and those outside of it.

Their contents are stored before the command, so that a rewind can restore them. A directory with too many files is only
named, so that a rewind can say that it does not cover it.
"""

import os
import re
import stat
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

from tui_agent.protocol.events import FileState

from .content_store import CONTENT_LIMIT, ContentStore
from .file_states import TreeChange, read_file_state, same_file

MOST_FILES = 1_000
"""Most files stored for one command."""

SECONDS = 1.0
"""Most seconds for storing them."""

_MOST_WORDS = 200
_WORD = re.compile(r"[^\s'\"`;|&<>()=,]+")
_DIRECTORY_CHANGE = re.compile(r"\bcd\s+(?:--\s+)?['\"]?([^\s'\";|&<>()]+)")
_GIT = ".git"


@dataclass(slots=True)
class NamedTargets:
    """States of the named files before a command."""

    root: Path
    listed: Container[str]
    """Paths below the workspace that are compared anyway."""
    contents: ContentStore
    states: dict[Path, FileState | None] = field(default_factory=dict[Path, FileState | None])
    large: dict[Path, tuple[int, ...]] = field(default_factory=dict[Path, tuple[int, ...]])
    """Identities of the files that are too large to be read before and after each command that names them."""
    directories: list[Path] = field(default_factory=list[Path])
    """Named directories of which every file is among `states`."""
    uncovered: dict[Path, tuple[int, ...]] = field(default_factory=dict[Path, tuple[int, ...]])
    """Named directories with too many files, with the identity that shows a change of theirs."""

    @classmethod
    def look(cls, paths: Iterable[Path], root: Path, listed: Container[str], contents: ContentStore) -> "NamedTargets":
        """Store the files at these resolved paths, as far as limits permit. Blocks."""
        found = cls(root, listed, contents)
        deadline = time.monotonic() + SECONDS
        for path in paths:
            if _GIT in path.parts:
                continue
            if not path.is_dir() or path.is_symlink():
                found._store(path)
                continue
            files = list(islice(found._files_below(path), MOST_FILES + 1))
            if len(found.states) + len(files) > MOST_FILES or time.monotonic() > deadline:
                found.uncovered[path] = _identity(path)
                continue
            found.directories.append(path)
            for file in files:
                found._store(file)
        return found

    def changes(self) -> Iterator[TreeChange]:
        """Yield the files that changed since. Blocks."""
        now = dict.fromkeys(self.states)
        for directory in self.directories:
            now.update(dict.fromkeys(islice(self._files_below(directory), MOST_FILES)))
        for path in now:
            if path in self.large and self.large[path] == _identity(path):
                continue
            with suppress(OSError):
                before, after = self.states.get(path), read_file_state(path, self.contents)
                if not same_file(before, after) and not self._is_listed(path):
                    yield TreeChange(path, before, after)

    def changed_directories(self) -> tuple[Path, ...]:
        """Return the directories with too many files that changed since, as far as that shows."""
        return tuple(path for path, identity in self.uncovered.items() if _identity(path) != identity)

    def _store(self, path: Path) -> None:
        if self._is_listed(path):
            return
        with suppress(OSError):
            status = os.lstat(path) if os.path.lexists(path) else None
            if status is None or status.st_size <= CONTENT_LIMIT:
                self.states[path] = read_file_state(path, self.contents)
            elif stat.S_ISREG(status.st_mode):
                mode = stat.S_IMODE(status.st_mode)
                self.states[path] = FileState(digest="", size=status.st_size, mode=mode, kept=False)
                self.large[path] = _identity(path)

    def _is_listed(self, path: Path) -> bool:
        return path.is_relative_to(self.root) and str(path.relative_to(self.root)) in self.listed

    def _files_below(self, directory: Path) -> Iterator[Path]:
        for place, names, files in os.walk(directory):
            names[:] = [name for name in names if name != _GIT]
            yield from (path for name in files if not self._is_listed(path := Path(place, name)))


def named_paths(command: str, root: Path, listed: Iterable[str]) -> tuple[Path, ...]:
    """Return the existing files of the workspace, and its ignored directories, that a command line names. Blocks."""
    starts = [root, *(root / os.path.expanduser(name) for name in _DIRECTORY_CHANGE.findall(command))]
    found: dict[Path, None] = {}
    for word in islice(dict.fromkeys(_WORD.findall(command)), _MOST_WORDS):
        for start in starts:
            text = os.path.join(start, os.path.expanduser(word))
            with suppress(OSError, ValueError):
                for name in islice(iglob(text, include_hidden=True), MOST_FILES) if has_magic(text) else [text]:
                    path = Path(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
                    below = str(path.relative_to(root)) if path.is_relative_to(root) else "."
                    if below != "." and os.path.lexists(path) and not _is_folder(path, below, listed):
                        found[path] = None
    return tuple(found)


def _is_folder(path: Path, below: str, listed: Iterable[str]) -> bool:
    """Return True for a directory with listed files: words of commands name it without changing what is ignored."""
    return path.is_dir() and any(name.startswith(f"{below}/") for name in listed)


def _identity(path: Path) -> tuple[int, ...]:
    try:
        status = os.lstat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode
