"""Standard input and output that never block the event loop, and the end of a child and of its pipes.

Each stream has a thread: that works for files, pipes and terminals alike, whereas non-blocking mode would apply to
every process that shares the descriptor.
"""

import asyncio
import errno
import os
import queue
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

LONGEST_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line; a longer one is truncated and marked by `InputLine.too_long`."""

PIECE = 65_536
LINES_AHEAD = 64
"""Maximum lines read ahead of the consumer."""

BACKLOG = 1024 * 1024
"""Unwritten bytes above which `PipeWriter.room` waits."""

_EXIT_CHECK = 0.01

_T = TypeVar("_T")


class InputLine(bytes):
    """One line without its line feed."""

    too_long = False
    """True if the line was truncated."""


class LineReader:
    """Lines from a file descriptor. Only a line feed ends a line; the last line needs none."""

    def __init__(self, descriptor: int, *, longest: int = LONGEST_LINE, ahead: int = LINES_AHEAD) -> None:
        """Store the arguments; nothing is read before `start`. For one event loop and one consumer.

        Args:
            descriptor: an open file descriptor; the caller closes it.
            longest: maximum bytes of a line; of a longer one only the beginning is returned, as `too_long`.
            ahead: maximum lines that are read before they are consumed.
        """
        self._descriptor = descriptor
        self._longest = longest
        self._lines: asyncio.Queue[InputLine | None] = asyncio.Queue()
        self._ahead = threading.Semaphore(ahead)

    def start(self) -> None:
        """Start the reading thread."""
        loop = asyncio.get_running_loop()
        # A daemon, so that a blocked read does not keep the process alive.
        threading.Thread(target=self._read, args=(loop,), name="line-reader", daemon=True).start()

    async def next(self) -> InputLine | None:
        """Wait for the next line and return it; None at the end of the input or after a read error.

        After None, and without `start`, it waits for ever.
        """
        line = await self._lines.get()
        self._ahead.release()
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        cutter = _LineCutter(self._longest)
        while True:
            piece = _read_some(self._descriptor)
            for line in cutter.feed(piece):
                # The input may be larger than the memory and faster than its consumer.
                self._ahead.acquire()
                if not _call_on_loop(loop, self._lines.put_nowait, line):
                    return
            if not piece:
                _call_on_loop(loop, self._lines.put_nowait, None)
                return


def read_everything(descriptor: int, limit: int | None = None) -> bytes:
    """Read until the end of the input, or until a read error. Blocks.

    With a `limit`, reading stops after more bytes than that: a longer result means that the input is too large.
    """
    pieces: list[bytes] = []
    size = 0
    while (limit is None or size <= limit) and (piece := _read_some(descriptor)):
        pieces.append(piece)
        size += len(piece)
    return b"".join(pieces)


class PipeWriter:
    """Queue of bytes for a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        """Store the arguments; nothing is written before `start`. For one event loop."""
        self._descriptor = descriptor
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._over = asyncio.Event()
        self.closed_by_reader = asyncio.Event()
        """Set once nothing more can be written."""
        self.error: OSError | None = None
        """Error of the failed write; None without one, and if the reader closed its end."""

    def start(self) -> None:
        """Start the writing thread."""
        loop = asyncio.get_running_loop()
        # A daemon, so that a blocked write does not keep the process alive.
        threading.Thread(target=self._write, args=(loop,), name="pipe-writer", daemon=True).start()

    def put(self, data: bytes) -> None:
        """Queue `data`; never waits. Discarded once nothing more can be written."""
        if data and not self.closed_by_reader.is_set():
            self._waiting += len(data)
            if self._waiting > BACKLOG:
                self._room.clear()
            self._pieces.put(data)

    async def room(self) -> None:
        """Wait until at most `BACKLOG` bytes are unwritten."""
        await self._room.wait()

    def end(self) -> None:
        """Let the thread end after the queued bytes; call `put` no more."""
        self._pieces.put(None)

    async def drained(self) -> None:
        """Wait until everything is written or nothing more can be; await it after `end`."""
        await self._over.wait()

    def abandon(self) -> None:
        """Discard the queued bytes, because the reader is too slow."""
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
        # The reader may go away at any time.
        self.error = None if error.errno in (errno.EPIPE, errno.ECONNRESET) else error
        self.closed_by_reader.set()
        self._room.set()

    def _end(self, _: None) -> None:
        self._over.set()


def signal_group(leader: int, number: int) -> None:
    """Send a signal to a group of processes.

    Args:
        leader: id of the process that leads the group. Nothing happens if the group is gone or belongs to another user.
        number: the signal, such as `signal.SIGTERM`.
    """
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)


async def has_exited(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Wait for a process to exit, at most `seconds`; return True if it has. Its output may still arrive."""
    deadline = time.monotonic() + seconds
    # `process.wait` would also wait for the end of its output, which no one may read any more.
    while process.returncode is None and time.monotonic() < deadline:
        await asyncio.sleep(_EXIT_CHECK)
    return process.returncode is not None


def close_pipes(process: asyncio.subprocess.Process) -> None:
    """Close the pipes of a child that has ended; a process that it left behind may hold their other ends open."""
    # asyncio closes them in public only at the end of the output.
    getattr(process, "_transport").close()  # noqa: B009


class _LineCutter:
    """Splits pieces of input into lines."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: deque[bytes] = deque()
        self._size = 0

    def feed(self, piece: bytes) -> list[InputLine]:
        """Return the lines that end in this piece; an empty piece ends the last line."""
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
        """Add a part of a line, up to the maximum length."""
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
    """Return the next bytes; empty at the end of the input and after an error."""
    while True:
        try:
            return os.read(descriptor, PIECE)
        except BlockingIOError:
            select.select([descriptor], [], [])
        except OSError:
            return b""


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`, in several writes if needed."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def _call_on_loop(loop: asyncio.AbstractEventLoop, what: Callable[[_T], None], argument: _T) -> bool:
    """Call a function on the loop; return False if the loop is closed because the program ended."""
    try:
        loop.call_soon_threadsafe(what, argument)
    except RuntimeError:
        return False
    return True
