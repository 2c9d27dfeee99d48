"""States of files before and after a change, and the store, by hash, of contents that a rewind restores.

Also of the files in the workspace that a command names and no listing has, such as ignored ones. A directory with too
many files is only named, so that a rewind can say that it does not cover it.
"""

import errno
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from glob import has_magic, iglob
from itertools import islice
from pathlib import Path

from tui_agent.protocol.diffs import NO_DIFF, NOTHING, Diff
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.events import FileState
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import make_private_directories

from .file_versions import digest_of, new_hash
from .pinned_directory import open_regular_file, pinned_directory
from .text_format import format_of, is_binary, printable, printable_name
from .unified_diff import diff_of

CONTENT_LIMIT = 16 * 1024 * 1024

STORE_LIMIT = 512 * 1024 * 1024
"""Most bytes stored for one session."""

_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700


class ContentStore:
    """File contents by digest, each a 0600 file in a 0700 directory. Blocks; thread-safe."""

    def __init__(self, root: Path, limit: int = STORE_LIMIT) -> None:
        """Store the directory, which the first content creates with its parents, and the most bytes stored in all."""
        self.root = root
        self._limit = limit
        self._size: int | None = None
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def put(self, content: bytes, *, durable: bool = False) -> tuple[str, bool]:
        """Store a content and return its digest, and True if `get` can return it.

        It is not stored if it is too large, the store is full, or the disk refuses it. A durable one survives a loss of
        power.
        """
        digest = digest_of(content)
        if len(content) > CONTENT_LIMIT:
            return digest, False
        with self._lock:
            if digest in self._known:
                return digest, True
            try:
                kept = self._has(digest) or self._write(digest, content, durable=durable)
            except OSError:
                kept = False
            if kept:
                self._known.add(digest)
        return digest, kept

    def get(self, digest: str) -> bytes | None:
        """Return a stored content; None if it was not stored or is damaged."""
        try:
            content = self._path(digest).read_bytes()
        except OSError:
            return None
        return content if digest_of(content) == digest else None

    def _has(self, digest: str) -> bool:
        return self._path(digest).is_file()

    def _path(self, digest: str) -> Path:
        """Return the path of a content."""
        # Digests come from the journal, a file: a `..` in one must not lead out of the store.
        if not digest or not digest.isalnum():
            raise FileNotFoundError(errno.ENOENT, "no digest", digest)
        return self.root / digest[:2] / digest[2:]

    def _write(self, digest: str, content: bytes, *, durable: bool) -> bool:
        """Write a new content under a temporary name and rename it; return False if the store is full."""
        # Counted with the first content, so that a session which changes nothing reads no directory.
        if self._size is None:
            self._size = self._used()
        if self._size + len(content) > self._limit:
            return False
        path = self._path(digest)
        make_private_directories(path.parent)
        temporary = path.with_name(f".{secrets.token_hex(8)}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILE_MODE)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(descriptor)
            # Under its own name from the start, a content that a kill cut off would count as stored.
            os.rename(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._size += len(content)
        return True

    def _used(self) -> int:
        """Return the bytes stored when the session ran before."""
        make_private_directories(self.root)
        self.root.chmod(_DIRECTORY_MODE)
        return sum(file.stat().st_size for file in self.root.glob("*/*") if file.is_file())


HASHED_LIMIT = 256 * 1024 * 1024
"""Largest file in bytes that is hashed."""

MOST_OF_ONE_DIFF = 20_000
"""Most characters of the diff of one file that a command changed."""

DIFFED_LIMIT = 1024 * 1024
"""Largest content in bytes that is compared line by line."""

_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TreeChange:
    """A file that was created, modified or deleted."""

    path: Path
    before: FileState | None
    """None: the file did not exist."""
    after: FileState | None
    """None: the file does not exist any more."""

    def event_data(self, diff: Diff = NO_DIFF) -> JsonObject:
        """Return the data of a `file.changed` event; `diff` may be shortened."""
        change = "created" if self.before is None else "deleted" if self.after is None else "modified"
        return {
            "path": printable(str(self.path)),
            "change": change,
            "known": printable(str(self.path)) == str(self.path),
            "before": None if self.before is None else self.before.model_dump(),
            "after": None if self.after is None else self.after.model_dump(),
            "diff": diff,
            "added": diff.added,
            "removed": diff.removed,
        }


def state_of_content(content: bytes, mode: int, contents: ContentStore) -> FileState:
    """Store the content of a regular file, whose `st_mode` is `mode`, and return the file's state. Blocks."""
    # A tool is about to overwrite it: it exists nowhere else then.
    digest, kept = contents.put(content, durable=True)
    return FileState(digest=digest, size=len(content), mode=stat.S_IMODE(mode), kept=kept)


def read_file_state(path: Path, contents: ContentStore | None) -> FileState | None:
    """Return the state of the file or symbolic link at a path; None if there is neither. Blocks.

    Without a store for its content, it is only hashed.

    Raises:
        OSError: it exists and cannot be read.
    """
    try:
        with pinned_directory(path.parent) as directory:
            status = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                target = os.fsencode(os.readlink(path.name, dir_fd=directory))
                return _with_content(target, status, contents, is_link=True)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open_regular_file(path, str(path)) as (descriptor, status), open(descriptor, "rb", closefd=False) as file:
            if status.st_size > HASHED_LIMIT:
                return FileState(digest="", size=status.st_size, mode=stat.S_IMODE(status.st_mode), kept=False)
            if status.st_size > CONTENT_LIMIT:
                digest = new_hash()
                while piece := file.read(_PIECE):
                    digest.update(piece)
                mode = stat.S_IMODE(status.st_mode)
                return FileState(digest=digest.hexdigest(), size=status.st_size, mode=mode, kept=False)
            return _with_content(file.read(), status, contents)
    except (FileNotFoundError, NotADirectoryError, ToolError):
        return None


def same_file(one: FileState | None, other: FileState | None) -> bool:
    """Return True if two states have the same content, mode and kind; None is a missing file.

    A state without a hash equals no other.
    """
    if one is None or other is None:
        return one is other
    return one.digest != "" and (one.digest, one.mode, one.is_link) == (other.digest, other.mode, other.is_link)


def content_of(state: FileState | None, contents: ContentStore) -> bytes | None:
    """Return the stored content of a state; empty for a missing file, None if the content is not available."""
    if state is None:
        return b""
    return contents.get(state.digest) if state.kept else None


def diff_between(before: bytes, after: bytes, names: tuple[str, str]) -> Diff | None:
    """Return the diff of two contents; None if one is too long, binary or in an unknown encoding."""
    if max(len(before), len(after)) > DIFFED_LIMIT or is_binary(before) or is_binary(after):
        return None
    try:
        old, new = (format_of(content).decode(content) for content in (before, after))
    except ToolError:
        return None
    return diff_of(old, new, *names)


def diffs_of(
    changes: Iterable[TreeChange], contents: ContentStore, root: Path, *, seconds: float, room: int
) -> Iterator[Diff]:
    """Yield one diff for each change, in their order, with names relative to `root`. Blocks: it reads the store.

    Args:
        seconds: time for all diffs; those after it are empty.
        room: characters for all diffs; one that does not fit has only the counts of its lines. A single diff is
            shortened to `MOST_OF_ONE_DIFF` characters.

    Yields:
        The diff; empty if a content is not stored, binary or longer than `DIFFED_LIMIT` bytes.
    """
    deadline = time.monotonic() + seconds
    for change in changes:
        diff = _diff_of(change, contents, root) if time.monotonic() < deadline else None
        diff = NO_DIFF if diff is None else diff.shortened(MOST_OF_ONE_DIFF)
        diff = diff if len(diff) <= room else Diff(counts=(diff.added, diff.removed))
        room -= len(diff)
        yield diff


def _diff_of(change: TreeChange, contents: ContentStore, root: Path) -> Diff | None:
    before, after = content_of(change.before, contents), content_of(change.after, contents)
    if before is None or after is None:
        return None
    shown = printable_name(str(change.path.relative_to(root) if change.path.is_relative_to(root) else change.path))
    old = NOTHING if change.before is None else f"a/{shown}"
    return diff_between(before, after, (old, NOTHING if change.after is None else f"b/{shown}"))


def _with_content(
    content: bytes, status: os.stat_result, contents: ContentStore | None, *, is_link: bool = False
) -> FileState:
    # A link has no permissions of its own; what Linux reports for one is always the same.
    mode = 0 if is_link else stat.S_IMODE(status.st_mode)
    if contents is None:
        digest = new_hash(content).hexdigest()
        return FileState(digest=digest, size=len(content), mode=mode, is_link=is_link, kept=False)
    digest, kept = contents.put(content)
    return FileState(digest=digest, size=len(content), mode=mode, is_link=is_link, kept=kept)


MOST_FILES = 1_000

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
            # One more than the limit shows that there are too many, without listing all of a huge directory.
            files = list(islice(found._files_below(path), MOST_FILES + 1))
            if len(found.states) + len(files) > MOST_FILES or time.monotonic() > deadline:
                found.uncovered[path] = _identity(path)
                continue
            found.directories.append(path)
            for file in files:
                found._store(file)
        return found

    def changes(self) -> Iterator[TreeChange]:
        """Yield the files that changed since, without those that cannot be read. Blocks."""
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
    # After a `cd`, names are relative to another directory.
    starts = [root, *(root / os.path.expanduser(name) for name in _DIRECTORY_CHANGE.findall(command))]
    found: dict[Path, None] = {}
    # A here-document may have thousands of words.
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
