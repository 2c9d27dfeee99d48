"""Reading of numbered lines from a file of any size; memory depends on the request, not on the file."""

import asyncio
import codecs
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.protocol.regular_file import FileReader

from .file_versions import KEPT_CONTENT, FileVersion, new_hash
from .text_format import SAMPLE_SIZE, TextFormat, format_of

WHOLE_LIMIT = 64 * 1024 * 1024
"""Largest file in bytes that is read to its end, to count its lines and hash its content."""

PIECE = 256 * 1024
"""Bytes read at a time; more than `text_format.SAMPLE_SIZE`."""

INLINE_LIMIT = 8 * 1024
"""Most bytes whose lines are read and shown on the event loop; changing threads for them would take longer."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its line ending."""

    number: int
    text: str
    """Decoded text; an invalid byte is a lone surrogate."""
    left_out: int = 0
    """Characters cut off after `text`."""
    skipped: int = 0
    """Characters left out before `text`."""


@dataclass(slots=True)
class LinePage:
    """The lines read, with facts about their file."""

    format: TextFormat
    version: FileVersion
    """Version of the file; it has a hash if the file was read to its end."""
    lines: list[Line] = field(default_factory=list[Line])
    total: int | None = None
    """Number of lines in the file; None if the file was not read to its end."""
    crlf: int = 0
    """Number of `lines` that end in CR LF."""
    full: bool = False
    """True if the budget was too small for all requested lines."""


@dataclass(frozen=True, slots=True)
class LineRequest:
    """Lines to read."""

    ranges: Sequence[tuple[int, int]]
    """First and last line number of each range, in order, without overlap."""
    width: int
    budget: int
    """Most characters kept in all; the first line is always kept."""
    overhead: int = 1
    """Characters that each line costs in addition to its text."""
    column: int = 1
    """First character to keep of the first line, from 1."""


async def read_lines(
    file: FileReader,
    status: os.stat_result,
    form: TextFormat,
    start: bytes,
    request: LineRequest,
    stopped: Callable[[], bool],
) -> LinePage:
    """Read lines of an open regular file, of which `start` is the result of the first `read(PIECE)`.

    Raises:
        OSError: reading failed.
        OperationCancelledError: `stopped`, which is called between pieces, returned True.
    """
    reader = _PageReader(status, form, request, stopped)
    piece = start
    # Decoding, hashing and splitting a large piece takes milliseconds.
    while reader.feed(piece) if len(piece) <= INLINE_LIMIT else await asyncio.to_thread(reader.feed, piece):
        piece = await file.read(PIECE)
    return reader.page


def read_lines_blocking(
    descriptor: int, status: os.stat_result, request: LineRequest, stopped: Callable[[], bool]
) -> LinePage:
    """Read lines as `read_lines` does, from a descriptor at its start. Blocks.

    For work that runs in a thread and reads many files: changing threads for each would take longer than reading them.

    Raises:
        OSError, OperationCancelledError: as for `read_lines`.
    """
    with open(descriptor, "rb", closefd=False) as file:
        piece = file.read(PIECE)
        # Line numbers of search engines count LF only.
        reader = _PageReader(status, replace(format_of(piece[:SAMPLE_SIZE]), is_cr=False), request, stopped)
        while reader.feed(piece):
            piece = file.read(PIECE)
    return reader.page


class _PageReader:
    """Decoder of one file, which arrives in pieces."""

    def __init__(
        self, status: os.stat_result, form: TextFormat, request: LineRequest, stopped: Callable[[], bool]
    ) -> None:
        self.page = LinePage(form, FileVersion.of(status))
        self._status = status
        self._stopped = stopped
        self._collector = _Collector(self.page, request)
        errors = "replace" if form.encoding[:6] == "utf-16" else form.errors
        self._decoder = codecs.getincrementaldecoder(form.encoding)(errors)
        self._skip = len(form.mark)
        self._hash, self._content = new_hash(), bytearray()

    def feed(self, piece: bytes) -> bool:
        """Take the next piece; return False once the page is complete."""
        if self._stopped():
            raise OperationCancelledError("reading was cancelled")
        # Reading a regular file falls short only at its end.
        is_last = len(piece) < PIECE
        self._hash.update(piece)
        if len(self._content) <= KEPT_CONTENT:
            self._content += piece
        text = self._decoder.decode(piece[self._skip :], final=is_last)
        self._collector.feed(text.replace("\r", "\n") if self.page.format.is_cr else text)
        self._skip = 0
        if self._collector.done and self._status.st_size > WHOLE_LIMIT:
            return False
        if is_last:
            self._collector.finish()
            self.page.version = FileVersion.of(self._status, self._hash.hexdigest(), bytes(self._content))
        return not is_last


class _Collector:
    """Collector of the requested lines from text that arrives in pieces."""

    def __init__(self, page: LinePage, request: LineRequest) -> None:
        self.page = page
        self._ranges = list(request.ranges)
        self._width = request.width
        self._room = request.budget
        self._overhead = request.overhead
        self._skipped = request.column - 1
        self._number = 1
        self._parts: list[str] = []
        self._length = 0
        self._line_is_empty = True

    @property
    def done(self) -> bool:
        """True if all requested lines were read."""
        return not self._ranges

    def feed(self, text: str) -> None:
        """Take the next piece."""
        start = 0
        while start < len(text):
            if self.done or self._number < self._ranges[0][0]:
                start = self._skip(text, start)
            else:
                start = self._take(text, start)

    def finish(self) -> None:
        """End the last line and set the page's total."""
        if not self._line_is_empty:
            self._end_line()
        self.page.total = self._number - 1

    def _skip(self, text: str, start: int) -> int:
        """Return the start of the next wanted line, or the end of `text`."""
        ends = text.count("\n", start)
        wanted = ends + 1 if self.done else self._ranges[0][0] - self._number
        if ends < wanted:
            self._number += ends
            self._line_is_empty = text.endswith("\n")
            return len(text)
        for _ in range(wanted):
            start = text.index("\n", start) + 1
        self._number += wanted
        self._line_is_empty = True
        return start

    def _take(self, text: str, start: int) -> int:
        """Take the rest of a wanted line, or as much of it as `text` has; return the position after it."""
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
        first = start + max(self._skipped - self._length, 0)
        # One character more than the width: it may be the CR of the line ending.
        behind = min(stop, start + self._skipped + self._width + 1 - self._length)
        if first < behind:
            self._parts.append(text[first:behind])
        self._length += stop - start
        self._line_is_empty = False
        if end < 0:
            return len(text)
        self._end_line()
        return end + 1

    def _end_line(self) -> None:
        if not self.done and self._number >= self._ranges[0][0]:
            self._keep("".join(self._parts))
            self._parts, self._length = [], 0
            if self._ranges and self._number >= self._ranges[0][1]:
                self._ranges.pop(0)
        self._number += 1
        self._line_is_empty = True

    def _keep(self, text: str) -> None:
        """Keep a complete line if the budget has room for it."""
        if self._length <= self._skipped + self._width + 1 and text.endswith("\r"):
            text = text[:-1]
            self._length -= 1
            self.page.crlf += 1
        kept = text[: self._width]
        cost = len(kept) + self._overhead
        if cost > self._room and self.page.lines:
            self.page.full = True
            self._ranges.clear()
            return
        self._room -= cost
        skipped = min(self._skipped, self._length)
        self.page.lines.append(Line(self._number, kept, self._length - skipped - len(kept), skipped))
        self._skipped = 0
