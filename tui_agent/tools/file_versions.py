"""The last version of each file that a tool read or wrote, so that no call overwrites unseen changes (promise 6).

What the model has not seen is found before a call changes the file, and reported with its result.
"""

import hashlib
import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui_agent.protocol.errors import ToolError

from .text_format import SAMPLE_SIZE, format_of, is_binary
from .unified_diff import diff_of, unchanged_ranges

KEPT_CONTENT = 1024 * 1024
"""Largest content in bytes that is kept, to show later what changed."""

KEPT_CONTENT_IN_ALL = 8 * 1024 * 1024
"""Most bytes of content kept for all files together; the least recently remembered go first."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A version of a file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    digest: str | None = None
    """Hash of the content; None if the file was not read to its end."""
    content: bytes | None = None
    is_partly_seen: bool = False
    """True if the model was shown only a part of how it differs from the version before."""

    @classmethod
    def of(cls, status: os.stat_result, digest: str | None = None, content: bytes | None = None) -> "FileVersion":
        """Return the version that `status` describes; content over `KEPT_CONTENT` bytes is dropped.

        Args:
            digest: hash of the whole content; None if it was not read to its end.
            content: the whole content; None if it is not to be kept.
        """
        kept = content if content is not None and len(content) <= KEPT_CONTENT else None
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, digest, kept)

    def is_same_as(self, other: "FileVersion") -> bool:
        """Return True if both have the same content: by hash if both have one, else by inode, size and time."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.identity == other.identity

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """Device, inode, size, modification time."""
        return self.device, self.inode, self.size, self.mtime_ns


class FileVersions:
    """The last known version of each file. Thread-safe."""

    def __init__(self) -> None:
        self._seen: dict[Path, FileVersion] = {}
        self._contents: OrderedDict[Path, int] = OrderedDict()
        self._kept = 0
        self._own: dict[Path, str] = {}
        """Hashes to which commands of the model changed the last known version."""
        self._lock = threading.Lock()

    def remember(self, path: Path, version: FileVersion) -> None:
        """Record the version of `path` that was just read or written."""
        with self._lock:
            self._kept -= self._contents.pop(path, 0)
            self._seen[path] = version
            # A file that was read or written just now is known, no matter who changed it before.
            self._own.pop(path, None)
            if version.content is None:
                return
            self._contents[path] = len(version.content)
            self._kept += len(version.content)
            while self._kept > KEPT_CONTENT_IN_ALL:
                oldest, size = self._contents.popitem(last=False)
                self._kept -= size
                self._seen[oldest] = replace(self._seen[oldest], content=None)

    def last_seen(self, path: Path) -> FileVersion | None:
        """Return the last known version of `path`; None if it was never read or written."""
        with self._lock:
            return self._seen.get(path)

    def remember_own_change(self, path: Path, before: str, after: str) -> None:
        """Record that a command of the model changed `path` from one hash to another; ignore a file never read."""
        with self._lock:
            seen = self._seen.get(path)
            # A gap in the chain is a change by someone else.
            if seen is not None and before and self._own.get(path, seen.digest) == before:
                self._own[path] = after

    def is_own(self, path: Path, version: FileVersion) -> bool:
        """Return True if only commands of the model changed the last known version of `path` to this one."""
        with self._lock:
            return version.digest is not None and self._own.get(path) == version.digest


def digest_of(content: bytes) -> str:
    """Return the hash of a whole content."""
    return new_hash(content).hexdigest()


def new_hash(data: bytes = b"") -> "hashlib.blake2b":
    """Return the hash object behind `FileVersion.digest`, to be updated piece by piece."""
    return hashlib.blake2b(data, digest_size=16)


CHANGES_SHOWN = 6_000


@dataclass(frozen=True, slots=True)
class UnseenChange:
    """The difference between the version of a file that the model knows and the present one."""

    path: Path
    now: FileVersion
    words: str
    """Description for the model: a diff, or sizes."""
    is_whole: bool
    """True if the description shows every changed line."""
    unchanged: Sequence[tuple[int, int]]
    """Ranges of unchanged lines of the present version, from 0: first line, and the line after the last."""
    is_own: bool
    """True if only commands of the model made the change."""

    def meets(self, places: Iterable[tuple[int, int]]) -> bool:
        """Return True if one of these places, each a first and a last line, is not within unchanged lines."""
        starts = [start for start, _ in self.unchanged]

        def is_within(first: int, last: int) -> bool:
            index = bisect_right(starts, first) - 1
            return index >= 0 and last < self.unchanged[index][1]

        return not self.is_own and not all(is_within(*place) for place in places)

    def count_as_seen(self, versions: FileVersions) -> None:
        """Record that the model was shown the description."""
        versions.remember(self.path, replace(self.now, is_partly_seen=not self.is_whole))


class UnseenChangeError(ToolError):
    """A refusal because of an unseen change; its text describes the change."""

    def __init__(self, text: str, unseen: UnseenChange) -> None:
        super().__init__(f"{text}; {unseen.words}")
        self.unseen = unseen


def find_unseen_change(versions: FileVersions, path: Path, now: FileVersion, text: str) -> UnseenChange | None:
    """Return how the present version of a file, which has a hash, differs from the one that the model knows.

    None if it does not, or the model knows none.
    """
    seen = versions.last_seen(path)
    if seen is None or seen.is_same_as(now):
        return None
    is_own = versions.is_own(path, now)
    old = _text_of(seen.content)
    if old is None:
        words = f"it had {seen.size:,} bytes and now has {now.size:,}"
        return UnseenChange(path, now, words, is_whole=False, unchanged=(), is_own=is_own)
    diff = diff_of(old, text, "as read", "on disk")
    words = f"what changed:\n{diff.shortened(CHANGES_SHOWN)}".rstrip("\n")
    is_whole = len(diff) <= CHANGES_SHOWN
    return UnseenChange(path, now, words, is_whole=is_whole, unchanged=unchanged_ranges(old, text), is_own=is_own)


def _text_of(content: bytes | None) -> str | None:
    """Return the text of a content; None if it is not known, or not text."""
    if content is None or is_binary(content):
        return None
    try:
        return format_of(content[:SAMPLE_SIZE]).decode(content)
    except ToolError:
        return None
