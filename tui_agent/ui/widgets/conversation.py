"""The conversation: one widget that draws rows, so that ten thousand messages scroll and grow like ten.

It changes through `apply` only. Text that streams in is flushed at a fixed rate by a timer that stands while nothing
changes. It follows the end as long as the reader is there; elsewhere it says how much is new.
"""

import time
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.events import Click, Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionSwitched
from tui_agent.ui.commands import bindings_for
from tui_agent.ui.styled_lines import Line
from tui_agent.ui.transcript import Part, Transcript
from tui_agent.ui.transcript_fold import TranscriptFold
from tui_agent.ui.transcript_search import TranscriptSearch

from .line_view import LineView

FLUSH_SECONDS = 1 / 15
"""Least time between two flushes."""
REST_SHARE = 4
"""A flush that took long is followed by as many times its length of rest."""


class Conversation(LineView):
    """Everything that was said and done."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("conversation")]

    @dataclass
    class CallsSelected(Message):
        """A person wants to see these calls."""

        call_ids: tuple[str, ...]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._transcript = Transcript()
        self._fold = TranscriptFold(self._transcript)
        self._follows = True
        self._seen = 0
        self._unflushed = False
        self._rest_until = 0.0
        self._timer: Timer | None = None
        self._adjusting = False
        self._current: Part | None = None
        self._search: TranscriptSearch | None = None
        self._found_row: int | None = None

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
        return 0 if self._follows else max(0, len(self._transcript.parts) - self._seen)

    # --- what comes in ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Makes the flush timer; it stands as long as nothing came."""
        super().on_mount()
        self._timer = self.set_interval(FLUSH_SECONDS, self._tick, pause=not self._unflushed)

    def apply(self, envelope: Envelope) -> None:
        """Takes one event; the screen follows with the next flush."""
        if isinstance(envelope.event, SessionSwitched):
            self.clear()
        self._fold.apply(envelope)
        if not self._unflushed:
            self._unflushed = True
            if self._timer is not None:
                self._timer.resume()

    def clear(self) -> None:
        """Forgets the conversation."""
        self._transcript = Transcript()
        self._fold = TranscriptFold(self._transcript)
        self._transcript.set_width(self.row_width)
        self._current, self._search, self._found_row = None, None, None
        self._follows, self._unflushed = True, True

    def flush(self) -> None:
        """Brings everything that came to the screen."""
        self._unflushed = False
        self._fold.flush()
        dirty = self._transcript.take_dirty()
        if dirty is not None and self._transcript.width:
            self._arrange()
            self.refresh_rows(dirty)
            self._refresh_chip()

    # --- search -------------------------------------------------------------------------------------------------------

    def search(self, query: str) -> int:
        """Marks all matches and goes to the one nearest to the end; gives their number. An empty query ends it."""
        self._search, self._found_row = (TranscriptSearch(self._transcript, query) if query else None), None
        if self._search is not None:
            self.previous_match()
        self.refresh()
        return self._search.count if self._search is not None else 0

    def next_match(self) -> bool:
        """Goes to the next match, after the last to the first; False where there is none."""
        return self._go_to_match(backwards=False)

    def previous_match(self) -> bool:
        """Goes to the match before, before the first to the last; False where there is none."""
        return self._go_to_match(backwards=True)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def line_at(self, row: int) -> Line | None:
        """A row as it is drawn."""
        if not 0 <= row < self._transcript.total:
            return None
        line = self._transcript.line(row)
        if self._search is not None:
            line = self._search.marked(line, here=row == self._found_row)
        if self._current is not None and self.has_focus and self._transcript.find(row) is self._current:
            line = _pointed_at(line)
        return line

    def render_line(self, y: int) -> Strip:
        """One row of the widget; over the last one stands how much is new."""
        strip = super().render_line(y)
        words = self._chip()
        if words and y == self.size.height - 1:
            width = self.size.width
            left = strip.crop(0, max(0, width - len(words) - 1))
            chip = Segment(words[:width], self.style_named("chip"))
            return Strip.join([left, Strip([chip]), Strip.blank(1, self.rich_style)]).crop(0, width)
        return strip

    def on_resize(self, event: Resize) -> None:
        """Fits the rows to another width; what the reader looks at stays."""
        top = self._transcript.find(self.scroll_offset.y)
        below = self.scroll_offset.y - self._transcript.start(top) if top is not None else 0
        if self._transcript.set_width(self.row_width) and top is not None and not self._follows:
            self._transcript.settle(self._transcript.start(top), self._transcript.start(top))
            self._move_to(self._transcript.start(top) + min(below, max(0, top.height(self._transcript.width) - 1)))
        self._transcript.take_dirty()
        self._arrange()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follows the end only while it is in sight."""
        super().watch_scroll_y(old_value, new_value)
        if self._adjusting or not self._transcript.width:
            return
        follows = round(new_value) >= self.max_scroll_y
        if follows != self._follows:
            self._follows, self._seen = follows, len(self._transcript.parts)
            self._refresh_chip()
        self._arrange()

    # --- keys and mouse -----------------------------------------------------------------------------------------------

    def on_click(self, event: Click) -> None:
        """Opens what was clicked; the line that says how much is new leads to the end."""
        if self.text_selection is not None:
            return
        if self._chip() and event.y == self.size.height - 1:
            self.action_scroll_end()
            return
        part = self._transcript.find(event.y + self.scroll_offset.y)
        if part is not None and part.active:
            self._current = part
            self.action_open_part()

    def action_scroll_end(self) -> None:
        """To the newest message."""
        self._follows = True
        self._arrange()

    def action_open_part(self) -> None:
        """Opens or closes the part the keyboard is at, or leads to its calls."""
        part = self._current
        if part is None or part not in self._transcript.parts:
            self.action_previous_part()
        elif part.toggle():
            self._transcript.refresh(part)
            self._transcript.take_dirty()
            self._arrange()
            self.refresh()
        elif part.call_ids:
            self.post_message(self.CallsSelected(part.call_ids))

    def action_next_part(self) -> None:
        """To the next part that opens."""
        self._select_part(backwards=False)

    def action_previous_part(self) -> None:
        """To the part before that opens."""
        self._select_part(backwards=True)

    # --- where the reader is ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Flushes what came; stands once nothing comes any more."""
        now = time.monotonic()
        if self._unflushed and now >= self._rest_until:
            self.flush()
            self._rest_until = time.monotonic() + REST_SHARE * (time.monotonic() - now)
        elif not self._unflushed and self._timer is not None:
            self._timer.pause()

    def _arrange(self) -> None:
        """Lays out what is in sight, and keeps the reader at the end or at the same text."""
        rows = self.row_count
        if not self._transcript.width or not rows:
            return
        if self._follows:
            while True:
                total = self._transcript.total
                self._transcript.settle(max(0, total - rows), total)
                if self._transcript.total == total:
                    break
            self._move_to(total)
        else:
            top = self.scroll_offset.y
            shift = self._transcript.settle(top, top + rows)
            self._move_to(top + shift if shift else None)

    def _move_to(self, row: int | None) -> None:
        """Tells the number of rows, and scrolls without further ado; None: stays."""
        self._adjusting = True
        self.set_rows(self._transcript.total)
        if row is not None:
            self.scroll_target_y = self.scroll_y = max(0, min(row, self.max_scroll_y))
        self._adjusting = False

    def _show_row(self, row: int) -> None:
        """Scrolls so that a row is in the upper part of what is in sight."""
        self._follows, self._seen = False, len(self._transcript.parts)
        self.set_rows(self._transcript.total)
        self.scroll_to(y=max(0, row - self.row_count // 3), animate=False)
        self.refresh()

    def _select_part(self, *, backwards: bool) -> None:
        at = self._current if self._current in self._transcript.parts else None
        part = next((part for part in self._transcript.from_part(at, backwards=backwards) if part.active), None)
        if part is not None:
            self._current = part
            row = self._transcript.start(part) + part.gap
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.row_count:
                self._show_row(row)
            self.refresh()

    def _go_to_match(self, *, backwards: bool) -> bool:
        part = self._search.step(backwards=backwards) if self._search is not None else None
        if part is None or self._search is None:
            return False
        if not part.opened:
            part.toggle()
        row = self._search.row()
        self._transcript.refresh(part)
        self._found_row = self._transcript.start(part) + row
        self._show_row(self._found_row)
        return True

    def _chip(self) -> str:
        """How much is new below; empty where the reader sees it."""
        return f" {self.unseen} new ↓ " if self.unseen else ""

    def _refresh_chip(self) -> None:
        self.refresh(Region(0, max(0, self.size.height - 1), self.size.width, 1))


def _pointed_at(line: Line) -> Line:
    """A row of the part the keyboard is at: a mark in the first cell of its margin."""
    if not line.runs or not line.runs[0][0].startswith(" "):
        return line
    (text, style), *others = line.runs
    return Line((("▎", "cursor"), (text[1:], style), *others), line.joint, line.indent, line.fill)
