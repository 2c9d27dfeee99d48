"""A file of ours that holds an output too long for the model; bounded, and a full disk never fails the command."""

import os
from collections.abc import Callable
from pathlib import Path

SPOOL_LIMIT = 256 * 1024 * 1024
"""Most bytes kept of one output."""


class SpoolFile:
    """Written once, from start to end; made with the first bytes."""

    def __init__(self, new_file: Callable[[], tuple[int, Path]], limit: int = SPOOL_LIMIT) -> None:
        """
        Args:
            new_file: makes the empty file, 0600; gives a descriptor for writing and its path.
            limit: most bytes written to it.
        """
        self._new_file = new_file
        self._limit = limit
        self._descriptor: int | None = None
        self._begun = False
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
        try:
            if not self._begun:
                self._begun = True
                self._descriptor, self.path = self._new_file()
            self._write(memoryview(data))
        except OSError as error:
            self.problem = error.strerror or str(error)
            self.close()

    def close(self) -> None:
        """Ends it; what comes later is dropped."""
        self._begun = True
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, data: memoryview) -> None:
        if self._descriptor is None:
            return
        room = self._limit - self.size
        if len(data) > room:
            data = data[:room]
            self.problem = f"only the first {self._limit:,} bytes are kept"
        while data:
            written = os.write(self._descriptor, data)
            self.size += written
            data = data[written:]
