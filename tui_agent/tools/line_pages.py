"""Picks numbered lines out of a file of any size, piece by piece: memory depends on what is asked for, not the file."""

import codecs
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.errors import OperationCancelledError

from .file_versions import KEPT_CONTENT, FileVersion, new_hash
from .text_format import TextFormat, format_of

WHOLE_LIMIT = 64 * 1024 * 1024
"""Files up to this size in bytes are read to their end, so that their lines are counted and their content hashed."""

_PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    """One line, without its end."""

    number: int
    """From 1."""
    text: str
    """As decoded; a byte that fits no character is a lone surrogate."""
    left_out: int = 0
    """Characters behind `text` that were too many."""


@dataclass(slots=True)
class LinePage:
    """What was found."""

    format: TextFormat
    version: FileVersion
    """The version of the file this is from; with a hash once the end was reached."""
    lines: list[Line] = field(default_factory=list[Line])
    total: int | None = None
    """Lines of the whole file; None where its end was not reached."""
    crlf: int = 0
    """How many of `lines` end in CR LF."""
    full: bool = False
    """Whether lines were asked for that the budget had no room for."""


@dataclass(frozen=True, slots=True)
class LineRequest:
    """Which lines are wanted."""

    ranges: Sequence[tuple[int, int]]
    """First and last line number each, in order, apart from each other."""
    width: int
    """Most characters kept of a line."""
    budget: int
    """Most characters kept in all; the first line always fits."""
    overhead: int = 1
    """Characters that each line costs beside its text."""


def read_lines(descriptor: int, sample: bytes, request: LineRequest, stopped: Callable[[], bool]) -> LinePage:
    """Reads lines of an open file; blocks, so it is called in a thread.

    Args:
        descriptor: of a regular file, at its start.
        sample: the file's first bytes, `text_format.SAMPLE_SIZE` of them; they decide its format.
        request: what is wanted.
        stopped: asked between pieces.

    Raises:
        OSError: reading failed.
        OperationCancelledError: `stopped` said so.
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
    """Follows line numbers through text that comes in pieces, and keeps the lines that are wanted."""

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
        """Whether nothing more is wanted."""
        return not self._ranges

    def feed(self, text: str) -> None:
        """Takes the next piece."""
        start = 0
        while start < len(text):
            if self.done or self._number < self._ranges[0][0]:
                start = self._skip(text, start)
            else:
                start = self._take(text, start)

    def finish(self) -> None:
        """Ends the last line, and tells how many there are."""
        if not self._line_is_empty:
            self._end_line()
        self.page.total = self._number - 1

    def _skip(self, text: str, start: int) -> int:
        """Goes to the start of the next wanted line, or the end of `text`."""
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
        """Takes the rest of a wanted line, or what of it there is."""
        end = text.find("\n", start)
        stop = len(text) if end < 0 else end
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
        """Keeps a complete line, if there is room."""
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
