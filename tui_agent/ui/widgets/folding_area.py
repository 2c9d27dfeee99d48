"""A text area in which a long paste is one short label that moves, goes and unfolds as a whole."""

import re

from textual import getters, on
from textual.events import Key, Paste
from textual.widgets import TextArea

from tui_agent.ui.folded_paste import FoldedSpan, PasteFolder
from tui_agent.ui.hosting import any_app

_ACTING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""Characters a terminal acts on, or that hide or reorder others: not taken over from a paste that is shown."""


class FoldingArea(TextArea):
    """A text area for prompts: `text` is what is seen, `draft` what is meant."""

    app = getters.app(any_app)

    def __init__(self, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(
            placeholder=placeholder, id=id, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False
        )
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False
        self._folder = PasteFolder()

    @property
    def draft(self) -> str:
        """The text with its pastes whole."""
        return self._folder.unfold(self.text)

    def show(self, text: str) -> None:
        """Puts a text in the place of what is there, the cursor at its end."""
        self.load_text(self._folder.fold(text))
        self.move_cursor(self.document.end)
        self.scroll_cursor_visible()

    def forget_selection(self) -> None:
        """Selects nothing; the cursor stays."""
        self.move_cursor(self.cursor_location)

    def put_back(self, text: str) -> None:
        """Puts a text in front of whatever is being written."""
        folded = self._folder.fold(text)
        self.show(f"{folded}\n{self.text}" if self.text.strip() else folded)

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
        folded = self._folder.fold(text)
        self._insert(folded if folded != text else _ACTING.sub("", text), *sorted(self.selection))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Unfolding is offered where there is something to unfold."""
        if action == "unfold":
            return self._label_at_cursor() is not None
        return super().check_action(action, parameters)

    def action_unfold(self) -> None:
        """Shows the paste under the cursor in full."""
        if (found := self._label_at_cursor()) is not None:
            row, span = found
            text = _ACTING.sub("", self._folder.text_of(span.label))
            self._insert(text, (row, span.start), (row, span.end))

    def action_delete_left(self) -> None:
        """Deletes to the left; a folded paste goes as a whole."""
        if not self._delete_label(behind_cursor=False):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Deletes to the right; a folded paste goes as a whole."""
        if not self._delete_label(behind_cursor=True):
            super().action_delete_right()

    @on(TextArea.SelectionChanged)
    def _keep_out_of_labels(self) -> None:
        """The cursor never stands inside a label: half of one would mean nothing."""
        row, column = self.cursor_location
        for span in self._folder.spans(self.document.get_line(row)) if self.selection.is_empty else ():
            if span.start < column < span.end:
                self.move_cursor((row, _edge(span, column)))

    def _insert(self, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        self.move_cursor(self.replace(text, start, end).end_location)
        self.scroll_cursor_visible()

    def _label_at_cursor(self) -> tuple[int, FoldedSpan] | None:
        """Row and label the cursor touches."""
        row, column = self.cursor_location
        for span in self._folder.spans(self.document.get_line(row)):
            if span.start <= column <= span.end:
                return row, span
        return None

    def _delete_label(self, *, behind_cursor: bool) -> bool:
        """Deletes the label that begins (or ends) at the cursor; False where there is none."""
        found = self._label_at_cursor() if self.selection.is_empty else None
        if found is None:
            return False
        row, span = found
        if self.cursor_location[1] != (span.start if behind_cursor else span.end):
            return False
        self.delete((row, span.start), (row, span.end))
        return True


def _edge(span: FoldedSpan, column: int) -> int:
    """Where a cursor inside a label goes: a step from one edge leads to the other, anything else to the nearer one."""
    if column == span.start + 1:
        return span.end
    if column == span.end - 1:
        return span.start
    return span.start if column - span.start < span.end - column else span.end
