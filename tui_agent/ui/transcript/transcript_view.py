"""View of a transcript, which follows the end while the user is there and else keeps its position; and its cursor."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.base.error_boundary import call_or_fallback
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.line_view import LineView
from tui_agent.ui.text.sanitiser import clip, sanitise
from tui_agent.ui.text.styled_lines import hard_wrapped

from .transcript_layout import Part, Piece, Transcript


class TranscriptView(LineView):
    """Draws the rows of a transcript; rows out of sight are not laid out."""

    @dataclass
    class DrawingFailed(Message):
        """A part could not be drawn; the others are."""

        view: "TranscriptView"
        error: Exception

    def __init__(self, transcript: Transcript, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.transcript = transcript
        """Transcript on the screen."""
        self._follows = True
        self._seen_count = 0
        self._adjusting = False
        self._bar_stale = False

    @property
    def row_width(self) -> int:
        """Cells of a row; one stays free on the right."""
        return max(0, super().row_width - 1)

    @property
    def following(self) -> bool:
        """True if the view is at the end and follows it."""
        return self._follows

    @property
    def unseen(self) -> int:
        """Number of parts added since the user left the end; 0 at the end."""
        return 0 if self._follows else max(0, len(self.transcript.parts) - self._seen_count)

    def line_at(self, row: int) -> Line | None:
        """Return a row to draw; None below the last one."""
        return self.transcript.line(row) if 0 <= row < self.transcript.total else None

    def render_line(self, y: int) -> Strip:
        """Return one row of the widget; the last one also shows how much is new below."""
        # A part that cannot be drawn must not take the rows of the others with it.
        strip = call_or_fallback(lambda: super(TranscriptView, self).render_line(y), self._blank)
        text = self.chip if y == self.size.height - 1 else ""
        if text:
            width = self.size.width
            left = strip.crop(0, max(0, width - cell_len(text) - 1))
            chip = Strip([Segment(clip(text, width), self.style_named("chip"))])
            return Strip.join([left, chip, Strip.blank(1, self.rich_style)]).crop(0, width)
        return strip

    def report_fault(self, fault: Exception) -> None:
        """Report that a part could not be drawn."""
        self.post_message(self.DrawingFailed(self, fault))

    @property
    def chip(self) -> str:
        """Text over the end of the last row; empty for none."""
        return self.news

    @property
    def news(self) -> str:
        """Text about new parts below; empty if the user sees them."""
        return f" {self.unseen} new ↓ " if self.unseen else ""

    # --- changes ------------------------------------------------------------------------------------------------------

    def show_transcript(self, transcript: Transcript) -> None:
        """Show another transcript; a reader above the end keeps the distance to it."""
        below = self.transcript.total - self.scroll_offset.y
        news = len(transcript.parts) - len(self.transcript.parts)
        self.transcript = transcript
        transcript.set_width(self.row_width)
        if self._follows or not transcript.width:
            return
        self._seen_count += news
        # Laying out turns estimates into heights, which may bring other rows into the window.
        while True:
            total = transcript.total
            transcript.settle(max(0, total - below), total)
            if transcript.total == total:
                break
        self._move_to(max(0, total - below))

    def show_changes(self) -> None:
        """Draw the changes since the last call; the caller updates the scrollbar."""
        if self.transcript.is_dirty and self.transcript.width:
            self.lay_out_visible()
            if (dirty := self.transcript.take_dirty()) is not None:
                self.refresh_rows(dirty)
            self._refresh_news()

    def read_on(self) -> bool:
        """Read a slice of a text in sight that was too long to be read at once; return False if there is none."""
        if not self._waits:
            return False
        top = self._top
        shift = self.transcript.read_on(top, top + self.row_count)
        if not self._follows:
            self._move_to(top + shift)
        return True

    def schedule_read(self) -> None:
        """Schedule `read_on`: a text in sight is not read to its end."""

    def show_scrollbar(self) -> None:
        """Update the scrollbar. While text streams, this may wait: the bar hardly moves, and drawing it costs much."""
        if self._bar_stale:
            self._bar_stale = False
            self._scroll_update(self.virtual_size)
            self.vertical_scrollbar.position = self.scroll_y

    def show_row(self, row: int) -> None:
        """Scroll so that a row is in the upper part of the view."""
        self._follows, self._seen_count = False, len(self.transcript.parts)
        # The range needs the rows first, or the target would be cut at the old end. A third of the view stays above
        # it: the text before a match explains it.
        self.set_rows(self.transcript.total)
        self.scroll_to(y=max(0, row - self.row_count // 3), animate=False)
        self.refresh()

    def show_end(self) -> None:
        """Scroll to the newest row and follow."""
        self._follows = True
        self.lay_out_visible()
        self.show_scrollbar()

    # --- where the reader is ------------------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        """Lay out the rows for the new width; the visible text stays."""
        if self.row_width != self.transcript.width:
            with self.same_place():
                self.transcript.set_width(self.row_width)
        self.transcript.take_dirty()
        self.lay_out_visible()
        self.show_scrollbar()
        self.refresh()

    @contextmanager
    def same_place(self) -> Generator[None]:
        """Keep the text at the top of the view there while heights change."""
        top = self.transcript.find(self.scroll_offset.y)
        below = self.scroll_offset.y - self.transcript.start(top) if top is not None else 0
        yield
        if top is not None and not self._follows:
            # At another width the height of the part is an estimate again.
            self.transcript.settle(self.transcript.start(top), self.transcript.start(top))
            self._move_to(self.transcript.start(top) + min(below, max(0, top.height(self.transcript.width) - 1)))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the end only while it is visible."""
        # The view scrolled itself: the reader is where they were.
        if self._adjusting:
            if self._follows:
                self.move_rows(round(new_value) - round(old_value))
            else:
                self.refresh(self.size.region)
            return
        super().watch_scroll_y(old_value, new_value)
        if not self.transcript.width:
            return
        follows = round(new_value) >= self.max_scroll_y
        if follows != self._follows:
            self._follows, self._seen_count = follows, len(self.transcript.parts)
            self._refresh_news()
        self._reveal_above(round(new_value), round(old_value))
        self.lay_out_visible()
        self.show_scrollbar()

    def lay_out_visible(self) -> None:
        """Lay out the visible rows, and keep the view at the end or at the same text."""
        call_or_fallback(self._lay_out_visible, self.report_fault)
        if self._waits:
            self.schedule_read()

    @property
    def _top(self) -> int:
        """First visible row."""
        return max(0, self.transcript.total - self.row_count) if self._follows else self.scroll_offset.y

    @property
    def _waits(self) -> bool:
        """True if a text in sight was too long to be read at once, and can be read further."""
        top = self._top
        return bool(self.transcript.width) and self.transcript.has_unread_at(top, top + self.row_count)

    def _blank(self, fault: Exception) -> Strip:
        self.report_fault(fault)
        return Strip.blank(self.size.width, self.rich_style)

    def _lay_out_visible(self) -> None:
        rows = self.row_count
        if not self.transcript.width or not rows:
            return
        if self._follows:
            while True:
                total = self.transcript.total
                self.transcript.settle(max(0, total - rows), total)
                if self.transcript.total == total:
                    break
            self._move_to(total)
        else:
            top = self.scroll_offset.y
            shift = self.transcript.settle(top, top + rows)
            self._move_to(top + shift if shift else None)

    def _reveal_above(self, top: int, before: int) -> None:
        """Lay out the rows between two tops when the user scrolls up a little, so that none is skipped.

        Rows above that turn out higher than estimated push everything down; the end does not move, so the old top keeps
        its distance to it.
        """
        if 0 < before - top <= 2 * self.row_count:
            total = self.transcript.total
            self.transcript.settle(top, before - 1)
            if self.transcript.total != total:
                self._move_to(top + self.transcript.total - total)

    def _move_to(self, row: int | None) -> None:
        """Set the number of rows, and scroll at once; None: do not scroll."""
        self._adjusting = True
        changed = self.count_rows(self.transcript.total)
        if row is not None:
            # Not `scroll_to`, which waits for a refresh: this frame would show the rows of the old place.
            self.scroll_target_y = self.scroll_y = max(0, min(row, self.max_scroll_y))
        self._adjusting = False
        self._bar_stale = self._bar_stale or changed or row is not None

    def _refresh_news(self) -> None:
        self.refresh_rows(self.scroll_offset.y + max(0, self.size.height - 1))


class PartCursor:
    """Points at a part, or at one of its pieces."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._part: Part | None = None
        self._number = 0
        self._key: tuple[object, ...] = ()
        self._known: Sequence[Piece] = ()
        self._label = ""

    @property
    def part(self) -> Part | None:
        """The keyboard's part; None if there is none any more."""
        return self._part if self._transcript.has(self._part) else None

    def select(self, part: Part | None) -> None:
        """Point at a whole part."""
        self._part, self._number = part, 0

    def step(self, *, backwards: bool, opens: bool) -> bool:
        """Go to the next part that can be copied, or with `opens` that opens; return False if there is none."""
        for part in self._transcript.from_part(self.part, backwards=backwards):
            if part.active if opens else part.copyable:
                self.select(part)
                return True
        return False

    def step_piece(self, *, backwards: bool) -> bool:
        """Go to the next piece of the part, after the last one back to the whole part; False if there are none."""
        count = len(self._pieces())
        # One more than there are pieces: 0 is the whole part.
        self._number = (self._number + (-1 if backwards else 1)) % (count + 1)
        return count > 0

    @property
    def piece(self) -> Piece | None:
        """The chosen piece; None if the whole part is chosen."""
        pieces = self._pieces() if self._number else ()
        return pieces[self._number - 1] if 0 < self._number <= len(pieces) else None

    @property
    def image(self) -> ImageBlock | None:
        """Image of the part; None if it has none."""
        return self.part.image if self.part is not None else None

    @property
    def text(self) -> str:
        """Text to copy."""
        if (piece := self.piece) is not None:
            return piece.text
        return self.part.copied if self.part is not None else ""

    @property
    def label(self) -> str:
        """Name and size of what is chosen, such as `code 2 of 3 · 14 lines`."""
        pieces = self._pieces()  # Also keeps the label.
        if not self._label and self.part is not None:
            self._label = self._label_of(self.part, pieces)
        return self._label

    def covers(self, part: Part | None, row: int) -> bool:
        """Return True if a row of a part is in what is chosen."""
        if part is None or part is not self.part:
            return False
        piece = self.piece
        return piece is None or piece.first <= row < piece.last

    @property
    def first_row(self) -> int:
        """First row within the part of what is chosen."""
        if (piece := self.piece) is not None:
            return piece.first
        return int(self.part.gap) if self.part is not None else 0

    def page_rows(self, width: int) -> Sequence[Line]:
        """Return all rows of what is chosen, for a page."""
        piece = self.piece
        if piece is not None:
            return piece.rows(width) if piece.rows is not None else hard_wrapped([(sanitise(piece.text), "")], width)
        return self.part.page_rows(width) if self.part is not None else ()

    def _label_of(self, part: Part, pieces: Sequence[Piece]) -> str:
        piece = self.piece
        text = part.text if piece is None else piece.text
        lines = count_text(text.rstrip("\n").count("\n") + 1, "line")
        if piece is None:
            return f"{part.title} · {lines}"
        alike = [one for one in pieces if one.name == piece.name]
        place = f" {alike.index(piece) + 1} of {len(alike)}" if len(alike) > 1 else ""
        return f"{piece.name}{place} · {lines}"

    def _pieces(self) -> Sequence[Piece]:
        """Return the pieces of the part, made once for each of its states."""
        part, width = self.part, self._transcript.width
        if part is None or not width:
            return ()
        key = (part, self._number, width, part.opened, part.height(width))
        if key != self._key:
            self._key, self._known, self._label = key, part.pieces(width), ""
            # Making the pieces lays the part out, which may change its height.
            self._key = (part, self._number, width, part.opened, part.height(width))
        return self._known
