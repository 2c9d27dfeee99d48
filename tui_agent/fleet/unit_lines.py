"""The events of a unit while they are written: a viewer reads those in `OUT`, a worker those of the unit's process."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from .unit_events import DELTAS, fields_of, seq_of, type_of

JOURNAL = "journal.jsonl"
"""Facts of a unit, on the disk."""
STREAM = "stream.jsonl"
"""The last events of a unit, deltas included, while it runs and a viewer is there."""


class JournalTail:
    """Reads what was appended to a journal since the last look."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """
        Args:
            path: the journal; it may not exist yet.
            size: bytes that are known already.
        """
        self._path = path
        self._place = size

    def lines(self) -> list[bytes]:
        """Return the new whole lines. Blocks."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        with open(descriptor, "rb") as file:
            file.seek(self._place)
            lines = _whole_lines(file)
            self._place = file.tell()
        return lines


class UnitLines:
    """Reads the events of a unit in the fleet's directory, in order, as its driver writes them.

    The driver writes an event to the journal first. If the stream is removed or begins anew, nothing saved is missed.
    """

    def __init__(self, home: Path) -> None:
        """Read nothing yet from a unit's directory."""
        self._stream_path = home / STREAM
        self._journal = JournalTail(home / JOURNAL)
        self._stream: BinaryIO | None = None
        self._last = 0
        """Number of the last fact."""

    def read(self) -> list[bytes]:
        """Return the events since the last look. Blocks."""
        found: list[bytes] = []
        if self._stream is not None:
            # Asked first: nothing is appended to a file after its removal.
            is_removed = os.fstat(self._stream.fileno()).st_nlink == 0
            found += _whole_lines(self._stream)
            if is_removed:
                self.close()
        if self._stream is None:
            # Opened before the journal is read, so that each later event is in one of them.
            self._stream = _opened(self._stream_path)
            found += self._journal.lines()
        return [line for line in found if self._is_new(line)]

    def close(self) -> None:
        """Close the stream."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _is_new(self, line: bytes) -> bool:
        number = seq_of(line)
        if number <= self._last:
            return False
        if type_of(line) not in DELTAS:
            self._last = number
        return True


def last_begun_call(lines: Sequence[bytes]) -> int:
    """Return the number of the last `tool.started` of a call with effects; 0 if there is none.

    A unit's process saves this event in its own journal before it executes the call, and only then prints it.
    """
    begun = (line for line in lines if type_of(line) == "tool.started")
    return max((seq_of(line) for line in begun if not fields_of(line).get("read_only")), default=0)


def _opened(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None


def _whole_lines(file: BinaryIO) -> list[bytes]:
    """Return the rest of a file without an unfinished line, which the next look reads."""
    content = file.read()
    end = content.rfind(b"\n") + 1
    file.seek(end - len(content), os.SEEK_CUR)
    return content[:end].splitlines()
