"""The journal on disk: one event a line, only ever appended to, by one writer at a time.

A line counts once its line feed is there. What was there before is never changed or removed; only this writer's own
half-written end is cut off again, before it is written anew.
"""

import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import SessionError, SessionOpenError

FILE_MODE = 0o600


class Disk:
    """The four things done to an open file. Tests put one in their place that fails."""

    def write(self, descriptor: int, data: memoryview) -> int:
        """Writes some of `data`; returns how many bytes."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Returns once everything written is on the disk itself."""
        os.fdatasync(descriptor)

    def cut(self, descriptor: int, size: int) -> None:
        """Cuts the file to `size` bytes."""
        os.ftruncate(descriptor, size)

    def links(self, descriptor: int) -> int:
        """Number of names the file has; 0 once it was removed."""
        return os.fstat(descriptor).st_nlink


class JournalFile:
    """An open journal and the lease on it (`flock`), which ends with the process whatever happens to it.

    Not for two threads at once. Everything here blocks.
    """

    def __init__(self, path: Path, *, expected_size: int | None = None, disk: Disk | None = None) -> None:
        """Opens `path` under the lease; creates it, for its owner only, where it is missing.

        Args:
            path: the journal.
            expected_size: bytes the caller has read; None: whatever is there is fine.
            disk: how bytes reach the disk.

        Raises:
            SessionOpenError: another writer has it.
            SessionError: it changed since it was read, or it cannot be opened.
        """
        self.path = path
        self._disk = disk or Disk()
        self._descriptor = _open_locked(path)
        try:
            self._begin(expected_size)
        except (OSError, SessionError):
            os.close(self._descriptor)
            raise

    def _begin(self, expected_size: int | None) -> None:
        self._size = os.fstat(self._descriptor).st_size
        if expected_size is not None and expected_size != self._size:
            raise SessionError(
                f"Session {self.path.stem} was written to by another program since it was read. "
                "Nothing was changed; open it again."
            )
        self._synced = self._size
        self._since_sync: list[bytes] = []
        self._again = b""
        self._half_written = False
        if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
            self._again = b"\n"

    @property
    def size(self) -> int:
        """Bytes of whole lines."""
        return self._size

    def append(self, lines: bytes, *, durable: bool) -> None:
        """Appends whole lines; after an error the file is as before or has a half-written end that the next call mends.

        Args:
            lines: bytes that end with a line feed; the caller gives them again if this raises.
            durable: return only once they, and everything before them, are on the disk itself.

        Raises:
            OSError: they are not kept.
        """
        if not self._disk.links(self._descriptor):
            raise FileNotFoundError("the session's file was removed")
        if self._half_written:
            self._disk.cut(self._descriptor, self._size)
            self._half_written = False
        data = self._again + lines
        self._write(data)
        self._again = b""
        self._size += len(data)
        self._since_sync.append(data)
        if durable:
            self._sync(len(lines))

    def close(self) -> None:
        """Closes the file and gives the lease back; a line that was written in part goes. May be called again."""
        if self._descriptor >= 0:
            with suppress(OSError):
                self._discard_torn_line()
            os.close(self._descriptor)
            self._descriptor = -1

    def _discard_torn_line(self) -> None:
        """Nothing more will be written: of what could not be kept for sure, the whole lines stay."""
        if self._half_written:
            size = os.fstat(self._descriptor).st_size
            tail = os.pread(self._descriptor, max(size - self._size, 0), self._size)
            self._disk.cut(self._descriptor, self._size + tail.rfind(b"\n") + 1)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        self._half_written = True
        while rest:
            rest = rest[self._disk.write(self._descriptor, rest) :]
        self._half_written = False

    def _sync(self, newest: int) -> None:
        """After a failed sync nobody knows what is on the disk: everything since the last good one is written again.

        The newest bytes come from the caller a second time; what stood before them is kept here.
        """
        try:
            self._disk.sync(self._descriptor)
        except OSError:
            self._again = b"".join(self._since_sync)[:-newest]
            self._since_sync = []
            self._size = self._synced
            self._half_written = True
            raise
        self._synced = self._size
        self._since_sync = []


def with_journal_lock(path: Path, action: Callable[[], None]) -> None:
    """Does something to a journal that nobody may have open meanwhile, such as removing it.

    Raises:
        SessionError: another process has it open.
    """
    descriptor = _open_locked(path)
    try:
        action()
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> int:
    """A descriptor that holds the lease on the file that has this name now."""
    try:
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise SessionError(f"{path} is not a file; a session cannot be kept there.")
                if status.st_nlink:
                    os.fchmod(descriptor, FILE_MODE)
                    return descriptor
            except (OSError, SessionError):
                os.close(descriptor)
                raise
            os.close(descriptor)
    except BlockingIOError:
        raise SessionOpenError(path.stem) from None
    except OSError as error:
        raise SessionError(
            f"Session {path.stem} cannot be opened for writing: {error.strerror or error}. Nothing was changed; "
            f"--resume {path.stem} --no-session goes on with it and keeps nothing."
        ) from error
