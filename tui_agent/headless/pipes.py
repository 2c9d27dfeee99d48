"""Standard input and output without ever holding up the event loop, whatever is at the other end.

A thread each, because nothing else serves files, pipes and terminals alike, and because making them non-blocking would
do so for every process that shares them. The threads are daemons: one that hangs in a read or write does not keep the
process alive.
"""

import asyncio
import errno
import os
import queue
import select
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes; a longer line is given as far as it goes, marked by `InputLine.too_long`."""

PIECE = 65_536
LINES_AHEAD = 64
"""Lines read before somebody takes them."""

BACKLOG = 1024 * 1024
"""Bytes that may wait for the other end before `PipeWriter.room` waits."""

_T = TypeVar("_T")


class InputLine(bytes):
    """One line without its line feed."""

    too_long = False
    """Whether its rest was thrown away."""


class LineReader:
    """The lines of a file descriptor. Only a line feed ends a line; the last one needs none."""

    def __init__(self, descriptor: int, *, longest: int = LONGEST_LINE) -> None:
        """Starts nothing yet; for one event loop and one reader."""
        self._descriptor = descriptor
        self._longest = longest
        self._lines: asyncio.Queue[InputLine | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(LINES_AHEAD)

    def start(self) -> None:
        """Begins to read."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="headless-input", daemon=True).start()

    async def next(self) -> InputLine | None:
        """The next line; None once the other end is closed, or cannot be read."""
        line = await self._lines.get()
        self._ahead.release()
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        cutter = _LineCutter(self._longest)
        while True:
            piece = _read_some(self._descriptor)
            for line in cutter.feed(piece):
                self._ahead.acquire()
                if not _call_on_loop(loop, self._lines.put_nowait, line):
                    return
            if not piece:
                _call_on_loop(loop, self._lines.put_nowait, None)
                return


def read_everything(descriptor: int) -> bytes:
    """Everything until the other end closes; blocks."""
    pieces: list[bytes] = []
    while piece := _read_some(descriptor):
        pieces.append(piece)
    return b"".join(pieces)


class PipeWriter:
    """Bytes on their way to a file descriptor, in order."""

    def __init__(self, descriptor: int) -> None:
        """Starts nothing yet; for one event loop."""
        self._descriptor = descriptor
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._over = asyncio.Event()
        self.closed_by_reader = asyncio.Event()
        """Set once nothing can be written any more."""
        self.error: OSError | None = None
        """Why not; None as long as it can, and where the reader simply went away."""

    def start(self) -> None:
        """Begins to write."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._write, args=(loop,), name="headless-output", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Writes `data` when its turn comes; never waits. Thrown away once nothing can be written."""
        if data and not self.closed_by_reader.is_set():
            self._waiting += len(data)
            if self._waiting > BACKLOG:
                self._room.clear()
            self._pieces.put(data)

    async def room(self) -> None:
        """Returns once the other end has taken most of what waits."""
        await self._room.wait()

    def end(self) -> None:
        """Nothing is put from here on: the thread may end."""
        self._pieces.put(None)

    async def drained(self) -> None:
        """Returns once everything is written, or nothing can be; to be awaited after `end`."""
        await self._over.wait()

    def abandon(self) -> None:
        """Forgets what waits: nobody takes it in time."""
        self.closed_by_reader.set()
        self._room.set()
        self._over.set()

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        while (data := self._pieces.get()) is not None:
            try:
                _write_all(self._descriptor, data)
            except OSError as error:
                _call_on_loop(loop, self._break, error)
                break
            if not _call_on_loop(loop, self._written, len(data)):
                return
        _call_on_loop(loop, self._end, None)

    def _written(self, size: int) -> None:
        self._waiting -= size
        if self._waiting <= BACKLOG:
            self._room.set()

    def _break(self, error: OSError) -> None:
        self.error = None if error.errno in (errno.EPIPE, errno.ECONNRESET) else error
        self.closed_by_reader.set()
        self._room.set()

    def _end(self, _: None) -> None:
        self._over.set()


class _LineCutter:
    """Cuts pieces into lines."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: deque[bytes] = deque()
        self._size = 0

    def feed(self, piece: bytes) -> list[InputLine]:
        """The lines that end in this piece; an empty piece ends the last one."""
        if not piece:
            return [self._take()] if self._parts else []
        *ended, rest = piece.split(b"\n")
        lines: list[InputLine] = []
        for part in ended:
            self._add(part)
            lines.append(self._take())
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        """Keeps a part of a line, as far as the line may go."""
        kept = part[: max(0, self._longest - self._size)]
        self._size += len(part)
        if kept:
            self._parts.append(kept)

    def _take(self) -> InputLine:
        line = InputLine(b"".join(self._parts))
        line.too_long = self._size > self._longest
        self._parts.clear()
        self._size = 0
        return line


def _read_some(descriptor: int) -> bytes:
    """The next bytes; none at the end, which an error is, too."""
    while True:
        try:
            return os.read(descriptor, PIECE)
        except BlockingIOError:
            select.select([descriptor], [], [])
        except OSError:
            return b""


def _write_all(descriptor: int, data: bytes) -> None:
    """Writes everything, however little the other end takes at once."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def _call_on_loop(loop: asyncio.AbstractEventLoop, what: Callable[[_T], None], argument: _T) -> bool:
    """Calls something on the loop; False where the loop is closed, because the program ended meanwhile."""
    try:
        loop.call_soon_threadsafe(what, argument)
    except RuntimeError:
        return False
    return True
