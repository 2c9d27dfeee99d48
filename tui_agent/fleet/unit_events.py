"""The events of a unit as lines: in batches on their way to the driver, and in files that grow while they are read."""

import json
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from tui_agent.protocol.messages import JsonObject, is_object

from .worker_messages import CommitReported, EventsReported, WorkerMessage

BATCH = 128 * 1024
DELTAS = frozenset({"message.delta", "tool.output", "tool.update", "background.output"})
"""Types of events that are shown only while they happen, and not saved."""

_TYPE = re.compile(rb'"step":[^,]{1,20},"type":"([a-z_.]+)"')
_SEQ = re.compile(rb'"seq":(\d+)')
_DEPTH = re.compile(rb'"depth":(\d+)')
_HEAD = 1_000
"""Bytes of a line that hold its type."""


def type_of(line: bytes) -> str:
    """Return the type of an event's line; empty for anything else."""
    # Not parsed as JSON: a result may be megabytes long, and every line passes here.
    found = _TYPE.search(line, 0, _HEAD)
    return found[1].decode() if found else ""


def seq_of(line: bytes) -> int:
    """Return the number of an event's line; 0 for anything else."""
    found = _SEQ.search(line, 0, _HEAD)
    return int(found[1]) if found else 0


def depth_of(line: bytes) -> int:
    """Return the depth of an event's agent: 0 for the root."""
    found = _DEPTH.search(line, 0, _HEAD)
    return int(found[1]) if found else 0


def fields_of(line: bytes) -> JsonObject:
    """Return the `data` of an event's line; empty for anything else."""
    try:
        record: object = json.loads(line)
    except ValueError:
        return {}
    data = record.get("data") if is_object(record) else None
    return data if is_object(data) else {}


class UnitEvents:
    """Sends the events of one start of a unit, in order."""

    def __init__(self, unit_id: str, epoch: int, send: Callable[[WorkerMessage], Awaitable[None]]) -> None:
        self._unit_id = unit_id
        self._epoch = epoch
        self._send = send
        self.last_seq = 0
        self._lines: list[bytes] = []
        self._size = 0

    @property
    def waiting(self) -> bool:
        """True if there are events that were not sent."""
        return bool(self._lines)

    async def add(self, line: bytes) -> None:
        """Take the next line; send a batch if it is full."""
        self.hold(line)
        if self._size >= BATCH:
            await self.flush()

    def hold(self, line: bytes) -> None:
        """Take the next line without sending it."""
        self.last_seq = max(self.last_seq, seq_of(line))
        self._lines.append(line)
        self._size += len(line)

    async def flush(self) -> None:
        """Send what waits."""
        if self._lines:
            await self._send(EventsReported(self._unit_id, self._epoch, self._take()))

    async def commit(self, commit: str, bundle: bytes) -> None:
        """Send a state of the worktree with the events that wait."""
        await self._send(CommitReported(self._unit_id, self._epoch, commit, bundle, self._take()))

    def _take(self) -> tuple[bytes, ...]:
        taken = tuple(self._lines)
        self._lines, self._size = [], 0
        return taken


JOURNAL = "journal.jsonl"
"""Facts of a unit, on the disk."""
STREAM = "stream.jsonl"
"""The last events of a unit, deltas included, while it runs and a viewer is there."""


class JournalTail:
    """Reads what was appended to a journal since the last look."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """Store the path, which may not exist yet, and the number of bytes that are known already."""
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
        self._stream_path = home / STREAM
        self._journal = JournalTail(home / JOURNAL)
        self._stream: BinaryIO | None = None
        self._last = 0

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
        # A delta that is shown first must not hide a fact before it, which the journal brings later.
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
    # The driver may be in the middle of a write.
    file.seek(end - len(content), os.SEEK_CUR)
    return content[:end].splitlines()
