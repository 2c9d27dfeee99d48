"""What was last seen of each file, so that nobody overwrites what they do not know (safety promise 6)."""

import hashlib
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from .text_format import format_of, is_binary
from .unified_diff import diff_of

KEPT_CONTENT = 256 * 1024
"""Largest content in bytes that is kept to tell later what changed."""

KEPT_CONTENT_IN_ALL = 8 * 1024 * 1024
"""Bytes of content kept for all files together; the longest unused go first."""

CHANGES_SHOWN = 3_000
"""Most characters of a difference that is told."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """A state of a file."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    digest: str | None = None
    """Hash of the content; None where it was too long to be read as a whole."""
    content: bytes | None = None
    """The content, where it is short."""

    @classmethod
    def of(cls, status: os.stat_result, digest: str | None = None, content: bytes | None = None) -> "FileVersion":
        """The version that `status` describes; long content is not kept."""
        kept = content if content is not None and len(content) <= KEPT_CONTENT else None
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, digest, kept)

    def is_same_as(self, other: "FileVersion") -> bool:
        """Whether both hold the same content, as far as can be known: by hash, or by identity, size and time."""
        if self.digest is not None and other.digest is not None:
            return self.digest == other.digest
        return self.identity == other.identity

    @property
    def identity(self) -> tuple[int, int, int, int]:
        """Device, inode, size, time of change."""
        return self.device, self.inode, self.size, self.mtime_ns


class FileVersions:
    """The last version seen of each file. Safe to use from threads."""

    def __init__(self) -> None:
        self._seen: dict[Path, FileVersion] = {}
        self._contents: OrderedDict[Path, int] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()

    def remember(self, path: Path, version: FileVersion) -> None:
        """Notes that `version` of `path` is known from now on."""
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
        """The version known of `path`; None: never read."""
        with self._lock:
            return self._seen.get(path)


def digest_of(content: bytes) -> str:
    """Hash of a whole content."""
    return new_hash(content).hexdigest()


def new_hash(data: bytes = b"") -> "hashlib.blake2b":
    """The hash that `FileVersion.digest` is made with, to be fed piece by piece."""
    return hashlib.blake2b(data, digest_size=16)


def describe_change(before: FileVersion, now: FileVersion) -> str:
    """The change between two versions in words, as a difference where both contents are at hand."""
    if before.content is None or now.content is None or is_binary(before.content) or is_binary(now.content):
        return f"it had {before.size:,} bytes and now has {now.size:,}"
    old, new = (content.decode(format_of(content).encoding, "replace") for content in (before.content, now.content))
    return f"what changed:\n{diff_of(old, new, 'as read', 'on disk').shortened(CHANGES_SHOWN).text}"
