"""Writing of a recording in the background: the program never waits for it, and the run continues if it fails."""

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
    """Writer of a recording to a new file while its context is open; implements `RecordingSink`.

    Entries wait in memory until `begin` provides the head. Leaving the context writes the rest; a recording that never
    began or was forgotten leaves no file. If writing fails, the file keeps what it has, and the failure is reported
    once.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic, write: Write | None = None) -> None:
        """Store the settings; open nothing.

        Args:
            path: the file, which must not exist yet.
            clock: the clock of the events.
            write: writes bytes to a descriptor and returns their number; None: `os.write`.
        """
        self.path = path
        self.failed: str | None = None
        """Reason why writing stopped; None while it works."""
        self.told = False
        """True once the failure was reported."""
        self._clock = clock
        self._write = write or os.write
        self._start = clock()
        self._waiting: list[tuple[float, EntryKind, Envelope | JsonObject]] = []
        self._head: bytes | None = None
        self._lock = threading.Lock()
        self._tell: Callable[[str], object] = str
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> "RecordingWriter":
        """Create the file, readable only by its owner.

        Raises:
            ConfigurationError: the file exists already, or cannot be created; one line.
        """
        self._descriptor = await asyncio.to_thread(_new_file, self.path)
        self._begun = False
        await self._tasks.__aenter__()
        self._writer = self._tasks.create_task(self._keep_writing())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the rest and close the file."""
        self._writer.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._write_waiting()
            os.close(self._descriptor)
            if not self._begun:
                self.path.unlink(missing_ok=True)

    def begin(self, head: RecordingHeader, tell: Callable[[str], object]) -> None:
        """Set the head and start writing.

        Args:
            head: the head; its times are replaced by those of this recording.
            tell: called once, on the event loop, with a message if writing fails.
        """
        times = {"started": now_ms(), "mono": self._start}
        self._tell = tell
        self._head = f"{head.model_copy(update=times).model_dump_json()}\n".encode("utf-8", "replace")
        self._begun = True

    def forget(self) -> None:
        """Leave no file, because the recorded run never started."""
        self._begun = False

    @property
    def last_words(self) -> str:
        """Message that writing stopped, with the reason."""
        return f"The recording {self.path} has stopped: {self.failed}. The file keeps everything up to here."

    def now(self) -> float:
        """Return the seconds since the start."""
        return self._clock() - self._start

    def events(self, envelopes: Iterable[Envelope], *, past: bool = False) -> None:
        """Record events that the screen receives now; playback delivers those of one call together again."""
        at = self.now()
        kind: EntryKind = "past" if past else "event"
        self._add((at, kind, envelope) for envelope in envelopes)

    def note(self, kind: EntryKind, data: JsonObject) -> None:
        """Record anything else, as JSON data."""
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
        self._tell(f"{self.last_words} The run continues.")

    def _write_waiting(self) -> None:
        """Write all waiting entries; a failure ends the recording."""
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
    """Do `work` and record all events of the bus meanwhile, for runs without a screen."""
    with bus.subscribe(since=0) as subscription:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_record(subscription, tape))
            try:
                return await work()
            finally:
                subscription.close()


async def _record(subscription: Subscription, tape: RecordingSink) -> None:
    async for batch in subscription.batches(pace=_SCREEN_PACE):
        tape.events(batch)


def _new_file(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileExistsError:
        raise ConfigurationError(f"--record: {path} exists already; a recording never replaces a file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"--record: {path} cannot be created: {reason}") from error


def _line(at: float, kind: EntryKind, value: Envelope | JsonObject) -> bytes:
    text = value.to_json() if isinstance(value, Envelope) else _JSON.encode(value)
    return f'{{"at":{round(at, 6)},"{kind}":{text}}}\n'.encode("utf-8", "replace")
