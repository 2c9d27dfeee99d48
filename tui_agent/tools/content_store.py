"""Store of file contents by hash, in the session's directory, from which a rewind restores changed files."""

import errno
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.regular_file import make_private_directories

from .file_versions import digest_of

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
