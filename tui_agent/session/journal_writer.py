"""The recorder: writes all events of a session to its journal, in order.

Deltas of one source between two writes become one line; the journal still gives the same conversation and screen.
Events that cannot be written stay in memory, in order, until the disk accepts them.
"""

import asyncio
import threading
from bisect import bisect_right
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.bus import EventBus, merge_neighbours
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import (
    MessageEnded,
    SessionSaved,
    SessionSaveFailed,
    ToolEnded,
    ToolOutput,
    ToolStarted,
    Warned,
)
from tui_agent.protocol.messages import ToolResultMessage

from .journal import Disk, JournalFile

DELTA_INTERVAL = 0.25
"""Seconds that deltas may wait to be written together."""

EVENT_INTERVAL = 0.05
"""Seconds that events may wait after a write. What starts or reports effects does not: it flushes the journal."""

RETRY_AFTER = 1.0
"""Seconds until a failed write is retried, unless a new event triggers a write earlier."""

OUTPUT_KEPT = 131_072
"""Maximum characters saved of one call's output between two writes. The end is kept, which is more than a screen shows;
the whole output is in the call's result or file."""

RETRYABLE = (OSError, MemoryError, RuntimeError)
"""Errors of the disk, of memory or of starting a thread, after which the write is retried later."""

DURABLE = frozenset(
    {
        "run.started",
        "run.ended",
        "message.ended",
        "message.discarded",
        "steering.queued",
        "steering.requeued",
        "steering.dropped",
        "tool.started",
        "tool.ended",
        "approval.requested",
        "approval.resolved",
        "compaction.ended",
        "compaction.undone",
        "content.dropped",
        "session.created",
        "session.loaded",
        "session.renamed",
        "session.repaired",
        "session.rewinding",
        "session.rewound",
    }
)
"""Events that must survive a power loss: they are synced to the disk before later events are written."""

_SAID = ("run.", "message.", "steering.")
"""Prefixes of the event types that make a session worth saving."""


class JournalQueue:
    """Queue of unwritten events. `add` and `write_all` may be called from different threads."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._waiting: list[Envelope] = []
        self._waiting_lock = threading.Lock()
        self._writing_lock = threading.Lock()

    def add(self, envelopes: Iterable[Envelope]) -> None:
        """Append events to the queue; never blocks on the disk."""
        with self._waiting_lock:
            self._waiting.extend(envelopes)

    @property
    def waiting(self) -> int:
        """Number of unwritten events."""
        return len(self._waiting)

    def write_all(self) -> int:
        """Write all queued events, with deltas merged, and return the number of lines. Blocks.

        After an error the events are queued again, in order.

        Raises:
            OSError, MemoryError, RuntimeError: nothing was written; the events are still queued.
        """
        with self._writing_lock:
            with self._waiting_lock:
                waiting, self._waiting = self._waiting, []
            # Without the lock of `add`: publishers on the event loop never wait for this work.
            batch = [_fitted(envelope) for envelope in merge_neighbours(waiting)]
            if not batch:
                return 0
            try:
                lines = "".join(f"{_line_of(envelope)}\n" for envelope in batch).encode()
                self._file.append(lines, durable=any(envelope.type in DURABLE for envelope in batch))
            except RETRYABLE:
                with self._waiting_lock:
                    # Before what was added meanwhile: the journal has the order of the events.
                    self._waiting[:0] = batch
                raise
            return len(batch)


class JournalWriter:
    """Context manager that writes all events of a bus to the journal at `path`; one for each bus.

    Entering takes the lease and also writes the events published before. Exit writes the rest and closes the file, even
    if the body was cancelled. If a write fails, the conversation continues: the recorder publishes
    `session.save_failed` once, and `session.saved` when everything is written again.
    """

    def __init__(
        self, bus: EventBus, path: Path, *, expected_size: int | None = None, disk: Disk | None = None
    ) -> None:
        """Store the arguments; nothing is opened.

        Args:
            bus: the bus of the session; its origin has the session's id.
            path: the journal; created if it is missing.
            expected_size: bytes of the journal that were loaded; None for a new one.
        """
        self.path = path
        self.error: str | None = None
        """Reason why the newest events are not on the disk; None if they are."""
        self.lost = 0
        """Number of events that could not be written by the exit."""
        self._bus = bus
        self._expected_size = expected_size
        self._disk = disk
        self._failed = asyncio.Event()
        self._closing = asyncio.Event()
        self._said = False
        self._effects: set[str] = set()
        """Ids of the calls with effects."""
        self._looked_at = 0
        """Number of the last event that `flush_outcomes` looked at: many turns may pass between two writes."""
        self._taken = self._saved = self._newest_effect = 0
        """Numbers of the newest batch of events, the newest one in the journal, and the one with the newest effect."""
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "JournalWriter":
        """Open the journal and subscribe to the bus.

        Raises:
            SessionOpenError: another program has it open for writing.
            SessionWriteError: it cannot be opened.
            SessionError: it changed since it was read.
        """
        self._file = await asyncio.to_thread(JournalFile, self.path, expected_size=self._expected_size, disk=self._disk)
        self._spool = JournalQueue(self._file)
        self._said = self._file.size > 0
        # Deltas are merged when they are written, over a longer time than a subscription does.
        self._subscription = self._bus.subscribe(merge=False, since=0)
        await self._tasks.__aenter__()
        self._tasks.create_task(self._write())
        self._retrier = self._tasks.create_task(self._retry())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the rest and close the file; remove the file of a new session without messages."""
        self._closing.set()
        self._subscription.close()
        self._retrier.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._close()

    async def flush(self) -> None:
        """Wait until all events published so far are in the journal.

        Raises:
            SessionError: they cannot be written now; they stay in memory, and the write is retried.
        """
        await self.flush_or_warn()
        if self.error is not None:
            raise SessionError(self.error)

    async def flush_or_warn(self) -> None:
        """Wait until all events published so far are in the journal or their write failed. A failure is published, not
        raised: the work continues."""
        self._take(self._subscription.drain())
        await self._save()

    async def flush_outcomes(self) -> None:
        """Flush as `flush_or_warn` does if a call with effects has started or ended since the last flush.

        What else the model reads can be lost with the process: prompts and reads are written within `EVENT_INTERVAL`,
        and no request waits for the disk because of them.
        """
        waiting, tells = self._subscription.waiting, self._newest_effect > self._saved
        for envelope in waiting[bisect_right(waiting, self._looked_at, key=_number_of) :]:
            self._looked_at = envelope.seq
            tells = self._tells_of_effect(envelope) or tells
        if tells:
            await self.flush_or_warn()

    def _tells_of_effect(self, envelope: Envelope) -> bool:
        match envelope.event:
            case ToolStarted(read_only=False, call_id=call_id):
                self._effects.add(call_id)
                return True
            case ToolEnded(call_id=call_id) | MessageEnded(message=ToolResultMessage(call_id=call_id)):
                return call_id in self._effects
            case _:
                return False

    async def _write(self) -> None:
        async for batch in self._subscription.batches(pace=DELTA_INTERVAL):
            self._take(batch)
            await self._save()
            # A burst of events costs one write; the exit does not wait for this pause.
            with suppress(TimeoutError):
                async with asyncio.timeout(EVENT_INTERVAL):
                    await self._closing.wait()

    async def _retry(self) -> None:
        """Retry failed writes, even if no new event arrives."""
        while True:
            await self._failed.wait()
            await asyncio.sleep(RETRY_AFTER)
            self._failed.clear()
            await self._save()

    def _take(self, batch: list[Envelope]) -> None:
        self._said = self._said or any(envelope.type.startswith(_SAID) for envelope in batch)
        self._taken += 1
        for envelope in batch:
            if self._tells_of_effect(envelope):
                self._newest_effect = self._taken
        self._spool.add(batch)

    async def _save(self) -> None:
        taken = self._taken
        try:
            await asyncio.to_thread(self._spool.write_all)
        except RETRYABLE as error:
            self._note_failure(error)
        else:
            self._saved = max(self._saved, taken)
            self._note_success()

    def _note_failure(self, error: Exception) -> None:
        self._failed.set()
        if self.error is None:
            # Said once: a full disk would otherwise add a warning every second.
            self.error = (
                f"This session cannot be saved now ({reason_of(error)}). The conversation continues; unsaved events "
                f"stay in memory until {self.path} can be written."
            )
            self._bus.publish(SessionSaveFailed(id=self.path.stem, path=str(self.path), error=self.error))

    def _note_success(self) -> None:
        if self.error is not None:
            self.error = None
            self._bus.publish(SessionSaved(id=self.path.stem, path=str(self.path)))

    def _close(self) -> None:
        """Write for the last time, on the event loop itself: a cancelled task must not lose events."""
        self._take(self._subscription.drain())
        try:
            self._spool.write_all()
        except RETRYABLE as error:
            self._note_failure(error)
            self.lost = self._spool.waiting
        # A program that was started and left without a word has nothing to continue.
        if not self._said or not self._file.size:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _number_of(envelope: Envelope) -> int:
    return envelope.seq


def _fitted(envelope: Envelope) -> Envelope:
    """Return the event with at most the last `OUTPUT_KEPT` characters of output."""
    event = envelope.event
    if isinstance(event, ToolOutput) and len(event.chunk) > OUTPUT_KEPT:
        return envelope.with_event(event.model_copy(update={"chunk": event.chunk[-OUTPUT_KEPT:]}))
    return envelope


def _line_of(envelope: Envelope) -> str:
    """Return the event as one line; a warning in its place if it cannot be serialised, so that later events are
    saved."""
    try:
        return envelope.to_json()
    except (ValueError, TypeError, RecursionError) as error:
        text = f"An event of type {envelope.type} could not be saved: {type(error).__name__}."
        return envelope.with_event(Warned(code="event_not_kept", text=text)).to_json()
