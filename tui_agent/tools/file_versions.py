"""The last version of each file that a tool read or wrote, so that no call overwrites unseen changes (promise 6)."""

import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from .text_format import format_of, is_binary
from .unified_diff import diff_of

KEPT_CONTENT = 256 * 1024
"""Largest content in bytes that is kept, to show later what changed."""

KEPT_CONTENT_IN_ALL = 8 * 1024 * 1024
"""Most bytes of content kept for all files together; the least recently remembered go first."""

CHANGES_SHOWN = 3_000
"""Most characters of a diff in an error message."""


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
    """The content, if it is short."""

    @classmethod
    def of(cls, status: os.stat_result, digest: str | None = None, content: bytes | None = None) -> "FileVersion":
        """Return the version that `status` describes; content over `KEPT_CONTENT` bytes is dropped."""
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
        self._lock = threading.Lock()

    def remember(self, path: Path, version: FileVersion) -> None:
        """Record the version of `path` that was just read or written."""
        with self._lock:
            self._kept -= self._contents.pop(path, 0)
            self._seen[path] = version
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


def digest_of(content: bytes) -> str:
    """Return the hash of a whole content."""
    return new_hash(content).hexdigest()


def new_hash(data: bytes = b"") -> "hashlib.blake2b":
    """Return the hash object behind `FileVersion.digest`, to be updated piece by piece."""
    return hashlib.blake2b(data, digest_size=16)


def describe_change(before: FileVersion, now: FileVersion) -> str:
    """Describe the change between two versions: by a diff if both contents are kept, else by their sizes."""
    if before.content is None or now.content is None or is_binary(before.content) or is_binary(now.content):
        return f"it had {before.size:,} bytes and now has {now.size:,}"
    old, new = (content.decode(format_of(content).encoding, "replace") for content in (before.content, now.content))
    return f"what changed:\n{diff_of(old, new, 'as read', 'on disk').shortened(CHANGES_SHOWN).text}"
