"""Contents of files under their hash, so that what was changed can be had again. In the session's own directory."""

import errno
import os
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from .file_versions import digest_of

CONTENT_LIMIT = 16 * 1024 * 1024
"""Most bytes of one content that is kept."""

STORE_LIMIT = 512 * 1024 * 1024
"""Most bytes kept for one session."""

_FILE_MODE = 0o600
_DIRECTORY_MODE = 0o700


class ContentStore:
    """Contents by digest, each a 0600 file in a 0700 directory. Blocks; safe to use from threads."""

    def __init__(self, root: Path, limit: int = STORE_LIMIT) -> None:
        """
        Args:
            root: its directory; made, with its parents, when the first content is kept.
            limit: most bytes kept in all.
        """
        self.root = root
        self._limit = limit
        self._size: int | None = None
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def put(self, content: bytes, *, durable: bool = False) -> tuple[str, bool]:
        """Keeps a content, `durable` also over a loss of power. Returns its digest, and whether it can be had again:
        not where it is too large, where there is no more room, or where the disk takes nothing.
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
        """A content; None where it was not kept, or is damaged."""
        try:
            content = self._path(digest).read_bytes()
        except OSError:
            return None
        return content if digest_of(content) == digest else None

    def _has(self, digest: str) -> bool:
        return self._path(digest).is_file()

    def _path(self, digest: str) -> Path:
        """Where a content is; nothing but a digest names one."""
        if not digest or not digest.isalnum():
            raise FileNotFoundError(errno.ENOENT, "no digest", digest)
        return self.root / digest[:2] / digest[2:]

    def _write(self, digest: str, content: bytes, *, durable: bool) -> bool:
        """Writes a new content beside its place and moves it there whole; False where there is no more room."""
        if self._size is None:
            self._size = self._used()
        if self._size + len(content) > self._limit:
            return False
        path = self._path(digest)
        path.parent.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
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
        """Bytes kept by an earlier life of the session."""
        self.root.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
        self.root.chmod(_DIRECTORY_MODE)
        return sum(file.stat().st_size for file in self.root.glob("*/*") if file.is_file())
