"""A text area in which a long paste is one short label that moves, goes and unfolds as a whole.

A character that cannot be seen is an escape, over which the cursor moves and which is deleted as a whole, too.
"""

from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual import getters, on
from textual.document._document import EditResult, Location
from textual.document._edit import Edit
from textual.events import Key, Paste
from textual.widgets import TextArea

from tui_agent.ui.base.app_type import any_app

from .folded_paste import FoldedSpan, PasteFolder, escape_hidden, escape_spans, render_escapes, unescape_hidden

_ESCAPE_CLASS = "folding-area--escape"


class PasteFoldingArea(TextArea):
    """A text area for prompts: `text` is what is seen, `draft` what is meant."""

    app = getters.app(any_app)
    COMPONENT_CLASSES: ClassVar[set[str]] = {_ESCAPE_CLASS}

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(
            placeholder=placeholder, id=id, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False
        )
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False
        self._folder = PasteFolder()

    @property
    def draft(self) -> str:
        """The text with its pastes whole, and with the characters that it shows as escapes."""
        return self._folder.unfold(unescape_hidden(self.text))

    @property
    def selected_text(self) -> str:
        """The selected text, for the clipboard, without escapes."""
        return unescape_hidden(super().selected_text)

    def show(self, text: str) -> None:
        """Puts a text in the place of what is there, the cursor at its end."""
        self._show_as_is(escape_hidden(self._folder.fold(text)))

    def _show_as_is(self, text: str) -> None:
        """Show a text that already has its labels and escapes."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.scroll_cursor_visible()

    def forget_selection(self) -> None:
        """Selects nothing; the cursor stays."""
        self.move_cursor(self.cursor_location)

    def put_back(self, text: str) -> None:
        """Puts a text in front of whatever is being written."""
        folded = escape_hidden(self._folder.fold(text))
        self._show_as_is(f"{folded}\n{self.text}" if self.text.strip() else folded)

    def edit(self, edit: Edit) -> EditResult:
        """Change the text: inserted text gets its escapes, and an escape is removed as a whole."""
        edit.text = escape_hidden(edit.text)
        start, end = edit.top, edit.bottom
        edit.from_location, edit.to_location = self._outside(start, after=start == end), self._outside(end, after=True)
        result = super().edit(edit)
        return replace(result, replaced_text=unescape_hidden(result.replaced_text))

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn."""
        line = self.document.get_line(line_index)
        drawn = Text(render_escapes(line), end="", no_wrap=True)
        style = self.get_component_rich_style(_ESCAPE_CLASS)
        for start, end in escape_spans(line):
            drawn.stylize(style, start, end)
        return drawn

    async def on_key(self, event: Key) -> None:
        """Runs the keys of this widget here, in the order they were typed.

        Left to the app, a key such as Enter would overtake the letters before it that still wait in our queue.
        """
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    def on_paste(self, event: Paste) -> None:
        """Takes a paste: as it is where it is short, folded where it is long."""
        event.prevent_default()
        event.stop()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self._insert(self._folder.fold(text), *sorted(self.selection))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Unfolding is offered where there is something to unfold."""
        if action == "unfold":
            return self._label_at_cursor() is not None
        return super().check_action(action, parameters)

    def action_unfold(self) -> None:
        """Shows the paste under the cursor in full."""
        if (found := self._label_at_cursor()) is not None:
            row, span = found
            self._insert(self._folder.text_of(span.label), (row, span.start), (row, span.end))

    def action_delete_left(self) -> None:
        """Delete to the left; a folded paste and an escape go as a whole."""
        if not self._delete_whole(behind_cursor=False):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Delete to the right; a folded paste and an escape go as a whole."""
        if not self._delete_whole(behind_cursor=True):
            super().action_delete_right()

    @on(TextArea.SelectionChanged)
    def _snap_cursor(self) -> None:
        """Move the cursor out of labels and escapes: half of one would mean nothing."""
        row, column = self.cursor_location
        for start, end in self._atomic_spans(row) if self.selection.is_empty else ():
            if start < column < end:
                self.move_cursor((row, _edge(start, end, column)))

    def _insert(self, text: str, start: Location, end: Location) -> None:
        self.move_cursor(self.replace(text, start, end).end_location)
        self.scroll_cursor_visible()

    def _atomic_spans(self, row: int) -> list[tuple[int, int]]:
        """Return start and end of each label and escape in a row."""
        line = self.document.get_line(row)
        return [*((span.start, span.end) for span in self._folder.spans(line)), *escape_spans(line)]

    def _outside(self, place: Location, *, after: bool) -> Location:
        """Return the place, or the edge of the escape around it."""
        row, column = place
        # Cutting the last line asks for the start of the line below it, which does not exist.
        line = self.document.get_line(row) if row < self.document.line_count else ""
        for start, end in escape_spans(line):
            if start < column < end:
                return row, end if after else start
        return place

    def _label_at_cursor(self) -> tuple[int, FoldedSpan] | None:
        """Row and label the cursor touches."""
        row, column = self.cursor_location
        for span in self._folder.spans(self.document.get_line(row)):
            if span.start <= column <= span.end:
                return row, span
        return None

    def _delete_whole(self, *, behind_cursor: bool) -> bool:
        """Delete the label or escape that begins (or ends) at the cursor; return False if there is none."""
        row, column = self.cursor_location
        for start, end in self._atomic_spans(row) if self.selection.is_empty else ():
            if column == (start if behind_cursor else end):
                self.delete((row, start), (row, end))
                return True
        return False


def _edge(start: int, end: int, column: int) -> int:
    """Where a cursor inside a label goes: a step from one edge leads to the other, anything else to the nearer one."""
    if column == start + 1:
        return end
    if column == end - 1:
        return start
    return start if column - start < end - column else end
