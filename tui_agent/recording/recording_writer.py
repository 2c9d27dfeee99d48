"""Writes a recording while the program works: nobody waits for it, and where it fails the run goes on."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.bus import EventBus, Subscription
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import JsonObject, now_ms

from .recording_format import EntryKind, RecordingHeader, RecordingSink

PACE = 0.25
"""Seconds between two writes."""

_SCREEN_PACE = 1 / 30

T = TypeVar("T")
Write = Callable[[int, bytes], int]

_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class RecordingWriter:
    """Takes a recording down in a new file for as long as it is entered; implements `RecordingSink`.

    Entries wait in memory until `begin` says what the head holds. Leaving writes what is left; a recording that never
    began, or that nobody wants any more, leaves no file. A file that cannot be written any more keeps what it has, and
    that is told once.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic, write: Write | None = None) -> None:
        """Prepares; nothing is opened.

        Args:
            path: the file; there must be none yet.
            clock: the clock of the events.
            write: how bytes reach the file.
        """
        self.path = path
        self.failed: str | None = None
        """Why nothing more is written; None as long as it is."""
        self.told = False
        """Whether that was told."""
        self._clock = clock
        self._write = write or os.write
        self._start = clock()
        self._waiting: list[tuple[float, EntryKind, Envelope | JsonObject]] = []
        self._head: bytes | None = None
        self._lock = threading.Lock()
        self._tell: Callable[[str], object] = str
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "RecordingWriter":
        """Makes the file, for its owner only.

        Raises:
            ConfigurationError: there is one already, or it cannot be made; one line.
        """
        self._descriptor = await asyncio.to_thread(_new_file, self.path)
        self._begun = False
        await self._tasks.__aenter__()
        self._writer = self._tasks.create_task(self._keep_writing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Writes what is left."""
        self._writer.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._write_waiting()
            os.close(self._descriptor)
            if not self._begun:
                self.path.unlink(missing_ok=True)

    def begin(self, head: RecordingHeader, tell: Callable[[str], object]) -> None:
        """Says what the head holds; its times are the recording's own.

        Args:
            head: what the screen shows that no event tells.
            tell: is told, once and from the event loop, that nothing more can be written.
        """
        times = {"started": now_ms(), "mono": self._start}
        self._tell = tell
        self._head = f"{head.model_copy(update=times).model_dump_json()}\n".encode("utf-8", "replace")
        self._begun = True

    def forget(self) -> None:
        """Leaves no file: what was to be recorded never came to be."""
        self._begun = False

    @property
    def last_words(self) -> str:
        """That nothing more is written, and why."""
        return f"The recording {self.path} breaks off: {self.failed}. What it has so far is kept."

    def now(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    def events(self, envelopes: Iterable[Envelope], *, past: bool = False) -> None:
        """Notes events that are handed to the screen now; those of one call come as one again."""
        at = self.now()
        kind: EntryKind = "past" if past else "event"
        self._add((at, kind, envelope) for envelope in envelopes)

    def note(self, kind: EntryKind, data: JsonObject) -> None:
        """Notes anything else, as plain data that JSON can hold."""
        self._add(((self.now(), kind, data),))

    def _add(self, entries: Iterable[tuple[float, EntryKind, Envelope | JsonObject]]) -> None:
        if self.failed is None:
            with self._lock:
                self._waiting.extend(entries)

    async def _keep_writing(self) -> None:
        while self.failed is None:
            await asyncio.sleep(PACE)
            if self._waiting and self._begun:
                try:
                    await asyncio.to_thread(self._write_waiting)
                except RuntimeError as error:  # No further thread can be started.
                    self.failed = reason_of(error)
        self.told = True
        self._tell(f"{self.last_words} The run goes on.")

    def _write_waiting(self) -> None:
        """Writes everything that waits; where that fails, it is the end of the recording."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        if self.failed is not None or self._head is None:
            return
        head, self._head = self._head, b""
        try:
            content = head + b"".join(_line(*entry) for entry in waiting)
            while content:
                content = content[self._write(self._descriptor, content) :]
        except (OSError, MemoryError, RecursionError, ValueError, TypeError) as error:
            self.failed = reason_of(error)


async def record_bus(bus: EventBus, tape: RecordingSink, work: Callable[[], Awaitable[T]]) -> T:
    """Does `work` while everything the bus tells is noted: for where no screen is there to be handed it."""
    with bus.subscribe(since=0) as heard:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_record_events(heard, tape))
            try:
                return await work()
            finally:
                heard.close()


async def _record_events(heard: Subscription, tape: RecordingSink) -> None:
    async for batch in heard.batches(pace=_SCREEN_PACE):
        tape.events(batch)


def _new_file(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileExistsError:
        raise ConfigurationError(f"--record: {path} is there already; a recording never replaces a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--record: {path} cannot be made: {reason}") from error


def _line(at: float, kind: EntryKind, value: Envelope | JsonObject) -> bytes:
    text = value.to_json() if isinstance(value, Envelope) else _JSON.encode(value)
    return f'{{"at":{round(at, 6)},"{kind}":{text}}}\n'.encode("utf-8", "replace")
