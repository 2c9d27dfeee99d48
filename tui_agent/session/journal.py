"""The journal file: one event a line, append-only, with one writer at a time.

A line is valid once its line feed is written. Existing content is never changed or removed; a writer only cuts off its
own half-written end before it writes again.
"""

import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.errors import SessionError, SessionOpenError, SessionWriteError

FILE_MODE = 0o600


class Disk:
    """File operations of a journal. Tests replace it with one that fails."""

    def write(self, descriptor: int, data: memoryview) -> int:
        """Write a part of `data` and return the number of bytes."""
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        """Wait until everything written is on the disk."""
        os.fdatasync(descriptor)

    def cut(self, descriptor: int, size: int) -> None:
        """Truncate the file to `size` bytes."""
        os.ftruncate(descriptor, size)

    def links(self, descriptor: int) -> int:
        """Return the number of names of the file; 0 if it was removed."""
        return os.fstat(descriptor).st_nlink


class JournalFile:
    """An open journal with its lease (`flock`), which ends with the process in any case.

    Not thread-safe. All methods block.
    """

    def __init__(self, path: Path, *, expected_size: int | None = None, disk: Disk | None = None) -> None:
        """Open `path` under the lease; create it with mode 0600 if it is missing.

        Args:
            expected_size: bytes the caller has read; None to accept any size.

        Raises:
            SessionOpenError: another program has it open for writing.
            SessionWriteError: it cannot be opened.
            SessionError: it changed since it was read, or is not a regular file.
            OSError: its size or end cannot be read.
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
                f"Another program wrote to session {self.path.stem} since it was read. "
                "Nothing was changed; open it again."
            )
        self._synced = self._size
        self._since_sync: list[bytes] = []
        self._again = b""
        self._half_written = False
        # The torn line of a crash is never removed; a line feed keeps the next event apart from it.
        if self._size and os.pread(self._descriptor, 1, self._size - 1) != b"\n":
            self._again = b"\n"

    @property
    def size(self) -> int:
        """Size of the whole lines in bytes."""
        return self._size

    def append(self, lines: bytes, *, durable: bool) -> None:
        """Append whole lines. After an error the file is unchanged or has a half-written end, which the next call
        removes.

        Args:
            lines: bytes that end with a line feed; if this raises, pass them again with the next call.
            durable: True to wait until they, and everything before them, are on the disk.

        Raises:
            OSError: the lines are not saved.
        """
        # Writes to a removed file succeed, and nothing of them is left.
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
        """Close the file, remove a half-written line and release the lease. May be called again."""
        if self._descriptor >= 0:
            with suppress(OSError):
                self._discard_torn_line()
            os.close(self._descriptor)
            self._descriptor = -1

    def _discard_torn_line(self) -> None:
        """Remove an incomplete last line, but keep whole lines even if their write was reported as failed."""
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
        """Sync the file. After a failed sync the state of the disk is unknown: write everything since the last good one
        again.

        The caller passes the newest `newest` bytes again; the bytes before them are kept in `_again`.
        """
        try:
            self._disk.sync(self._descriptor)
        except OSError:
            # The system counts the pages of a failed sync as written: another sync would succeed without them.
            self._again = b"".join(self._since_sync)[:-newest]
            self._since_sync = []
            self._size = self._synced
            self._half_written = True
            raise
        self._synced = self._size
        self._since_sync = []


def with_journal_lock(path: Path, action: Callable[[], None]) -> None:
    """Run `action` on a journal, such as removing it, while no program has it open. Blocks.

    A missing journal is created first. Exceptions of `action` pass through.

    Raises:
        SessionOpenError: another process has it open.
        SessionWriteError: it cannot be opened.
        SessionError: it is not a regular file.
    """
    descriptor = _open_locked(path)
    try:
        action()
    finally:
        os.close(descriptor)


def is_journal_open(path: Path) -> bool:
    """True if a program has the journal open for writing. One that cannot be read counts as closed. Blocks briefly."""
    try:
        # Without O_NONBLOCK, the open would wait for the writer of a pipe with this name.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        # Shared, so that two programs that list sessions do not take each other for a writer.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _open_locked(path: Path) -> int:
    """Return a descriptor with the lease on the file that has this name now."""
    try:
        while True:
            # A link with this name could lead the writer to any file of the user.
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise SessionError(f"{path} is not a regular file; no session can be saved there.")
                # The name may have been removed between the open and the lock, and a lock on a file without a name
                # keeps no one out.
                if status.st_nlink:
                    # A file that came from a backup may be readable by others.
                    os.fchmod(descriptor, FILE_MODE)
                    return descriptor
            except (OSError, SessionError):
                os.close(descriptor)
                raise
            os.close(descriptor)
    except BlockingIOError:
        raise SessionOpenError(path.stem) from None
    except OSError as error:
        raise SessionWriteError(
            f"Session {path.stem} cannot be opened for writing: {error.strerror or error}. Nothing was changed."
        ) from error
