"""Choice of parts in a transcript: a cursor that keys and the mouse move, to open parts and to copy them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from textual.events import Click
from textual.message import Message

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.messages import ImageBlock
from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.ui.text.styled_lines import folded

from .transcript_model import Part, Piece, Transcript
from .transcript_view import TranscriptView


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
        self._number = (self._number + (-1 if backwards else 1)) % (count + 1)
        return count > 0

    @property
    def piece(self) -> Piece | None:
        """The chosen piece; None if the whole part is chosen."""
        pieces = self._pieces() if self._number else ()
        return pieces[self._number - 1] if 0 < self._number <= len(pieces) else None

    @property
    def image(self) -> ImageBlock | None:
        """Image of the part."""
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
            return piece.rows(width) if piece.rows is not None else folded([(sanitise(piece.text), "")], width)
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
            self._key = (part, self._number, width, part.opened, part.height(width))
        return self._known


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
