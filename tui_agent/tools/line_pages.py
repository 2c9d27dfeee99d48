"""Reading of numbered lines from a file of any size; memory depends on the request, not on the file."""

import codecs
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.errors import OperationCancelledError

from .file_versions import KEPT_CONTENT, FileVersion, new_hash
from .text_format import TextFormat, format_of

WHOLE_LIMIT = 64 * 1024 * 1024
"""Largest file in bytes that is read to its end, to count its lines and hash its content."""

_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its line ending."""

    number: int
    """Line number, from 1."""
    text: str
    """Decoded text; an invalid byte is a lone surrogate."""
    left_out: int = 0
    """Characters cut off after `text`."""


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
    """Most characters kept of a line."""
    budget: int
    """Most characters kept in all; the first line is always kept."""
    overhead: int = 1
    """Characters that each line costs in addition to its text."""


def read_lines(descriptor: int, sample: bytes, request: LineRequest, stopped: Callable[[], bool]) -> LinePage:
    """Read lines of an open file. Blocks.

    Args:
        descriptor: descriptor of a regular file, at its start.
        sample: the file's first `text_format.SAMPLE_SIZE` bytes, which decide its format.
        request: the lines to read.
        stopped: checked between pieces; True cancels reading.

    Raises:
        OSError: reading failed.
        OperationCancelledError: `stopped` returned True.
    """
    status = os.fstat(descriptor)
    form = format_of(sample)
    decoder = codecs.getincrementaldecoder(form.encoding)("replace" if form.encoding[:6] == "utf-16" else form.errors)
    collector = _Collector(LinePage(form, FileVersion.of(status)), request)
    hashed, content = new_hash(), bytearray()
    skip = len(form.mark)
    while piece := os.read(descriptor, _PIECE):
        if stopped():
            raise OperationCancelledError("reading was cancelled")
        hashed.update(piece)
        if len(content) <= KEPT_CONTENT:
            content += piece
        collector.feed(decoder.decode(piece[skip:]))
        skip = 0
        if collector.done and status.st_size > WHOLE_LIMIT:
            return collector.page
    collector.feed(decoder.decode(b"", final=True))
    collector.finish()
    collector.page.version = FileVersion.of(status, hashed.hexdigest(), bytes(content))
    return collector.page


class _Collector:
    """Collector of the requested lines from text that arrives in pieces."""

    def __init__(self, page: LinePage, request: LineRequest) -> None:
        self.page = page
        self._ranges = list(request.ranges)
        self._width = request.width
        self._room = request.budget
        self._overhead = request.overhead
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
        # One character more than the width: it may be the CR of the line ending.
        if self._length < self._width + 1:
            self._parts.append(text[start : min(stop, start + self._width + 1 - self._length)])
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
        if self._length <= self._width + 1 and text.endswith("\r"):
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
        self.page.lines.append(Line(self._number, kept, self._length - len(kept)))
