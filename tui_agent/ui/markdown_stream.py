"""Markdown that streams in: what is finished is read once, only its open end is read again.

A block is finished once a later one began on a complete line, an item of a list once the next did, a piece of code
once the next piece did. So a flush costs what is open, whatever came before, and the outcome does not depend on how
the text was cut on its way.
"""

from collections.abc import Sequence
from itertools import pairwise

from .code_colours import PIECE_MOST, piece_length
from .markdown_blocks import CodeBlock, Item, Unit, parse_markdown
from .text import sanitise

LONGEST_LINE = 16_000
"""Characters after which a line is taken to end."""
LONGEST_BLOCK = 32_000
"""Characters after which an open block is taken to end with its line; code has its pieces instead."""


class MarkdownStream:
    """The units of a text that is still being told."""

    def __init__(self, longest_block: int = LONGEST_BLOCK) -> None:
        self.finished: list[Unit] = []
        """Units that will not change any more."""
        self.open: list[Unit] = []
        """Units of the end, as of the last flush."""
        self._longest_block = longest_block
        self._lines: list[str] = []
        self._rest = ""
        self._settled = 0
        self._fence = ""
        self._joined = False
        self._number: int | None = None

    def feed(self, text: str) -> None:
        """Takes more text; nothing is read before the next flush."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._take_line(line)
        while len(self._rest) > LONGEST_LINE:
            self._lines.extend(_cleaned(self._rest[:LONGEST_LINE]))
            self._rest = self._rest[LONGEST_LINE:]

    def flush(self) -> None:
        """Brings `finished` and `open` up to date."""
        if len(self._lines) != self._settled:
            while self._finish_some():
                pass
            self._settled = len(self._lines)
        self.open = self._read([*self._lines, *_cleaned(self._rest)] if self._rest else self._lines)

    def finish(self) -> None:
        """Takes the text as complete."""
        if self._rest:
            self.feed("\n")
        self.flush()
        self.finished.extend(self.open)
        self.open = []
        self._begin_after(len(self._lines))
        self._settled = 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def _take_line(self, line: str) -> None:
        while len(line) > LONGEST_LINE:
            self._lines.extend(_cleaned(line[:LONGEST_LINE]))
            line = line[LONGEST_LINE:]
        self._lines.extend(_cleaned(line))

    def _read(self, lines: Sequence[str]) -> list[Unit]:
        """The units of the open lines, with what is known of the text before them."""
        if not self._fence:
            units = parse_markdown("\n".join(lines), self._number)
            if units and self._joined:
                units[0] = Unit(units[0].block, units[0].start, joined=True)
            return units
        first, *others = parse_markdown("\n".join([self._fence, *lines]))
        return [Unit(first.block, 0, joined=True), *(Unit(it.block, it.start - 1, it.joined) for it in others)]

    def _finish_some(self) -> bool:
        """Moves what is finished out of the open lines; True where the rest has to be read again."""
        units = self._read(self._lines)
        if not units:
            self._lines = []
            return False
        for unit, following in pairwise(units):
            if (cut := self._cut_of(unit, following.start)) is not None:
                self._begin_with(unit)
                return self._end_at(cut - unit.start)
            self.finished.append(unit)
        last = units[-1]
        self._begin_with(last)
        self._finish_code(last)
        cut = self._cut_of(Unit(last.block, 0), len(self._lines))
        return cut is not None and self._end_at(cut)

    def _cut_of(self, unit: Unit, end: int) -> int | None:
        """The line before which a unit must end because it is too long; None where it is not."""
        if isinstance(unit.block, CodeBlock) and unit.block.fenced:
            return None
        length = 0
        for place in range(unit.start, end - 1):
            length += len(self._lines[place]) + 1
            if length >= self._longest_block:
                return place + 1
        return None

    def _finish_code(self, unit: Unit) -> None:
        """Finishes the pieces of open code that are complete."""
        block = unit.block
        if not isinstance(block, CodeBlock) or not block.fenced:
            return
        done, joined = 0, unit.joined
        while length := piece_length(block.lines[done : done + PIECE_MOST + 1]):
            piece = CodeBlock(block.language, block.lines[done : done + length], fenced=True)
            self.finished.append(Unit(piece, 0, joined))
            done, joined = done + length, True
        if done:
            opener = self._fence or self._lines[0]
            self._lines = self._lines[done if self._fence else done + 1 :]
            self._fence = opener

    # --- where the open lines begin -----------------------------------------------------------------------------------

    def _begin_with(self, unit: Unit) -> None:
        """Lets the open lines begin with a unit of theirs."""
        if unit.start:
            self._begin_after(unit.start)
            self._joined = unit.joined
            self._number = unit.block.number if unit.joined and isinstance(unit.block, Item) else None

    def _begin_after(self, lines: int) -> None:
        """Forgets open lines and what was known of the text before them."""
        self._lines = self._lines[lines:]
        self._fence, self._joined, self._number = "", False, None

    def _end_at(self, cut: int) -> bool:
        """Takes the text to end before an open line, and to begin anew there."""
        self.finished.extend(self._read(self._lines[:cut]))
        self._begin_after(cut)
        return True


def _cleaned(line: str) -> list[str]:
    """One raw line as sanitised lines."""
    return sanitise(line.removesuffix("\r")).split("\n")
