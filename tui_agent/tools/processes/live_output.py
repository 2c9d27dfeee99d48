"""Live output of a running command, passed on in pieces at a bounded rate."""

import asyncio
import codecs
from typing import Protocol

from .captured_output import CapturedOutput

FLUSH_INTERVAL = 0.05
"""Least seconds between two pieces; together with `LIVE_SIZE` this bounds a flood to 80 KB a second."""


class OutputCallback(Protocol):
    """Receiver of output, such as `ToolContext.output`."""

    def __call__(self, chunk: str, *, bytes_total: int) -> None: ...


class LiveOutput:
    """Live view of a `CapturedOutput` that calls a callback at a bounded rate. Lives on the event loop."""

    def __init__(
        self, captured: CapturedOutput, on_output: OutputCallback, *, interval: float = FLUSH_INTERVAL
    ) -> None:
        self._captured = captured
        self._on_output = on_output
        self._interval = interval
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._timer: asyncio.TimerHandle | None = None
        self._next = 0.0

    def wake(self) -> None:
        """Announce new output; it is passed on now, or when the interval is over."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(self._next, loop.time()), self._flush)

    def close(self) -> None:
        """Pass on the rest at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush(final=True)

    def _flush(self, *, final: bool = False) -> None:
        self._timer = None
        self._next = asyncio.get_running_loop().time() + self._interval
        piece = self._captured.take_live()
        if piece.skipped:
            self._decoder.reset()
            # The gap may end inside a character: drop its remaining bytes.
            data = piece.data.lstrip(bytes(range(0x80, 0xC0)))
            text = f"\n[… {piece.skipped:,} bytes came too fast to be shown …]\n{self._decoder.decode(data, final)}"
        else:
            text = self._decoder.decode(piece.data, final)
        if text:
            self._on_output(text, bytes_total=piece.total)
