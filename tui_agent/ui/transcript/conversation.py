"""The conversation: one widget that draws rows, so that ten thousand messages scroll and grow like ten.

A timer flushes streamed text at a fixed rate and is paused while nothing changes. The view follows the end while the
user is there; elsewhere it shows how much is new below.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import ClassVar

from textual.binding import BindingType
from textual.events import Click
from textual.message import Message
from textual.timer import Timer

from tui_agent.protocol.events import AgentEvent, SessionRewound, SessionSwitched
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.base.app_type import copy_text
from tui_agent.ui.base.commands import bindings_for, hint
from tui_agent.ui.base.error_boundary import call_or_fallback
from tui_agent.ui.text.line import Line

from .transcript_builder import TranscriptFold
from .transcript_search import Found, TranscriptSearch
from .transcript_view import PartCursor, TranscriptView

FLUSH_SECONDS = 1 / 15
"""Seconds between two flushes while text streams."""
_REST_SECONDS = 0.9 * FLUSH_SECONDS
"""Least seconds between two flushes. An event after that is shown in the frame that its other parts cause."""
CLOCK_SECONDS = 0.5
"""Seconds between two updates of clocks."""
BAR_SECONDS = 0.5
"""Seconds between two updates of the scrollbar while text streams."""
IDLE_SHARE = 4
"""Pause after a slow flush, as a multiple of its duration."""


class Conversation(TranscriptView):
    """All messages, notes and calls of the session."""

    FOCUS_ON_CLICK = False
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("conversation")]

    @dataclass
    class CallsSelected(Message):
        """The user opens these calls in the panel."""

        call_ids: tuple[str, ...]

    @dataclass
    class PageRequested(Message):
        """The user opens a part in full screen, or a piece of it."""

        call_ids: tuple[str, ...]
        """Calls of the part; empty for a piece."""
        title: str
        text: str
        """Text to copy."""
        rows: Callable[[int], Sequence[Line]] = field(repr=False)
        image: ImageBlock | None = field(default=None, repr=False)
        """Image of the part."""

    class SearchCounted(Message):
        """More matches of a search were counted, or another one is the current one: `found` has the numbers."""

    @dataclass
    class SearchClosed(Message):
        """The search has ended."""

    def __init__(self, fold: TranscriptFold, *, clock: Callable[[], float] = monotonic, id: str | None = None) -> None:  # noqa: A002
        """Create the view.

        Args:
            fold: applies each event before the view is refreshed for it.
            clock: monotonic seconds.
        """
        super().__init__(fold.transcript, id=id)
        self.cursor = PartCursor(fold.transcript)
        """The keyboard's part, which is marked while the conversation has the focus."""
        self._fold: TranscriptFold = fold
        self._fold.calls.clock = self._clock = clock
        self._clock_timer: Timer | None = None
        self._unflushed = False
        self._rest_until = self._bar_due = 0.0
        self._timer: Timer | None = None
        self._search: TranscriptSearch | None = None
        self._found_row: int | None = None
        self._seeks = False

    # --- what comes in ------------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Create the flush timer, paused."""
        super().on_mount()
        self._timer = self.set_interval(FLUSH_SECONDS, self._tick, pause=not self._unflushed)
        self._clock_timer = self.set_interval(CLOCK_SECONDS, self._move_clocks, pause=True)

    def refresh_for(self, event: AgentEvent) -> None:
        """Show what an event has changed after the next flush."""
        if isinstance(event, SessionSwitched):
            self._follows = True
        if isinstance(event, SessionRewound | SessionSwitched):
            # Parts may be removed, so the keyboard's part is dropped.
            self._search, self._found_row = None, None
            self.cursor.select(None)
        # After a rest, the first event is in the frame that it causes elsewhere, not in the timer's next one.
        if not self._unflushed and self.is_running and asyncio.get_running_loop().time() >= self._rest_until:
            self.call_later(self._tick)
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._unflushed:
            self._unflushed = True
            # They are paused while nothing changes, so that an idle program never wakes.
            for timer in (self._timer, self._clock_timer):
                if timer is not None:
                    timer.resume()

    def _move_clocks(self) -> None:
        """Show the time of running calls; pause without any."""
        if self._fold.move_clocks():
            self._flush_soon()
        elif self._clock_timer is not None:
            self._clock_timer.pause()

    def schedule_read(self) -> None:
        """Schedule a flush that reads more of a long text."""
        self._flush_soon()

    def show(self, fold: TranscriptFold) -> None:
        """Show another transcript, or a longer one of this session; a reader above the end keeps the distance to it."""
        self.show_transcript(fold.transcript)
        fold.calls.clock = self._clock
        fold.show_alone(self._fold.calls.is_alone)
        if fold.shows_thinking != self._fold.shows_thinking:
            fold.show_thinking(self._fold.shows_thinking)
        self._fold, self._found_row = fold, None
        self.cursor = PartCursor(fold.transcript)
        # Its matches are parts of the transcript that was shown before.
        self._search = TranscriptSearch(self.transcript, self._search.query) if self._search is not None else None
        self._flush_soon()

    def show_alone(self, is_alone: bool) -> None:
        """Show or hide what the panel shows beside the conversation: clocks and sizes of calls."""
        if self._fold.show_alone(is_alone):
            self._flush_soon()

    def show_thinking(self, shown: bool) -> None:
        """Show or collapse all thinking of the model; the text in sight stays."""
        with self.same_place():
            self._fold.show_thinking(shown)
        self._flush_soon()

    def flush(self) -> None:
        """Show all changes now."""
        self._unflushed = False
        self._flush_slice()
        self.show_scrollbar()

    def _flush_slice(self) -> bool:
        """Read and draw a slice of the changes; if there are more, schedule another flush and return True."""
        more = self._fold.flush() or self.read_on()
        # In this order, so that a long text that is being read does not hold up the count.
        more = self._count_on() or more
        self.show_changes()
        if more:
            self._flush_soon()
        return more

    def _tick(self) -> None:
        """Flush; pause the timer if nothing changes any more."""
        # The event loop's time, which tests move.
        loop = asyncio.get_running_loop()
        now = loop.time()
        if not self._unflushed:
            self.show_scrollbar()
            if self._timer is not None:
                self._timer.pause()
        elif now >= self._rest_until:
            self._unflushed = False
            # An exception in the callback of a timer would end the app.
            more = call_or_fallback(self._flush_slice, self.report_fault)
            if now >= self._bar_due:
                self._bar_due = now + BAR_SECONDS
                self.show_scrollbar()
            taken = loop.time() - now
            # Half of the time is left to keys and to the model's text until all of it is read.
            pause = taken if more else max(_REST_SECONDS, IDLE_SHARE * taken)
            self._rest_until = now + taken + pause
            if more:
                loop.call_later(pause, self.call_later, self._tick)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_scroll(self, target: str) -> None:
        """Scroll one row or page, to the top or to the end, as the table of commands names it."""
        # Not animated: each step of an animation would lay out the rows that come into sight.
        match target:
            case "line_up" | "line_down":
                self.scroll_relative(y=-1 if target == "line_up" else 1, animate=False)
            case "page_up":
                self.scroll_page_up(animate=False)
            case "page_down":
                self.scroll_page_down(animate=False)
            case "top":
                self.scroll_home(animate=False)
            case _:
                self.show_end()

    def action_open_part(self) -> None:
        """Open or close the keyboard's part, or show its calls in the panel."""
        part = self.cursor.part
        if part is None:
            self.action_choose(-1, opens=True)
        elif part.toggle():
            self.transcript.refresh(part)
            self.show_changes()
            self.show_scrollbar()
        elif part.image is not None:
            self.action_open_page()
        elif part.call_ids:
            self.post_message(self.CallsSelected(part.call_ids))

    def action_open_page(self) -> None:
        """Open what is chosen in full screen."""
        part = self.cursor.part
        if part is not None:
            # A call has a page of its own, with more than its rows here; a piece is shown as it is.
            calls = part.call_ids if self.cursor.piece is None else ()
            cursor = self.cursor
            self.post_message(
                self.PageRequested(calls, cursor.label, cursor.text, cursor.page_rows, image=cursor.image)
            )

    def action_copy(self) -> None:
        """Copy what is chosen."""
        if text := self.cursor.text:
            copy_text(self.app, text)

    def action_choose(self, by: int, opens: bool = False) -> None:
        """Choose the part above or below, with `opens` the next one that opens.

        One that is higher than the view is scrolled through first.
        """
        part, backwards = self.cursor.part, by < 0
        if part is not None and not opens:
            first = self.transcript.start(part)
            last, top = first + part.height(self.transcript.width), self.scroll_offset.y
            if first < top < last if backwards else first < top + self.row_count < last:
                self.scroll_relative(y=by, animate=False)
                return
        if self.cursor.step(backwards=backwards, opens=opens):
            self._show_chosen()

    def action_choose_piece(self, by: int) -> None:
        """Choose the next or previous piece of the part, such as a code block."""
        if self.cursor.step_piece(backwards=by < 0):
            self._show_chosen()

    def _show_chosen(self) -> None:
        """Scroll to what is chosen if it is out of sight."""
        part = self.cursor.part
        if part is not None:
            row = self.transcript.start(part) + self.cursor.first_row
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.row_count - 1:
                self.show_row(row)
            self.refresh()

    # --- drawing ------------------------------------------------------------------------------------------------------

    def line_at(self, row: int) -> Line | None:
        """Return a row to draw, with marks of matches and of what the keyboard has chosen; None below the last one."""
        line = super().line_at(row)
        if line is None:
            return None
        if self._search is not None:
            line = self._search.marked(line, here=row == self._found_row)
        return self.pointed_at(line, row)

    @property
    def selected_calls(self) -> tuple[str, ...]:
        """Ids of the calls of the keyboard's part."""
        return self.cursor.part.call_ids if self.cursor.part is not None else ()

    @property
    def chip(self) -> str:
        """Name of what is chosen with the keys that act on it, and how much is new below."""
        if not self.has_focus:
            return self.news
        if self.cursor.part is None:
            return f" {hint('conversation.part_up', 'chooses')} {self.news}"
        keys = f"{hint('conversation.copy')} · {hint('conversation.open_page')}"
        whole = f" {self.cursor.label} · {keys} {self.news}"
        return whole if len(whole) < self.row_width else f" {self.cursor.label} {self.news}"

    def pointed_at(self, line: Line, row: int) -> Line:
        """Return a row with a mark in its margin if it is chosen."""
        if not self.has_focus or self.cursor.part is None:
            return line
        part = self.transcript.find(row)
        if part is None or not self.cursor.covers(part, row - self.transcript.start(part)):
            return line
        if not line.runs or not line.runs[0][0].startswith(" "):
            return line  # The mark replaces a blank of the margin, never text.
        (text, style), *others = line.runs
        return replace(line, runs=(("▎", "cursor"), (text[1:], style), *others))

    # --- mouse --------------------------------------------------------------------------------------------------------

    def on_click(self, event: Click) -> None:
        """Open the clicked part; a click on the line with new messages scrolls to the end."""
        if self.text_selection is not None:
            return  # The click is the end of a selection.
        if self.news and event.y == self.size.height - 1:
            self.show_end()
            return
        part = self.transcript.find(event.y + self.scroll_offset.y)
        if part is not None and part.active:
            self.cursor.select(part)
            self.action_open_part()

    # --- search -------------------------------------------------------------------------------------------------------

    @property
    def found(self) -> Found:
        """Result of the search so far."""
        search = self._search
        return Found(search.position, search.count, search.is_counted) if search is not None else Found()

    def search(self, query: str) -> Found:
        """Mark all matches, go to the one nearest to the end, and return their number. An empty query ends it."""
        self._search, self._found_row = (TranscriptSearch(self.transcript, query) if query else None), None
        # From the end: what is searched was mostly said a moment ago.
        self._seeks = not self.previous_match()
        self.refresh()
        self._flush_soon()
        return self.found

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow the keys of a search only while matches are marked."""
        # Without marks their keys belong to other commands.
        if action in ("next_match", "previous_match", "close_search"):
            return self._search is not None
        return super().check_action(action, parameters)

    def action_next_match(self) -> None:
        """Go to the next match."""
        self.next_match()

    def action_previous_match(self) -> None:
        """Go to the previous match."""
        self.previous_match()

    def action_close_search(self) -> None:
        """Remove the marks of the search."""
        self.post_message(self.SearchClosed())

    def _count_on(self) -> bool:
        """Count more matches of a search in a long conversation; return False if all are counted."""
        if self._search is None or not self._search.count_on():
            return False
        if self._seeks:
            self._seeks = not self.previous_match()
        self.post_message(self.SearchCounted())
        return True

    def next_match(self) -> bool:
        """Go to the next match, from the last to the first; return False if there is none."""
        return self._go_to_match(backwards=False)

    def previous_match(self) -> bool:
        """Go to the previous match, from the first to the last; return False if there is none."""
        return self._go_to_match(backwards=True)

    def _go_to_match(self, *, backwards: bool) -> bool:
        part = self._search.step(backwards=backwards) if self._search is not None else None
        if part is None or self._search is None:
            return False
        if not part.opened:
            part.toggle()
        # Where an output or diff is cut, the part shows the rows with the match as well.
        if part.sought != self._search.query:
            part.sought = self._search.query
            part.changed()
        row = self._search.row()
        self.transcript.refresh(part)
        self._found_row = self.transcript.start(part) + row
        self.show_row(self._found_row)
        self.post_message(self.SearchCounted())
        return True
