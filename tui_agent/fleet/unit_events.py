"""The events of a unit on their way to the driver, in batches."""

import json
import re
from collections.abc import Awaitable, Callable

from tui_agent.protocol.messages import JsonObject, is_object

from .worker_messages import CommitReported, EventsReported, WorkerMessage

BATCH = 128 * 1024
"""Bytes of events of one message."""
DELTAS = frozenset({"message.delta", "tool.output", "tool.update", "background.output"})
"""Types of events that are shown only while they happen, and not saved."""

_TYPE = re.compile(rb'"step":[^,]{1,20},"type":"([a-z_.]+)"')
_SEQ = re.compile(rb'"seq":(\d+)')
_DEPTH = re.compile(rb'"depth":(\d+)')
_HEAD = 1_000
"""Bytes of a line that hold its type."""


def type_of(line: bytes) -> str:
    """Return the type of an event's line; empty for anything else."""
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
        """Store the arguments."""
        self._unit_id = unit_id
        self._epoch = epoch
        self._send = send
        self.last_seq = 0
        """Number of the last event taken."""
        self._lines: list[bytes] = []
        self._size = 0
        """Bytes of the waiting lines."""

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
