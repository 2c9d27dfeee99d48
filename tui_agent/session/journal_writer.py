"""Keeps a session: one lossless listener, one writer, everything in the order it was told (P49).

Deltas of one thing that come between two writes are kept as one line; folding the file gives the same conversation and
the same screen. Whatever cannot be written stays in memory, in order, and is written as soon as the disk takes it.
"""

import asyncio
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.bus import EventBus, merge_neighbours
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import SessionSaved, SessionSaveFailed, ToolOutput, Warned

from .journal import Disk, JournalFile

DELTA_INTERVAL = 0.25
"""Seconds that deltas may wait to be written together; everything else is written at once."""

RETRY_AFTER = 1.0
"""Seconds until a failed write is tried again, if nothing else is told before."""

OUTPUT_KEPT = 131_072
"""Characters kept of what one call printed between two writes: its end, more than any screen holds of a running call.
The whole is in the call's result or file."""

RETRYABLE = (OSError, MemoryError, RuntimeError)
"""Errors of the disk, of memory or of starting a thread, after which writing is tried again later."""

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
        "session.created",
        "session.loaded",
        "session.renamed",
        "session.repaired",
        "session.rewinding",
        "session.rewound",
    }
)
"""Events that must survive power loss: the disk is waited for before anything later is written."""

_SAID = ("run.", "message.", "steering.")
"""Beginnings of the types that make a session worth keeping."""


class JournalQueue:
    """What is told and not yet written. `add` and `write_all` may be called from different threads."""

    def __init__(self, file: JournalFile) -> None:
        self._file = file
        self._waiting: list[Envelope] = []
        self._waiting_lock = threading.Lock()
        self._writing_lock = threading.Lock()

    def add(self, envelopes: Iterable[Envelope]) -> None:
        """Puts events behind those that wait; never blocks on the disk."""
        with self._waiting_lock:
            self._waiting.extend(envelopes)

    @property
    def waiting(self) -> int:
        """Events that are not written."""
        return len(self._waiting)

    def write_all(self) -> int:
        """Writes everything that waits; returns how many events. On an error all of it waits again, in order.

        Raises:
            OSError, MemoryError, RuntimeError: nothing is written yet; the events still wait.
        """
        with self._writing_lock:
            with self._waiting_lock:
                waiting, self._waiting = self._waiting, []
            batch = [_fitted(envelope) for envelope in merge_neighbours(waiting)]
            if not batch:
                return 0
            try:
                lines = "".join(f"{_line_of(envelope)}\n" for envelope in batch).encode()
                self._file.append(lines, durable=any(envelope.type in DURABLE for envelope in batch))
            except RETRYABLE:
                with self._waiting_lock:
                    self._waiting[:0] = batch
                raise
            return len(batch)


class JournalWriter:
    """Writes everything the bus tells to the journal at `path` for as long as it is entered.

    Entering takes the lease; what the bus told before is written, too. Leaving writes what is left and closes the file,
    also when the body was cancelled. One recorder a bus. While nothing can be written the conversation goes on:
    `session.save_failed` is told once, and `session.saved` when everything is kept again.
    """

    def __init__(
        self, bus: EventBus, path: Path, *, expected_size: int | None = None, disk: Disk | None = None
    ) -> None:
        """Prepares; nothing is opened.

        Args:
            bus: what to listen to; its origin's session id is the session's.
            path: the journal; created where it is missing.
            expected_size: bytes of the journal that were loaded; None for a new one.
            disk: how bytes reach the disk.
        """
        self.path = path
        self.error: str | None = None
        """Why the newest events are not on the disk; None while they are."""
        self.lost = 0
        """Events that still could not be kept when it was left."""
        self._bus = bus
        self._expected_size = expected_size
        self._disk = disk
        self._failed = asyncio.Event()
        self._said = False
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "JournalWriter":
        """Opens the journal and begins to listen.

        Raises:
            SessionOpenError: another writer has it.
            SessionError: it changed since it was read, or it cannot be opened.
        """
        self._file = await asyncio.to_thread(JournalFile, self.path, expected_size=self._expected_size, disk=self._disk)
        self._spool = JournalQueue(self._file)
        self._said = self._file.size > 0
        self._subscription = self._bus.subscribe(merge=False, since=0)
        await self._tasks.__aenter__()
        self._tasks.create_task(self._write())
        self._retrier = self._tasks.create_task(self._retry())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes what is left and closes the file; a new session in which nothing was said leaves none."""
        self._subscription.close()
        self._retrier.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._close()

    async def flush(self) -> None:
        """Returns once everything told so far is in the journal.

        Raises:
            SessionError: it cannot be written now; it is kept in memory and tried again.
        """
        await self.flush_or_warn()
        if self.error is not None:
            raise SessionError(self.error)

    async def flush_or_warn(self) -> None:
        """Returns once everything told so far is in the journal, or cannot be: then that was told, and the work goes
        on all the same (P82)."""
        self._take(self._subscription.drain())
        await self._save()

    async def _write(self) -> None:
        async for batch in self._subscription.batches(pace=DELTA_INTERVAL):
            self._take(batch)
            await self._save()

    async def _retry(self) -> None:
        """Tries a failed write again, also when nothing new is told."""
        while True:
            await self._failed.wait()
            await asyncio.sleep(RETRY_AFTER)
            self._failed.clear()
            await self._save()

    def _take(self, batch: list[Envelope]) -> None:
        self._said = self._said or any(envelope.type.startswith(_SAID) for envelope in batch)
        self._spool.add(batch)

    async def _save(self) -> None:
        try:
            await asyncio.to_thread(self._spool.write_all)
        except RETRYABLE as error:
            self._note_failure(error)
        else:
            self._note_success()

    def _note_failure(self, error: Exception) -> None:
        self._failed.set()
        if self.error is None:
            self.error = (
                f"This session cannot be saved now ({reason_of(error)}). The conversation goes on; what is not "
                f"saved is kept in memory and written as soon as {self.path} can be."
            )
            self._bus.publish(SessionSaveFailed(id=self.path.stem, path=str(self.path), error=self.error))

    def _note_success(self) -> None:
        if self.error is not None:
            self.error = None
            self._bus.publish(SessionSaved(id=self.path.stem, path=str(self.path)))

    def _close(self) -> None:
        """The last try, on the loop itself: nothing may be lost because a task was cancelled while it wrote."""
        self._take(self._subscription.drain())
        try:
            self._spool.write_all()
        except RETRYABLE as error:
            self._note_failure(error)
            self.lost = self._spool.waiting
        if not self._said or not self._file.size:
            self.path.unlink(missing_ok=True)
        self._file.close()


def _fitted(envelope: Envelope) -> Envelope:
    """The event without what nobody could have read: a flood of output is kept as its end."""
    event = envelope.event
    if isinstance(event, ToolOutput) and len(event.chunk) > OUTPUT_KEPT:
        return envelope.with_event(event.model_copy(update={"chunk": event.chunk[-OUTPUT_KEPT:]}))
    return envelope


def _line_of(envelope: Envelope) -> str:
    """The event as one line; one that cannot be written is named in its place, so that the others are kept."""
    try:
        return envelope.to_json()
    except (ValueError, TypeError, RecursionError) as error:
        text = f"An event of type {envelope.type} could not be kept: {type(error).__name__}."
        return envelope.with_event(Warned(code="event_not_kept", text=text)).to_json()
