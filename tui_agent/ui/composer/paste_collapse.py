"""A text area that collapses a long paste into a short label and shows invisible characters as escapes.

The cursor moves over a label or an escape, and deletes it, as a whole. The text is sent with both resolved.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import getters, on
from textual.document._document import EditResult, Location
from textual.document._edit import Edit
from textual.events import Key, Paste
from textual.widgets import TextArea

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.visible_text import escape_of
from tui_agent.ui.base.app_type import any_app, show_typed
from tui_agent.ui.text.sanitiser import with_escapes

COLLAPSED_LINES = 8
"""Lines from which a paste is collapsed."""
COLLAPSED_CHARACTERS = 1_500
"""Characters from which a paste is collapsed."""
ESCAPE_SIGN = "\ue05c"
"""Replaces the backslash of an escape in the composer, so that a typed `\\x1b` is not an escape. This private character
becomes an escape itself if it is pasted."""

_ESCAPE = re.compile(rf"{ESCAPE_SIGN}(x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U[0-9a-f]{{8}})")
_ESCAPE_CLASS = "paste-area--escape"


def escape_hidden(text: str) -> str:
    """Return a text for the composer, with escapes for its invisible characters."""
    return with_escapes(text, _signed)


def unescape_hidden(text: str) -> str:
    """Undo `escape_hidden`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1][1:], 16)), text) if ESCAPE_SIGN in text else text


def render_escapes(line: str) -> str:
    """Return a line of the composer as it is drawn, of the same length."""
    return line.replace(ESCAPE_SIGN, "\\")


def escape_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each escape in a line of the composer."""
    if ESCAPE_SIGN in line:
        yield from (match.span() for match in _ESCAPE.finditer(line))


def _signed(character: str) -> str:
    return ESCAPE_SIGN + escape_of(character)[1:]


class PasteLabels:
    """The pastes of one draft by label; deleting a label deletes its paste."""

    def __init__(self) -> None:
        self._pastes: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """Return a label in place of a long paste; return a short paste unchanged."""
        lines = text.count("\n") + 1
        if lines < COLLAPSED_LINES and len(text) < COLLAPSED_CHARACTERS:
            return text
        size = count_text(lines, "line") if lines > 1 else count_text(len(text), "character")
        label = f"[pasted {size}]"
        number = 1
        # The label is the key of the paste, so two of one size need two labels.
        while label in self._pastes and self._pastes[label] != text:
            number += 1
            label = f"[pasted {size} #{number}]"
        self._pastes[label] = text
        return label

    def keep(self, label: str) -> None:
        """Treat a label as a whole that stands for itself."""
        self._pastes[label] = label

    def expand(self, draft: str) -> str:
        """Return the draft with its labels replaced by the pastes."""
        if not self._pastes:
            return draft
        return self._pattern().sub(lambda match: self._pastes[match[0]], draft)

    def labels(self, line: str) -> tuple[re.Match[str], ...]:
        """Return the labels in one line of the draft."""
        return tuple(self._pattern().finditer(line)) if self._pastes else ()

    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(label) for label in self._pastes))


class CollapsingPasteArea(TextArea):
    """A text area for prompts: `text` is shown, `draft` is sent."""

    app = getters.app(any_app)
    COMPONENT_CLASSES: ClassVar[set[str]] = {_ESCAPE_CLASS}

    def __init__(self, placeholder: str) -> None:
        self._kept_styles: dict[tuple[str, ...], Style] = {}
        super().__init__(
            placeholder=placeholder, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False
        )
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False
        self._labels = PasteLabels()

    @property
    def draft(self) -> str:
        """The text with its labels and escapes resolved."""
        return self._labels.expand(unescape_hidden(self.text))

    @property
    def rows(self) -> Sequence[str]:
        """The lines of the text, with labels and escapes."""
        return self.document.lines

    @property
    def selected_text(self) -> str:
        """The selected text, for the clipboard, without escapes."""
        return unescape_hidden(super().selected_text)

    def show(self, text: str) -> None:
        """Replace the text, and put the cursor at its end."""
        self._show_as_is(escape_hidden(self._labels.collapse(text)))

    def _show_as_is(self, text: str) -> None:
        """Show a text that already has its labels and escapes."""
        self.load_text(text)
        self.move_cursor(self.document.end)
        self.scroll_cursor_visible()

    def replace_draft(self, text: str) -> None:
        """Replace the text by another one, expanded; undo returns the earlier text."""
        self.change(text, (0, 0), self.document.end)

    def forget_selection(self) -> None:
        """Clear the selection; the cursor stays."""
        self.move_cursor(self.cursor_location)

    def put_back(self, text: str) -> None:
        """Insert a text in front of the draft."""
        collapsed = escape_hidden(self._labels.collapse(text))
        self._show_as_is(f"{collapsed}\n{self.text}" if self.text.strip() else collapsed)

    def edit(self, edit: Edit) -> EditResult:
        """Change the text: inserted text gets its escapes, and an escape is removed as a whole."""
        # Keys, pastes and this program change the text through here.
        edit.text = escape_hidden(edit.text)
        start, end = edit.top, edit.bottom
        edit.from_location, edit.to_location = self._outside(start, after=start == end), self._outside(end, after=True)
        result = super().edit(edit)
        show_typed(self)
        # A cut puts it on the clipboard, which gets the characters themselves.
        return replace(result, replaced_text=unescape_hidden(result.replaced_text))

    def get_line(self, line_index: int) -> Text:
        """Return a line as it is drawn."""
        line = self.document.get_line(line_index)
        drawn = Text(render_escapes(line), end="", no_wrap=True)
        style = self.get_component_rich_style(_ESCAPE_CLASS)
        for start, end in escape_spans(line):
            drawn.stylize(style, start, end)
        return drawn

    def get_component_rich_style(self, *names: str, partial: bool = False, default: Style | None = None) -> Style:
        """Return the style of a component, which Textual computes for each frame anew."""
        if partial or default is not None:
            return super().get_component_rich_style(*names, partial=partial, default=default)
        style = self._kept_styles.get(names)
        if style is None:
            style = self._kept_styles[names] = super().get_component_rich_style(*names)
        return style

    @property
    def rich_style(self) -> Style:
        """The style of the text, which Textual computes for each frame anew."""
        style = self._kept_styles.get(())
        if style is None:
            style = self._kept_styles[()] = super().rich_style
        return style

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._kept_styles.clear()

    async def on_key(self, event: Key) -> None:
        """Run this widget's bindings."""
        # Run by the app, a key such as Enter would overtake the letters before it that are still in our queue.
        for binding in self._bindings.key_to_bindings.get(event.key, ()):
            if await self.app.run_action(binding.action, self):
                event.stop()
                event.prevent_default()
                return

    def on_paste(self, event: Paste) -> None:
        """Insert a paste, collapsed if it is long."""
        event.prevent_default()
        event.stop()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self.change(self._labels.collapse(text), *sorted(self.selection))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable expanding while the cursor touches a label."""
        if action == "unfold":
            return self._label_at_cursor() is not None
        return super().check_action(action, parameters)

    def action_unfold(self) -> None:
        """Replace the label under the cursor by its paste."""
        if (found := self._label_at_cursor()) is not None:
            row, label = found
            self.change(self._labels.expand(label[0]), (row, label.start()), (row, label.end()))

    def action_delete_left(self) -> None:
        """Delete to the left; a label or an escape as a whole."""
        if not self._delete_whole(behind_cursor=False):
            super().action_delete_left()

    def action_delete_right(self) -> None:
        """Delete to the right; a label or an escape as a whole."""
        if not self._delete_whole(behind_cursor=True):
            super().action_delete_right()

    @on(TextArea.SelectionChanged)
    def _snap_cursor(self, event: TextArea.SelectionChanged) -> None:
        """Move the cursor out of labels and escapes."""
        event.stop()  # Each key would cost four more messages.
        row, column = self.cursor_location
        for start, end in self._atomic_spans(row) if self.selection.is_empty else ():
            if start < column < end:
                self.move_cursor((row, _edge(start, end, column)))

    def change(self, text: str, start: Location, end: Location) -> None:
        """Replace a part of the text, and put the cursor behind it."""
        self.move_cursor(self.replace(text, start, end).end_location)
        self.scroll_cursor_visible()

    def _atomic_spans(self, row: int) -> list[tuple[int, int]]:
        """Return start and end of each label and escape in a row."""
        line = self.document.get_line(row)
        return [*(label.span() for label in self._labels.labels(line)), *escape_spans(line)]

    def _outside(self, place: Location, *, after: bool) -> Location:
        """Return the location, or the edge of the escape around it."""
        row, column = place
        # Cutting the last line ends at the start of the line below it, which does not exist.
        line = self.document.get_line(row) if row < self.document.line_count else ""
        for start, end in escape_spans(line):
            if start < column < end:
                return row, end if after else start
        return place

    def _label_at_cursor(self) -> tuple[int, re.Match[str]] | None:
        """Return row and label at the cursor, or None."""
        row, column = self.cursor_location
        for label in self._labels.labels(self.document.get_line(row)):
            if label.start() <= column <= label.end():
                return row, label
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
    """Return the column for a cursor inside a label: one step from an edge leads to the other, else the nearer edge."""
    if column == start + 1:
        return end
    if column == end - 1:
        return start
    return start if column - start < end - column else end
