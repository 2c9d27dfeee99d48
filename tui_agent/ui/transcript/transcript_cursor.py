"""Keys and mouse in a transcript: they scroll it, choose its parts, open them and copy them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from textual.events import Click
from textual.message import Message

from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.text.line import Line

from .part_cursor import PartCursor
from .transcript_model import Transcript
from .transcript_view import TranscriptView


class TranscriptWithCursor(TranscriptView):
    """A transcript with the keyboard's part, which is marked while the transcript has the focus."""

    FOCUS_ON_CLICK = False

    @dataclass
    class CallsSelected(Message, namespace="conversation"):
        """The user opens these calls in the panel."""

        call_ids: tuple[str, ...]

    @dataclass
    class PageRequested(Message, namespace="conversation"):
        """The user opens a part in full screen, or a piece of it."""

        call_ids: tuple[str, ...]
        """Calls of the part; empty for a piece."""
        title: str
        text: str
        """Text to copy."""
        rows: Callable[[int], Sequence[Line]] = field(repr=False)
        image: ImageBlock | None = field(default=None, repr=False)
        """Image of the part."""

    def __init__(self, transcript: Transcript, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(transcript, id=id)
        self.cursor = PartCursor(transcript)
        """The keyboard's part."""

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

    # --- scrolling ----------------------------------------------------------------------------------------------------

    def action_line_up(self) -> None:
        """Scroll up one row."""
        self.scroll_relative(y=-1, animate=False)

    def action_line_down(self) -> None:
        """Scroll down one row."""
        self.scroll_relative(y=1, animate=False)

    def action_page_up(self) -> None:
        """Scroll up one page."""
        self.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """Scroll down one page."""
        self.scroll_page_down(animate=False)

    def action_scroll_top(self) -> None:
        """Scroll to the first message."""
        self.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """Scroll to the newest message."""
        self.show_end()

    # --- the keyboard's part ------------------------------------------------------------------------------------------

    def action_part_up(self) -> None:
        """Choose the part above, or scroll to the beginning of one that is higher than the view."""
        self._choose(backwards=True)

    def action_part_down(self) -> None:
        """Choose the part below, or scroll to the end of one that is higher than the view."""
        self._choose(backwards=False)

    def action_previous_part(self) -> None:
        """Choose the previous part that opens."""
        self._choose(backwards=True, opens=True)

    def action_next_part(self) -> None:
        """Choose the next part that opens."""
        self._choose(backwards=False, opens=True)

    def action_previous_piece(self) -> None:
        """Choose the previous piece of the part, such as a code block."""
        self._choose_piece(backwards=True)

    def action_next_piece(self) -> None:
        """Choose the next piece of the part, such as a code block."""
        self._choose_piece(backwards=False)

    def action_open_part(self) -> None:
        """Open or close the keyboard's part, or show its calls in the panel."""
        part = self.cursor.part
        if part is None:
            self.action_previous_part()
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
            calls = part.call_ids if self.cursor.piece is None else ()
            cursor = self.cursor
            self.post_message(
                self.PageRequested(calls, cursor.label, cursor.text, cursor.page_rows, image=cursor.image)
            )

    def action_copy(self) -> None:
        """Copy what is chosen."""
        if text := self.cursor.text:
            copy_text(self.app, text)

    def _choose(self, *, backwards: bool, opens: bool = False) -> None:
        """Choose another part, but first scroll through one that is higher than the view."""
        part = self.cursor.part
        if part is not None and not opens:
            first = self.transcript.start(part)
            last, top = first + part.height(self.transcript.width), self.scroll_offset.y
            if first < top < last if backwards else first < top + self.row_count < last:
                self.scroll_relative(y=-1 if backwards else 1, animate=False)
                return
        if self.cursor.step(backwards=backwards, opens=opens):
            self._show_chosen()

    def _choose_piece(self, *, backwards: bool) -> None:
        if self.cursor.step_piece(backwards=backwards):
            self._show_chosen()

    def _show_chosen(self) -> None:
        """Scroll to what is chosen if it is out of sight."""
        part = self.cursor.part
        if part is not None:
            row = self.transcript.start(part) + self.cursor.first_row
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.row_count - 1:
                self.show_row(row)
            self.refresh()
