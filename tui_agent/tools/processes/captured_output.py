"""Capture of a process's output: head and tail in memory, the whole in a file once it is longer (S3-20/21), and live.

Head and tail are what a terminal would show in the end, the file has every byte. Memory stays bounded, whatever the
process writes.
"""

import asyncio
import codecs
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .spool_file import JOB_SPOOL_LIMIT, SpoolFile
from .terminal_lines import TerminalLines

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

_NEWEST_SIZE = 512
_SCREEN = re.compile(rb"\x1b\[(?:(?!1;1H)\d+;\d+H|\?(?:1049|1047|47)h)")
"""Matches what draws a screen: a row and a column to write at, or a screen of its own. A program that only clears the
screen goes to the first row and column."""
_SAMPLE_SIZE = 15_000
"""Bytes at the start that decide whether an output is text."""
_TEXT_CONTROLS = frozenset(b"\0\t\n\r\b\f\x1b")
_NO_SEPARATOR = re.compile(rb"\0(?=.?\0)", re.DOTALL)
"""Matches a NUL that does not end a name, as in numbers and in UTF-16."""
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
    size: int
    """Bytes of the output as a terminal shows it in the end."""
    total: int
    """Bytes that the process wrote, kept or not."""
    path: Path | None
    """File with the whole output, if it was too long for memory or is binary."""
    problem: str
    """Reason why that file is incomplete or missing; empty if it is complete."""
    is_text: bool
    """True if the output begins like text."""
    has_nuls: bool = False
    """True if NUL bytes became line breaks."""
    lines: int | None = None
    """Lines of the output as a terminal shows it in the end; None if they were not counted."""

    @property
    def left_out(self) -> int:
        """Bytes between head and tail."""
        return self.size - len(self.head) - len(self.tail)

    @property
    def is_as_written(self) -> bool:
        """True if a terminal shows every byte of the output."""
        return self.size == self.total


@dataclass(slots=True)
class _Ends:
    """Start and end of an output."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    size: int = 0
    breaks: int = 0
    """Line breaks."""

    def add(self, data: bytes) -> "_Ends":
        room = max(0, HEAD_SIZE - len(self.head))
        self.head += data[:room]
        self.tail += data[room:][-TAIL_SIZE:] if len(data) - room > TAIL_SIZE else data[room:]
        if len(self.tail) > TAIL_SIZE * 4:
            del self.tail[:-TAIL_SIZE]
        self.size += len(data)
        self.breaks += data.count(b"\n")
        return self

    def copy(self) -> "_Ends":
        return _Ends(self.head[:], self.tail[:], self.size, self.breaks)


class CapturedOutput:
    """Collector of a process's output, written by one thread and read by another."""

    def __init__(self, spool: SpoolFile) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._lines: TerminalLines | None = TerminalLines()
        """None once the output turned out to be binary."""
        self._is_kind_known = self._nuls = False
        self._ends = _Ends()
        self._start = bytearray()
        """The output until it is in the file, and its sample afterwards."""
        self._total = 0
        self._closed = False
        self._live = bytearray()
        self._newest = b""
        self._skipped = 0
        self._unread: bytearray | None = None
        self._written = 0
        self._read: dict[str, tuple[int, bytes]] = {}
        self._seen = b""
        """Rows that were pending when others began to read what is unread."""

    @property
    def total(self) -> int:
        """Bytes so far."""
        return self._total

    def feed(self, data: bytes) -> bool:
        """Take the next bytes, unless it is closed; return True, as there is always room for more."""
        with self._lock:
            if not self._closed:
                # Before the bytes count, since it compares what was there with what comes.
                self._keep_whole(data)
                self._total += len(data)
                self._nuls = self._nuls or b"\0" in data
                self._find_kind()
                self._keep(data if self._lines is None else self._lines.feed(data))
                self._keep_live(data)
                self._newest = (self._newest + data)[-_NEWEST_SIZE:]
        return True

    @property
    def ends_in_screen(self) -> bool:
        """True if the newest line belongs to a drawn screen, as that of a program which waits for keys."""
        return _SCREEN.search(self._newest, self._newest.rfind(b"\n") + 1) is not None

    def before_screen(self) -> Captured:
        """Return what was printed before the first screen was drawn."""
        with self._lock:
            sample = bytes(self._sample)
            lines = TerminalLines()
            head = lines.feed(sample[: found.start() if (found := _SCREEN.search(sample)) else None]) + lines.close()
            head = head.rstrip(b"\n\f ")
            return Captured(head, b"", len(head), self._total, self._spool.path, self._spool.problem, is_text=True)

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
            # A server may run for days: its newest output is what counts.
            self._spool.roll(JOB_SPOOL_LIMIT)
            self._unread, self._written, self._read, self._seen = bytearray(), 0, {}, self._pending()
            return self._captured()

    def take_unread(self, reader: str = "") -> Captured:
        """Return the output since the last call of this by the same reader, or of `keep_unread`, as far as it was kept.

        Rows that have changed since are returned again. An incomplete character at the end waits for the rest of it.
        """
        with self._lock:
            kept, pending = bytes(self._unread or b""), self._pending()
            begin, (read, seen) = self._written - len(kept), self._read.get(reader, (0, self._seen))
            lost = max(0, begin - read)
            new = kept[max(0, read - begin) :] + pending
            new = new if lost else new[_same(seen, new) :]
            self._read[reader] = self._written, pending
            is_text = not is_binary_output(new)
            if not is_text and not self._spool.begun:
                self._spool.write(bytes(self._start))
            size = lost + len(new)
            head, tail = (new, b"") if size <= HEAD_SIZE + TAIL_SIZE else (new[:HEAD_SIZE], new[-TAIL_SIZE:])
            lines = None if lost else line_count(new)
            return Captured(head, tail, size, size, self._spool.path, self._spool.problem, is_text, self._nuls, lines)

    def peek(self) -> Captured:
        """Return the output so far, for a reader beside the model."""
        with self._lock:
            return self._captured()

    def complete_file(self) -> Path:
        """Return the file, which gets all output from now on.

        Raises:
            OSError: the output could not be saved.
        """
        with self._lock:
            if not self._spool.begun:
                # The file is made with its first byte.
                self._spool.write(bytes(self._start) or b"\n")
            if self._spool.path is None:
                raise OSError(self._spool.problem or "the output could not be saved")
            return self._spool.path

    def give_away(self) -> None:
        """Leave the file to another process, to which later output belongs."""
        with self._lock:
            self._closed = True
            self._spool.close()

    def first_bytes(self) -> bytes:
        """Return the start of the output, a few KB at most."""
        with self._lock:
            return bytes(self._sample)

    def close(self) -> Captured:
        """Return the captured output; later bytes are ignored. May be called again."""
        with self._lock:
            # The model never gets binary output itself, so even a short one goes to a file.
            if is_binary_output(self._sample) and not self._spool.begun:
                self._spool.write(bytes(self._start))
            if not self._closed and self._lines is not None:
                self._keep(self._lines.close())
            self._closed = True
            self._spool.close()
            return self._captured()

    @property
    def _sample(self) -> bytearray:
        return self._start[:_SAMPLE_SIZE]

    def _find_kind(self) -> None:
        """Leave rows alone once the output is known to be binary."""
        if not self._is_kind_known and len(self._start) >= _SAMPLE_SIZE:
            self._is_kind_known = True
            if is_binary_output(self._sample):
                self._lines = None

    def _pending(self) -> bytes:
        return b"" if self._closed or self._lines is None else self._lines.pending()

    def _captured(self) -> Captured:
        ends = self._ends.copy().add(self._pending())
        whole = ends.size <= HEAD_SIZE + TAIL_SIZE
        head, tail = (ends.head + ends.tail, b"") if whole else (ends.head, ends.tail[-TAIL_SIZE:])
        is_text = not is_binary_output(self._sample)
        spool, ended = self._spool, not ends.size or (ends.tail or ends.head).endswith(b"\n")
        return Captured(
            head=bytes(head),
            tail=bytes(tail),
            size=ends.size,
            total=self._total,
            path=spool.path,
            problem=spool.problem,
            is_text=is_text,
            has_nuls=self._nuls,
            lines=ends.breaks + (not ended),
        )

    def _keep_whole(self, data: bytes) -> None:
        """Write to the file once the output is longer than head and tail."""
        if not self._spool.begun and self._total + len(data) > HEAD_SIZE + TAIL_SIZE:
            self._spool.write(bytes(self._start))
        if self._spool.begun:
            self._spool.write(data)
        most = _SAMPLE_SIZE if self._spool.begun else HEAD_SIZE + TAIL_SIZE
        self._start += data[: max(0, most - len(self._start))]

    def _keep(self, data: bytes) -> None:
        """Keep rows that are final."""
        self._ends.add(data)
        if self._unread is not None:
            self._unread += data
            self._written += len(data)
            del self._unread[:-UNREAD_SIZE]

    def _keep_live(self, data: bytes) -> None:
        most = LIVE_WHOLE if self._total <= LIVE_WHOLE else LIVE_SIZE
        self._live += data[-most:]
        dropped = len(self._live) - most
        if dropped > 0:
            del self._live[:dropped]
        self._skipped += max(0, dropped) + max(0, len(data) - most)


def line_count(data: bytes) -> int:
    """Return the number of lines; one without an end counts, too."""
    return data.count(b"\n") + (data[-1:] not in (b"", b"\n"))


def without_cut_character(data: bytes) -> bytes:
    """Return `data` without an incomplete UTF-8 character at its end."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return data[: len(data) - len(decoder.getstate()[0])]


def is_binary_output(sample: bytes | bytearray) -> bool:
    """Return True if a sample has many control characters or bytes that are not valid UTF-8."""
    strange = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in sample) + len(_NO_SEPARATOR.findall(sample))
    strange += sample.decode("utf-8", "replace").count("\ufffd")
    return strange > len(sample) * _BINARY_SHARE


def _same(seen: bytes, new: bytes) -> int:
    """Return how much of `new` a reader knows who has seen rows that could still change."""
    if new.startswith(seen):
        return len(seen)
    place = next((place for place, (old, now) in enumerate(zip(seen, new, strict=False)) if old != now), len(new))
    return new.rfind(b"\n", 0, place) + 1


FLUSH_INTERVAL = 0.05
"""Least seconds between two pieces; together with `LIVE_SIZE` this bounds a flood to 80 KB a second."""


class LiveOutput:
    """Live view of a `CapturedOutput` that calls a callback at a bounded rate. Lives on the event loop."""

    def __init__(
        self, captured: CapturedOutput, on_output: Callable[[str, int], None], *, interval: float = FLUSH_INTERVAL
    ) -> None:
        """
        Args:
            on_output: receives a piece, and the number of all bytes up to its end.
            interval: least seconds between two pieces.
        """
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
            self._on_output(text, piece.total)
