"""A transcript on the screen, and where its reader is: at the end and staying there, or elsewhere and left in peace."""

from dataclasses import dataclass

from rich.segment import Segment
from textual.events import Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from tui_agent.ui.base.error_boundary import call_or_fallback
from tui_agent.ui.text.line_view import LineView
from tui_agent.ui.text.styled_lines import Line

from .transcript_model import Transcript


class TranscriptView(LineView):
    """Draws the rows of a transcript; what is out of sight is not laid out."""

    @dataclass
    class DrawingFailed(Message):
        """Something could not be drawn; the rest is."""

        view: "TranscriptView"
        error: Exception

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.transcript = Transcript()
        """What is shown."""
        self._follows = True
        self._seen_count = 0
        self._adjusting = False
        self._bar_stale = False

    @property
    def row_width(self) -> int:
        """Cells a row has; one stays free on the right."""
        return max(0, super().row_width - 1)

    @property
    def following(self) -> bool:
        """Whether the reader is at the end, and stays there."""
        return self._follows

    @property
    def unseen(self) -> int:
        """Parts that came since the reader left the end."""
        return 0 if self._follows else max(0, len(self.transcript.parts) - self._seen_count)

    def line_at(self, row: int) -> Line | None:
        """A row as it is drawn."""
        return self.transcript.line(row) if 0 <= row < self.transcript.total else None

    def render_line(self, y: int) -> Strip:
        """One row of the widget; over the last one stands how much is new."""
        strip = call_or_fallback(lambda: super(TranscriptView, self).render_line(y), self._blank)
        words = self.news
        if words and y == self.size.height - 1:
            width = self.size.width
            left = strip.crop(0, max(0, width - len(words) - 1))
            chip = Strip([Segment(words[:width], self.style_named("chip"))])
            return Strip.join([left, chip, Strip.blank(1, self.rich_style)]).crop(0, width)
        return strip

    def report_fault(self, fault: Exception) -> None:
        """Something could not be drawn."""
        self.post_message(self.DrawingFailed(self, fault))

    @property
    def news(self) -> str:
        """How much is new below; empty where the reader sees it."""
        return f" {self.unseen} new ↓ " if self.unseen else ""

    # --- changes ------------------------------------------------------------------------------------------------------

    def show_transcript(self, transcript: Transcript) -> None:
        """Shows another transcript; a reader who is not at its end stays as far from it."""
        below = self.transcript.total - self.scroll_offset.y
        news = len(transcript.parts) - len(self.transcript.parts)
        self.transcript = transcript
        transcript.set_width(self.row_width)
        if self._follows or not transcript.width:
            return
        self._seen_count += news
        while True:
            total = transcript.total
            transcript.settle(max(0, total - below), total)
            if transcript.total == total:
                break
        self._move_to(max(0, total - below))

    def show_changes(self) -> None:
        """Draws what changed in the transcript since the last time; the scrollbar is the caller's."""
        dirty = self.transcript.take_dirty()
        if dirty is not None and self.transcript.width:
            self.lay_out_visible()
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
        """Brings the scrollbar up to date. While text streams in it need not be: it hardly moves, and costs much."""
        if self._bar_stale:
            self._bar_stale = False
            self._scroll_update(self.virtual_size)
            self.vertical_scrollbar.position = self.scroll_y

    def show_row(self, row: int) -> None:
        """Scrolls so that a row is in the upper part of what is in sight."""
        self._follows, self._seen_count = False, len(self.transcript.parts)
        self.set_rows(self.transcript.total)
        self.scroll_to(y=max(0, row - self.row_count // 3), animate=False)
        self.refresh()

    def show_end(self) -> None:
        """To the newest row, to stay there."""
        self._follows = True
        self.lay_out_visible()
        self.show_scrollbar()

    # --- where the reader is ------------------------------------------------------------------------------------------

    def on_resize(self, event: Resize) -> None:
        """Fits the rows to another width; what the reader looks at stays."""
        top = self.transcript.find(self.scroll_offset.y)
        below = self.scroll_offset.y - self.transcript.start(top) if top is not None else 0
        if self.transcript.set_width(self.row_width) and top is not None and not self._follows:
            self.transcript.settle(self.transcript.start(top), self.transcript.start(top))
            self._move_to(self.transcript.start(top) + min(below, max(0, top.height(self.transcript.width) - 1)))
        self.transcript.take_dirty()
        self.lay_out_visible()
        self.show_scrollbar()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end only while it is in sight."""
        if self._adjusting:
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
        """Lays out what is in sight, and keeps the reader at the end or at the same text."""
        call_or_fallback(self._lay_out_visible, self.report_fault)
        if self._waits:
            self.schedule_read()

    @property
    def _top(self) -> int:
        """The first row in sight."""
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
        """Lays out the rows between two tops when the reader goes up a little, so that none is jumped over.

        Rows above that turn out higher than thought push everything down; the end is not touched, so how far the old
        top is from it stays the same.
        """
        if 0 < before - top <= 2 * self.row_count:
            total = self.transcript.total
            self.transcript.settle(top, before - 1)
            if self.transcript.total != total:
                self._move_to(top + self.transcript.total - total)

    def _move_to(self, row: int | None) -> None:
        """Tells the number of rows, and scrolls without further ado; None: stays."""
        self._adjusting = True
        changed = self.count_rows(self.transcript.total)
        if row is not None:
            self.scroll_target_y = self.scroll_y = max(0, min(row, self.max_scroll_y))
        self._adjusting = False
        self._bar_stale = self._bar_stale or changed or row is not None

    def _refresh_news(self) -> None:
        self.refresh(Region(0, max(0, self.size.height - 1), self.size.width, 1))
