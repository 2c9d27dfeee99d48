"""Keeps what a process writes: head and tail in memory, everything in a file once that is not enough (P67, S3-20/21).

Memory is bounded whatever comes.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from .spool_file import SpoolFile

HEAD_SIZE = 15_000
"""Bytes kept from the start."""

TAIL_SIZE = 15_000
"""Bytes kept from the end."""

LIVE_WHOLE = 64 * 1024
"""Bytes at the start of an output that are told live without gaps, if they come no faster than they are taken."""

LIVE_SIZE = 4 * 1024
"""Bytes of newest output told at once from then on."""

_TEXT_CONTROLS = frozenset(b"\t\n\r\b\f\x1b")
_BINARY_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class LivePiece:
    """Output since the last look."""

    data: bytes
    skipped: int
    """Bytes right before `data` that came too fast to be told."""
    total: int
    """All bytes so far."""


@dataclass(frozen=True, slots=True)
class Captured:
    """What was kept of an output."""

    head: bytes
    tail: bytes
    """Empty where `head` is all there was."""
    total: int
    """Bytes that were written, kept or not."""
    path: Path | None
    """File with the whole output, where it was too long for memory, or is no text."""
    problem: str
    """Why that file holds less than the whole, or does not exist; empty where all is well."""
    is_text: bool
    """Whether it begins like text."""

    @property
    def left_out(self) -> int:
        """Bytes between head and tail."""
        return self.total - len(self.head) - len(self.tail)


class CapturedOutput:
    """Takes bytes from one thread and is looked at from another."""

    def __init__(self, spool: SpoolFile) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._closed = False
        self._live = bytearray()
        self._skipped = 0

    def feed(self, data: bytes) -> bool:
        """Takes the next bytes; always wants more."""
        with self._lock:
            if not self._closed:
                self._keep_whole(data)
                self._total += len(data)
                self._keep_ends(data)
                self._keep_live(data)
        return True

    def take_live(self) -> LivePiece:
        """What came since this was last called."""
        with self._lock:
            piece = LivePiece(bytes(self._live), self._skipped, self._total)
            self._live.clear()
            self._skipped = 0
            return piece

    def first_bytes(self) -> bytes:
        """What came first, as far as it is kept."""
        with self._lock:
            return bytes(self._head)

    def close(self) -> Captured:
        """Ends it and gives what was kept; what comes later is ignored. What is no text is always in a file."""
        with self._lock:
            is_text = not looks_binary(self._head)
            if not is_text and not self._spool.begun:
                self._spool.write(bytes(self._head + self._tail))
            self._closed = True
            self._spool.close()
            whole = self._total <= HEAD_SIZE + TAIL_SIZE
            head, tail = (self._head + self._tail, b"") if whole else (self._head, self._tail[-TAIL_SIZE:])
            return Captured(bytes(head), bytes(tail), self._total, self._spool.path, self._spool.problem, is_text)

    def _keep_whole(self, data: bytes) -> None:
        """Writes the file, from the moment on that head and tail cannot hold everything."""
        if not self._spool.begun and self._total + len(data) > HEAD_SIZE + TAIL_SIZE:
            self._spool.write(bytes(self._head + self._tail))
        if self._spool.begun:
            self._spool.write(data)

    def _keep_ends(self, data: bytes) -> None:
        room = max(0, HEAD_SIZE - len(self._head))
        self._head += data[:room]
        self._tail += data[room:][-TAIL_SIZE:] if len(data) - room > TAIL_SIZE else data[room:]
        if len(self._tail) > TAIL_SIZE * 4:
            del self._tail[:-TAIL_SIZE]

    def _keep_live(self, data: bytes) -> None:
        most = LIVE_WHOLE if self._total <= LIVE_WHOLE else LIVE_SIZE
        self._live += data[-most:]
        dropped = len(self._live) - most
        if dropped > 0:
            del self._live[:dropped]
        self._skipped += max(0, dropped) + max(0, len(data) - most)


def looks_binary(sample: bytes | bytearray) -> bool:
    """Whether an output that begins like this is no text: many control characters, or bytes that no character has."""
    strange = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    strange += sample.decode("utf-8", "replace").count("\ufffd")
    return strange > len(sample) * _BINARY_SHARE
