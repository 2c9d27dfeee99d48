"""Files for output that is too long for the model. Their size is bounded, and a full disk never fails a command.

All files of a session share one budget, so that commands with endless output do not fill the disk.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SPOOL_LIMIT = 256 * 1024 * 1024
"""Most bytes saved of one output."""

SESSION_SPOOL_LIMIT = 1024 * 1024 * 1024
"""Most bytes saved of all outputs of a session."""

JOB_SPOOL_LIMIT = 64 * 1024 * 1024
"""Most bytes saved of a background command, which may run for days; the oldest make room for new ones."""

SPOOL_PREFIX = "output-"
"""Prefix of the names of these files."""

_MOVED_AT_ONCE = 1024 * 1024


class SpoolBudget:
    """Bytes that the outputs of a session may still take on the disk. Thread-safe."""

    def __init__(self, directory: Path, limit: int = SESSION_SPOOL_LIMIT) -> None:
        """Prepare the budget; files that the session left in earlier runs count, too."""
        self.limit = limit
        """Most bytes in all files."""
        self._directory = directory
        self._lock = threading.Lock()
        self._used: int | None = None
        self._is_reached = self._is_reported = False

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` bytes may be written, and count them as used."""
        with self._lock:
            # Counted with the first output: many sessions never have a file.
            if self._used is None:
                self._used = self._on_disk()
            granted = max(0, min(wanted, self.limit - self._used))
            self._used += granted
            self._is_reached = self._is_reached or granted < wanted
            return granted

    def give_back(self, unused: int) -> None:
        """Return granted bytes that were not written."""
        with self._lock:
            self._used = (self._used or 0) - unused

    def newly_reached(self) -> bool:
        """Return True once, after bytes were first refused."""
        with self._lock:
            was_reported, self._is_reported = self._is_reported, self._is_reached
            return self._is_reached and not was_reported

    def _on_disk(self) -> int:
        """Return the size of the existing files."""
        used = 0
        with suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.startswith(SPOOL_PREFIX):
                    with suppress(OSError):
                        used += entry.stat(follow_symlinks=False).st_size
        return used


class SpoolFile:
    """A file that is created with its first bytes and written from start to end. Once it is full, it drops later bytes,
    or, after `roll`, its oldest ones."""

    def __init__(
        self,
        new_file: Callable[[], tuple[int, Path]],
        limit: int = SPOOL_LIMIT,
        budget: SpoolBudget | None = None,
    ) -> None:
        """
        Args:
            new_file: creates an empty 0600 file; returns a descriptor for writing and its path.
            budget: budget it shares with other files; None: only `limit` counts.
        """
        self._new_file = new_file
        self._limit = limit
        self._budget = budget
        self._descriptor: int | None = None
        self._begun = self._closed = self._rolls = False
        self._dropped = 0
        self.path: Path | None = None
        """Path of the file; None before the first bytes, and if the file could not be created."""
        self.size = 0
        """Bytes written so far."""
        self.problem = ""
        """Reason why the file is incomplete; empty if it is complete."""

    @property
    def begun(self) -> bool:
        """True once `write` or `close` was called."""
        return self._begun

    def roll(self, limit: int) -> None:
        """From now on keep the newest `limit` bytes at most; a line at the start of the file says what was dropped."""
        # It may have more than that by now.
        self._limit, self._rolls = max(limit, self.size), True

    def write(self, data: bytes) -> None:
        """Append bytes; never raises."""
        self._begun = True
        if self._closed:
            return
        written, kept = 0, memoryview(b"")
        try:
            if self._rolls and self.size + len(data) > self._limit:
                self._drop_oldest()
            kept = self._granted(data)
            if kept and self._descriptor is None:
                self._descriptor, self.path = self._new_file()
            while self._descriptor is not None and written < len(kept):
                written += os.write(self._descriptor, kept[written:])
        except OSError as error:
            self.problem = error.strerror or str(error)
        finally:
            self.size += written
            if self._budget is not None:
                self._budget.give_back(len(kept) - written)
        # A later piece behind a gap would look like what comes next.
        if self.problem:
            self.close()

    def close(self) -> None:
        """Close the file; later bytes are dropped."""
        self._begun = self._closed = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _drop_oldest(self) -> None:
        """Move the newer half of the file to its start, behind a line that says what was dropped."""
        if self._descriptor is None:
            return
        # Half of it at once: dropping only what is needed would rewrite the file with every piece.
        source = self.size - self._limit // 2
        self._dropped += source
        note = f"[… the oldest output, about {self._dropped:,} bytes, was dropped …]\n".encode()
        target = os.pwrite(self._descriptor, note, 0)
        while block := os.pread(self._descriptor, _MOVED_AT_ONCE, source):
            source += len(block)
            target += os.pwrite(self._descriptor, block, target)
        os.ftruncate(self._descriptor, target)
        os.lseek(self._descriptor, 0, os.SEEK_END)
        if self._budget is not None:
            self._budget.give_back(self.size - target)
        self.size = target

    def _granted(self, data: bytes) -> memoryview:
        """Return the part of `data` that may be written; set `problem` if that is not all."""
        room = min(len(data), self._limit - self.size)
        granted = room if self._budget is None else self._budget.take(room)
        if granted < room and self._budget is not None:
            limit = f"the saved outputs of this session have reached their limit of {self._budget.limit:,} bytes"
            first = self.size + granted
            self.problem = f"only the first {first:,} bytes were saved, because {limit}" if first else limit
        elif room < len(data):
            self.problem = f"only the first {self._limit:,} bytes were saved"
        return memoryview(data)[:granted]
