"""A file of ours that holds an output too long for the model; bounded, and a full disk never fails the command.

All files of a session share one budget, so that commands with endless output do not fill the disk.
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SPOOL_LIMIT = 256 * 1024 * 1024
"""Most bytes kept of one output."""

SESSION_SPOOL_LIMIT = 1024 * 1024 * 1024
"""Most bytes kept of all outputs of a session."""

SPOOL_PREFIX = "output-"
"""Prefix of the names of these files."""


class SpoolBudget:
    """Bytes that the outputs of a session may still take on the disk. Shared by the threads that write them."""

    def __init__(self, directory: Path, limit: int = SESSION_SPOOL_LIMIT) -> None:
        """Prepare the budget; the first bytes count the files that the session left in earlier runs.

        Args:
            directory: where the files are.
            limit: most bytes in all of them.
        """
        self.limit = limit
        """Most bytes in all files."""
        self._directory = directory
        self._lock = threading.Lock()
        self._used: int | None = None
        self._reached = self._told = False

    def take(self, wanted: int) -> int:
        """Return how many of `wanted` bytes may be written, and count them as used."""
        with self._lock:
            if self._used is None:
                self._used = self._on_disk()
            granted = max(0, min(wanted, self.limit - self._used))
            self._used += granted
            self._reached = self._reached or granted < wanted
            return granted

    def give_back(self, unused: int) -> None:
        """Return granted bytes that were not written."""
        with self._lock:
            self._used = (self._used or 0) - unused

    def newly_reached(self) -> bool:
        """Return True once, after bytes were first refused."""
        with self._lock:
            told, self._told = self._told, self._reached
            return self._reached and not told

    def _on_disk(self) -> int:
        """Return the size of the files that exist already."""
        used = 0
        with suppress(OSError), os.scandir(self._directory) as entries:
            for entry in entries:
                if entry.name.startswith(SPOOL_PREFIX):
                    with suppress(OSError):
                        used += entry.stat(follow_symlinks=False).st_size
        return used


class SpoolFile:
    """Written once, from start to end; made with the first bytes."""

    def __init__(
        self,
        new_file: Callable[[], tuple[int, Path]],
        limit: int = SPOOL_LIMIT,
        budget: SpoolBudget | None = None,
    ) -> None:
        """
        Args:
            new_file: makes the empty file, 0600; gives a descriptor for writing and its path.
            limit: most bytes written to it.
            budget: bytes that it shares with other files; None: only `limit` counts.
        """
        self._new_file = new_file
        self._limit = limit
        self._budget = budget
        self._descriptor: int | None = None
        self._begun = self._closed = False
        self.path: Path | None = None
        """None until there are bytes, and where the file could not be made."""
        self.size = 0
        """Bytes written so far."""
        self.problem = ""
        """Why the file holds less than it was given, if it does."""

    @property
    def begun(self) -> bool:
        """Whether anything was to be written."""
        return self._begun

    def write(self, data: bytes) -> None:
        """Adds bytes; never raises."""
        self._begun = True
        if self._closed:
            return
        kept = self._granted(data)
        written = 0
        try:
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
        if self.problem:
            self.close()

    def close(self) -> None:
        """Ends it; what comes later is dropped."""
        self._begun = self._closed = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _granted(self, data: bytes) -> memoryview:
        """Return the part of some bytes that may be written; `problem` says why if that is not all."""
        room = min(len(data), self._limit - self.size)
        granted = room if self._budget is None else self._budget.take(room)
        if granted < room and self._budget is not None:
            limit = f"the outputs of this session have reached their limit of {self._budget.limit:,} bytes"
            first = self.size + granted
            self.problem = f"only the first {first:,} bytes are kept, {limit}" if first else limit
        elif room < len(data):
            self.problem = f"only the first {self._limit:,} bytes are kept"
        return memoryview(data)[:granted]
