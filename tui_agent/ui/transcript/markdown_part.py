"""Markdown parts of the conversation: they grow while the model streams, and only new text costs work."""

from collections.abc import Sequence
from functools import partial

from tui_agent.protocol.amounts import count_text
from tui_agent.ui.text.height_index import HeightIndex
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import clip, ends_of, one_line, with_controls, without_controls
from tui_agent.ui.text.styled_lines import clipped, width_of_runs
from tui_agent.ui.transcript.transcript_layout import CARET, MAX_PAGE_CHARACTERS, Part, Piece

from .markdown_blocks import CodeBlock, Unit, code_blocks, fenced_texts
from .markdown_layout import estimated_height, layout_block, layout_code
from .markdown_stream import SLICE_COST, MarkdownStream

MAX_CACHED_UNIT_ROWS = 2_000
"""Most rows of one text kept in memory."""

_LAST_WORDS = 8_000
"""Characters at the end of reasoning that are searched for its last line."""

_Rows = list[Line] | None


class MarkdownPart(Part):
    """A text in units: each is laid out once for a width, and only when it is visible."""

    name = "answer"

    def __init__(
        self, text: str = "", *, gap: bool = False, margin: str = "", live: bool = False, style: str | None = None
    ) -> None:
        """Prepare a text, which is parsed once it is in sight.

        Args:
            text: the Markdown.
            gap: True for an empty row above it.
            margin: text before each row.
            live: True if more of it will come.
            style: style of a text that is not Markdown; None: it is Markdown.
        """
        super().__init__(gap=gap)
        self.pinned = live
        self._margin = margin
        self._style = style
        self._text = text
        self._fresh: list[str] = []
        self._fed = 0
        self._stream: MarkdownStream | None = None
        self._units: list[Unit] = []
        self._unit_rows: list[_Rows] = []
        self._index = HeightIndex()
        self._settled = 0

    @property
    def text(self) -> str:
        if self._fresh:
            # Joined when it is asked for: to add each delta to a long text would be quadratic.
            self._text += "".join(self._fresh)
            self._fresh = []
        return self._text

    @property
    def waits(self) -> bool:
        """True if more of the text can be read."""
        return self._stream is not None and (self._stream.waits or self._fed < len(self.text))

    @property
    def cached_rows(self) -> int:
        return sum(len(rows) for rows in self._unit_rows if rows is not None)

    def pieces(self, width: int) -> Sequence[Piece]:
        """Return its code blocks."""
        self.settle(width, 0, 0)
        blocks: list[tuple[CodeBlock, int, int]] = []
        for place, unit in enumerate(self._units):
            first, last = self._index.start(place), self._index.start(place + 1)
            found = list(code_blocks(unit.block))
            if unit.joined and place and found and isinstance(unit.block, CodeBlock) and blocks:
                # A long block is read in several pieces.
                before, start, _ = blocks.pop()
                found, first = [CodeBlock(before.language, (*before.lines, *found[0].lines), fenced=True)], start
            blocks.extend((block, first, last) for block in found)
        raw = fenced_texts(self.text)
        # The source has tabs and blanks as written; if it counts other fences, the parser's lines are safe.
        texts = raw if len(raw) == len(blocks) else ["\n".join(block.lines) for block, _, _ in blocks]
        return [
            Piece("code", without_controls(text), first, last, partial(layout_code, block))
            for (block, first, last), text in zip(blocks, texts, strict=True)
        ]

    def page_rows(self, width: int) -> Sequence[Line]:
        return MarkdownPart(ends_of(self.text, MAX_PAGE_CHARACTERS), style=self._style).layout(width)

    def feed(self, text: str) -> None:
        """Add text; `flush` brings it to the screen."""
        self._fresh.append(text)

    def flush(self) -> None:
        """Read the next slice of the added text."""
        stream = self._fed_stream()
        if self.pinned:
            stream.flush()
        else:
            stream.finish()
        self._take(stream)

    def finish(self) -> None:
        """Take the text as complete; while it `waits`, another `flush` reads more of it."""
        self.pinned = False
        if self._stream is not None:
            self.flush()

    def read_on(self, width: int, first: int) -> int:
        before = self.height(width)
        read = self._index.start(self._settled) if self._stream is not None else 0
        self.flush()
        return self.height(width) - before if first > read else 0

    def has_unread_at(self, width: int, last: int) -> bool:
        if not self.waits or self._stream is None:
            return False
        unread = len(self._units) - len(self._stream.unread)
        return last >= self._index.start(unread)

    def layout(self, width: int) -> list[Line]:
        self.settle(width, 0, 0)
        for place in range(len(self._units)):
            self._lay_out(place)
        self._store_measured()
        return [self.line(width, row) for row in range(self.gap, self._index.total)]

    def height(self, width: int) -> int:
        if self._stream is None and self._measured[0] != width:
            return self.gap + self.estimate(width)
        if self._width != width and self._stream is not None:
            self._fit(width)
        return self._measured[1]

    def settle(self, width: int, first: int, last: int) -> int:
        before = self.height(width)
        shift = 0
        if self._stream is None:
            self._read_all(width)
            shift = self.height(width) - before if first > 0 else 0
            first, last = first + shift, last + shift
        place = self._index.find(first)
        row = self._index.start(place) if place < len(self._units) else last + 1
        while row <= last and place < len(self._units):
            moved = self._lay_out(place)
            shift += moved if row < first else 0
            row += self._index.height(place)
            place += 1
        self._store_measured()
        if self.cached_rows > MAX_CACHED_UNIT_ROWS:
            self._drop_rows(first, last)
        return shift

    def line(self, width: int, row: int) -> Line:
        if self._width != width or self._stream is None:
            self.settle(width, row, row)
        place = self._index.find(row)
        if row < 0 or place >= len(self._units):
            return Line()
        rows = self._rows_of(place)
        local = row - self._index.start(place)
        line = rows[local] if local < len(rows) else Line()
        if self.pinned and row == self._index.total - 1:
            return Line((*line.runs, CARET), line.joint, line.indent, line.fill)
        return line

    def forget(self) -> None:
        """Drop its units and keep their heights."""
        if self._stream is not None and self._stream.cost > SLICE_COST:
            self._unit_rows = [None] * len(self._units)  # Reading it again would take many turns.
            return
        self._stream, self._units, self._unit_rows, self._settled = None, [], [], 0

    # --- units --------------------------------------------------------------------------------------------------------

    def styled(self, line: Line) -> Line:
        """Return a row of the text as it is shown."""
        if self._style:
            line = line.styled(self._style)
        return line.prefixed((self._margin, "")) if self._margin else line

    def blank(self) -> Line:
        """Return the empty row above a unit."""
        return Line()

    def _fed_stream(self) -> MarkdownStream:
        """Return the stream, fed with all of the text so far."""
        text = self.text
        if self._stream is None:
            self._stream, self._fed = (MarkdownStream() if self._style is None else MarkdownStream(text_cost=0)), 0
        if self._fed < len(text):
            self._stream.feed(text[self._fed :])
            self._fed = len(text)
        return self._stream

    def _read_all(self, width: int) -> None:
        """Read the text from its beginning; exact heights stay."""
        heights, self._index = self._index, HeightIndex()
        exact = self._measured[0] == width
        self._width = width
        self.flush()
        # Dropped rows return at their heights, so that nothing below them moves.
        if exact and len(heights) == len(self._units):
            self._index = heights
        self._store_measured()

    def _take(self, stream: MarkdownStream) -> None:
        """Take over the new units; finished ones stay."""
        kept = self._settled
        new = [*stream.finished[kept:], *stream.open, *stream.unread]
        self._settled = len(stream.finished)
        self.dirty_row = self._index.start(kept) if kept <= len(self._index) else 0
        self._units[kept:] = new
        self._unit_rows[kept:] = [None] * len(new)
        if self._width:
            self._index.cut(kept)
            for unit in new:
                self._index.append(self._estimated(unit, kept == 0 and unit is new[0]))
            self._store_measured()

    def _fit(self, width: int) -> None:
        """Set the heights of all units for a width, as estimates."""
        self._width = width
        self._index = HeightIndex(self._estimated(unit, place == 0) for place, unit in enumerate(self._units))
        self._unit_rows = [None] * len(self._units)
        self._store_measured()

    def _store_measured(self) -> None:
        self._measured = (self._width, self._index.total)

    def _estimated(self, unit: Unit, first: bool) -> int:
        gap = self.gap if first else not unit.joined
        return gap + estimated_height(unit.block, self._width - len(self._margin))

    def _rows_of(self, place: int) -> list[Line]:
        rows = self._unit_rows[place]
        if rows is None:
            self._lay_out(place)
            rows = self._unit_rows[place]
        return rows or []

    def _lay_out(self, place: int) -> int:
        """Lay one unit out; return by how many rows it is higher than estimated."""
        if self._unit_rows[place] is not None:
            return 0
        unit = self._units[place]
        gap = self.gap if place == 0 else not unit.joined
        rows = layout_block(unit.block, self._width - len(self._margin))
        self._unit_rows[place] = [*([self.blank()] if gap else []), *(self.styled(row) for row in rows)]
        before = self._index.height(place)
        if self._index.set(place, len(rows) + gap):
            self.dirty_row = min(self.dirty_row, self._index.start(place))
        return len(rows) + gap - before

    def _drop_rows(self, first: int, last: int) -> None:
        """Drop rows of units that are not between two rows."""
        keep = range(self._index.find(first), self._index.find(last) + 1)
        for place in range(len(self._units)):
            if place not in keep:
                self._unit_rows[place] = None


class _Thoughts(MarkdownPart):
    """Text of reasoning, beside its bar."""

    def styled(self, line: Line) -> Line:
        """Return a row in the colours of reasoning."""
        return line.styled("thinking").prefixed((self._margin, "quote-bar"))

    def blank(self) -> Line:
        """Return an empty row beside the bar."""
        return self.styled(Line())


class CollapsiblePart(Part):
    """A text that is one row until the user opens it."""

    def __init__(self, body: MarkdownPart, *, gap: bool, margin: str, opened: bool = False) -> None:
        super().__init__(gap=gap)
        self.opened = opened
        """True if all of it is shown."""
        self._margin = margin
        self._body = body

    @property
    def text(self) -> str:
        return self._body.text

    @property
    def active(self) -> bool:
        """True: it always opens or closes."""
        return True

    @property
    def cached_rows(self) -> int:
        return super().cached_rows + self._body.cached_rows

    def toggle(self) -> bool:
        self.opened = not self.opened
        self.changed()
        return True

    def forget(self) -> None:
        super().forget()
        self._body.forget()

    def height(self, width: int) -> int:
        return self._top + (self._body.height(width) if self.opened else 0)

    def settle(self, width: int, first: int, last: int) -> int:
        super().settle(width, first, last)
        if not self.opened or last < self._top:
            return 0
        return self._body.settle(width, max(0, first - self._top), last - self._top)

    def line(self, width: int, row: int) -> Line:
        if self.opened and row >= self._top:
            return self._body.line(width, row - self._top)
        return super().line(width, row)

    def read_on(self, width: int, first: int) -> int:
        return self._body.read_on(width, max(0, first - self._top))

    def has_unread_at(self, width: int, last: int) -> bool:
        return self.opened and self._body.has_unread_at(width, last - self._top)

    @property
    def _top(self) -> int:
        """Rows above the body."""
        return 1 + self.gap

    @property
    def _sign(self) -> Run:
        return f"{self._margin}{'▾' if self.opened else '▸'} ", "calls"


class PastedPart(CollapsiblePart):
    """A long message of the user."""

    name = "message"

    def __init__(self, text: str, *, margin: str) -> None:
        super().__init__(MarkdownPart(with_controls(text), margin=margin, style=""), gap=False, margin=margin)
        self._raw = text

    @property
    def text(self) -> str:
        return self._raw

    def layout(self, width: int) -> list[Line]:
        """Return the row with the first line and the size."""
        size = f"pasted {count_text(self._raw.count(chr(10)) + 1, 'line')}"
        if self.opened:
            return [Line(clipped((self._sign, (size, "muted")), width))]
        # A first line may be megabytes long.
        first = one_line(with_controls(self._raw.lstrip()[: 8 * width].partition("\n")[0]), width)
        room = max(0, width - width_of_runs([self._sign]) - len(size) - 2)
        return [Line(clipped((self._sign, (clip(first, room), ""), (f"  {size}", "muted")), width))]


class ThinkingPart(CollapsiblePart):
    """The model's reasoning: one row until the user opens it."""

    name = "thinking"

    def __init__(
        self, text: str = "", *, gap: bool = False, margin: str = "", live: bool = False, opened: bool = False
    ) -> None:
        super().__init__(_Thoughts(text, margin=f"{margin}▏ ", live=live), gap=gap, margin=margin, opened=opened)
        self.pinned = live

    @property
    def waits(self) -> bool:
        """True if it is open and more of it can be read."""
        return self.opened and self._body.waits

    def feed(self, text: str) -> None:
        """Add text."""
        self._body.feed(text)
        self.changed()

    def flush(self) -> None:
        """Read the added text if it is shown."""
        # Collapsed reasoning is not parsed: most of it is never opened.
        if self.opened:
            self._body.flush()

    def finish(self) -> None:
        """Take the text as complete."""
        self._body.finish()
        self.pinned = False
        self.changed()

    def layout(self, width: int) -> list[Line]:
        """Return the row above the reasoning."""
        text = self._last_line() if self.pinned else self.text[: 8 * width + 512]
        shown = one_line(text.strip(), width) or "…"
        head: tuple[Run, ...] = (self._sign, ("thinking  ", "thinking"))
        return [Line(head if self.opened else clipped((*head, (shown, "muted")), width))]

    def _last_line(self) -> str:
        text = self.text[-_LAST_WORDS:].strip()
        return text.rpartition("\n")[2]
