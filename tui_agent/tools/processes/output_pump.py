"""Reading of a program's output in a separate thread, so that neither a flood nor a slow disk delays the event loop."""

import asyncio
import fcntl
import os
import select
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

_PIECE = 256 * 1024
_PIPE_SIZE = 256 * 1024

NOTICE_INTERVAL = 0.02
"""Least seconds between two notices of new data. A flood arrives in thousands of pieces a second, and each notice
wakes the event loop."""


class Sink(Protocol):
    """Receiver of output, called in the pump's thread."""

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return False if no more are wanted and the program may be ended."""
        ...


class OutputPump:
    """One pipe for each sink, and a thread that reads them. Create and use it on the event loop."""

    def __init__(self, sinks: Sequence[Sink], on_data: Callable[[], None] | None = None) -> None:
        """
        Args:
            sinks: one or two, for standard output and standard error.
            on_data: called on the event loop after new data, once for many pieces.
        """
        self._loop = asyncio.get_running_loop()
        self._on_data = on_data or _nothing
        self._notice_pending = self._unseen = False
        self._stop_read, self._stop_write = os.pipe()
        pipes = [os.pipe() for _ in sinks]
        self._sinks = {read_end: sink for (read_end, _), sink in zip(pipes, sinks, strict=True)}
        self.write_ends = tuple(write_end for _, write_end in pipes)
        """Descriptors for the program; the caller closes them once it has started."""
        self.sated = asyncio.Event()
        """Set when a sink wants no more."""
        self._ended = asyncio.Event()
        # A pipe that a process still holds open must not keep the program from ending.
        self._thread = threading.Thread(target=self._pump, name="output-pump", daemon=True)
        self._stopped = False

    def start(self) -> None:
        """Start reading."""
        self._thread.start()

    async def wait(self, seconds: float) -> None:
        """Wait until everything was read, for `seconds` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    def duplicate(self) -> int:
        """Return another descriptor of the first pipe's reading end, for a reader that takes over."""
        return os.dup(next(iter(self._sinks)))

    def stop(self) -> None:
        """Stop reading at once; later output is lost. May be called again."""
        if self._stopped:
            return
        self._stopped = True
        os.close(self._stop_write)
        if self._thread.ident is None:
            self._close()

    def _pump(self) -> None:
        try:
            self._read_all()
        finally:
            self._close()
            self._call_on_loop(self._ended.set)

    def _read_all(self) -> None:
        poll = select.poll()
        poll.register(self._stop_read, select.POLLIN)
        left = dict(self._sinks)
        for read_end in left:
            with suppress(OSError, AttributeError):
                # A pipe holds 64 KiB by default: a flood would wake this thread four times as often.
                fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, _PIPE_SIZE)
            poll.register(read_end, select.POLLIN)
        while left:
            for descriptor, _ in poll.poll():
                if descriptor == self._stop_read:
                    return
                data = os.read(descriptor, _PIECE)
                if not data:
                    poll.unregister(descriptor)
                    del left[descriptor]
                elif not left[descriptor].feed(data):
                    self._call_on_loop(self.sated.set)
                    return
                else:
                    self._notice()

    def _notice(self) -> None:
        """Wake the loop for new data, unless a wake-up is pending."""
        self._unseen = True
        if not self._notice_pending:
            self._notice_pending = True
            self._call_on_loop(self._look)

    def _look(self) -> None:
        self._unseen = False
        self._on_data()
        self._loop.call_later(NOTICE_INTERVAL, self._look_again)

    def _look_again(self) -> None:
        """Notify again if data came meanwhile."""
        # Before `_unseen` is read: the thread sets `_unseen` first, so that no notice gets lost.
        self._notice_pending = False
        if self._unseen:
            self._notice_pending = True
            self._look()

    def _call_on_loop(self, callback: Callable[[], object]) -> None:
        """Schedule a callback on the loop, unless the loop is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _close(self) -> None:
        for descriptor in (self._stop_read, *self._sinks):
            os.close(descriptor)


def _nothing() -> None:
    """Do nothing; the default for `on_data`."""
