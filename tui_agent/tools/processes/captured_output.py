"""Capture of a process's output: head and tail in memory, and the whole in a file once it is longer (S3-20/21).

Memory stays bounded, whatever the process writes.
"""

import codecs
import threading
from dataclasses import dataclass
from pathlib import Path

from .spool_file import JOB_SPOOL_LIMIT, SpoolFile

HEAD_SIZE = 15_000
"""Bytes kept from the start."""

TAIL_SIZE = 15_000
"""Bytes kept from the end."""

LIVE_WHOLE = 64 * 1024
"""Bytes at the start of an output that are shown live without gaps, unless they come faster than they are read."""

LIVE_SIZE = 4 * 1024
"""Newest bytes of output shown in one piece after that."""

UNREAD_SIZE = 256 * 1024
"""Newest bytes of a background command that are kept for the model to read."""

_TEXT_CONTROLS = frozenset(b"\t\n\r\b\f\x1b")
_BINARY_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class LivePiece:
    """Output since the last piece."""

    data: bytes
    skipped: int
    """Bytes right before `data` that came too fast to be shown."""
    total: int
    """All bytes so far."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The output of a process, so far or of one that has ended."""

    head: bytes
    tail: bytes
    """Empty if `head` is the whole output."""
    total: int
    """Bytes that the process wrote, kept or not."""
    path: Path | None
    """File with the whole output, if it was too long for memory or is binary."""
    problem: str
    """Reason why that file is incomplete or missing; empty if it is complete."""
    is_text: bool
    """True if the output begins like text."""

    @property
    def left_out(self) -> int:
        """Bytes between head and tail."""
        return self.total - len(self.head) - len(self.tail)


class CapturedOutput:
    """Collector of a process's output, written by one thread and read by another."""

    def __init__(self, spool: SpoolFile) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._closed = False
        self._live = bytearray()
        self._skipped = 0
        self._unread: bytearray | None = None
        self._written = 0
        self._read: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Bytes so far."""
        return self._total

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return True, as there is always room for more."""
        with self._lock:
            if not self._closed:
                self._keep_whole(data)
                self._total += len(data)
                self._keep_ends(data)
                self._keep_live(data)
                if self._unread is not None:
                    self._unread += data
                    self._written += len(data)
                    del self._unread[:-UNREAD_SIZE]
        return True

    def take_live(self) -> LivePiece:
        """Return the output since the last call."""
        with self._lock:
            piece = LivePiece(bytes(self._live), self._skipped, self._total)
            self._live.clear()
            self._skipped = 0
            return piece

    def keep_unread(self) -> Captured:
        """Return the output so far. `take_unread` has what follows, and the file keeps the newest from now on."""
        with self._lock:
            self._spool.roll(JOB_SPOOL_LIMIT)
            self._unread, self._written, self._read = bytearray(), 0, {}
            return self._captured()

    def take_unread(self, reader: str = "") -> Captured:
        """Return the output since the last call of this by the same reader, or of `keep_unread`, as far as it was kept.

        An incomplete character at the end waits for the rest of it.
        """
        with self._lock:
            kept = bytes(self._unread or b"")
            begin, read = self._written - len(kept), self._read.get(reader, 0)
            data = kept[max(0, read - begin) :]
            new = data if self._closed else without_cut_character(data)
            self._read[reader] = max(begin, read) + len(new)
            total = self._read[reader] - read
            is_text = not is_binary_output(new)
            if not is_text and not self._spool.begun:
                self._spool.write(bytes(self._head + self._tail))
            head, tail = (new, b"") if total <= HEAD_SIZE + TAIL_SIZE else (new[:HEAD_SIZE], new[-TAIL_SIZE:])
            return Captured(head, tail, total, self._spool.path, self._spool.problem, is_text)

    def peek(self) -> Captured:
        """Return the output so far, for a reader beside the model."""
        with self._lock:
            return self._captured()

    def complete_file(self) -> Path:
        """Return the file, which gets all output from now on.

        Raises:
            OSError: the file does not exist.
        """
        with self._lock:
            if not self._spool.begun:
                self._spool.write(bytes(self._head + self._tail) or b"\n")
            if self._spool.path is None:
                raise OSError(self._spool.problem or "the output could not be saved")
            return self._spool.path

    def give_away(self) -> None:
        """Leave the file to another process, to which later output belongs."""
        with self._lock:
            self._closed = True
            self._spool.close()

    def first_bytes(self) -> bytes:
        """Return the start of the output, `HEAD_SIZE` bytes at most."""
        with self._lock:
            return bytes(self._head)

    def close(self) -> Captured:
        """Return the captured output; later bytes are ignored."""
        with self._lock:
            is_text = not is_binary_output(self._head)
            # The model never gets binary output itself, so even a short one goes to a file.
            if not is_text and not self._spool.begun:
                self._spool.write(bytes(self._head + self._tail))
            self._closed = True
            self._spool.close()
            return self._captured()

    def _captured(self) -> Captured:
        whole = self._total <= HEAD_SIZE + TAIL_SIZE
        head, tail = (self._head + self._tail, b"") if whole else (self._head, self._tail[-TAIL_SIZE:])
        is_text = not is_binary_output(self._head)
        return Captured(bytes(head), bytes(tail), self._total, self._spool.path, self._spool.problem, is_text)

    def _keep_whole(self, data: bytes) -> None:
        """Write to the file once head and tail cannot hold everything."""
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


def without_cut_character(data: bytes) -> bytes:
    """Return `data` without an incomplete UTF-8 character at its end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]


def is_binary_output(sample: bytes | bytearray) -> bool:
    """Return True if a sample has many control characters or bytes that are not valid UTF-8."""
    strange = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample)
    strange += sample.decode("utf-8", "replace").count("\ufffd")
    return strange > len(sample) * _BINARY_SHARE
