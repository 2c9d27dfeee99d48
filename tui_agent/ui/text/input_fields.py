"""Text fields for any paste: every character is visible, and the text is exactly what the field shows."""

from typing import ClassVar

from rich.text import Text
from textual.events import Paste
from textual.geometry import Region
from textual.widgets import Input, TextArea

from tui_agent.protocol.visible_text import TYPOGRAPHY

from .code_highlighter import colour_lines
from .line import Run
from .sanitiser import with_escapes

MAX_COLOURED = 5_000
"""Most lines of a text that is highlighted."""
_CODE = ("code-keyword", "code-string", "code-number", "code-type", "code-comment", "code-name")
"""Styles of code."""
_BLANKS = str.maketrans(TYPOGRAPHY)


class InputEditor(TextArea):
    """A text area that never contains an invisible character, with the code in it highlighted."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"input-editor--{name}" for name in _CODE}
    DEFAULT_CSS = """
    InputEditor {
        & .input-editor--code-keyword { color: $accent; }
        & .input-editor--code-string { color: $success; }
        & .input-editor--code-number, & .input-editor--code-type { color: $warning; }
        & .input-editor--code-comment { color: $text-muted; text-style: italic; }
        & .input-editor--code-name { color: $primary; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        self._language = ""
        self._coloured: list[tuple[Run, ...]] | None = None
        super().__init__(id=id, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False)
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False

    def edit_code(self, text: str, language: str) -> None:
        """Load a text in a language that is highlighted; empty for none. The cursor is at the start of the text."""
        self._language = language
        self.load_text(text)

    def load_escaped(self, text: str) -> None:
        """Load a text from outside, with hidden characters made visible."""
        self.load_text(_with_escapes(text))

    def get_line(self, line_index: int) -> Text:
        """Return one line with the colours of its language."""
        line = super().get_line(line_index)
        if not self._language or self.document.line_count > MAX_COLOURED:
            return line
        if self._coloured is None:
            self._coloured = colour_lines(self._language, self.document.lines)
        start = 0
        for text, style in self._coloured[line_index] if line_index < len(self._coloured) else ():
            if style in _CODE:
                line.stylize(
                    self.get_component_rich_style(f"input-editor--{style}", partial=True), start, start + len(text)
                )
            start += len(text)
        return line

    def _build_highlight_map(self) -> None:
        # Textual calls this after each change of the text, undo included.
        self._coloured = None
        super()._build_highlight_map()

    def on_paste(self, event: Paste) -> None:
        """Insert a paste with hidden characters made visible."""
        event.prevent_default()
        event.stop()
        self.insert(_with_escapes(event.text))


class LineInput(Input):
    """A one-line input that accepts pastes of several lines and shows hidden characters."""

    def on_paste(self, event: Paste) -> None:
        """Insert a paste with hidden characters made visible and line ends as blanks."""
        event.prevent_default()
        event.stop()
        self.replace(" ".join(_with_escapes(event.text).split("\n")).replace("\t", " "), *sorted(self.selection))
        self._show_cursor()

    def on_resize(self) -> None:
        """Keep the cursor visible in a narrower field."""
        self._show_cursor()

    def _show_cursor(self) -> None:
        # The field itself shows the beginning of its first text, not the cursor.
        cursor = self.cursor_screen_offset.x - self.content_region.x + self.scroll_offset.x
        self.scroll_to_region(Region(cursor, 0, 1, 1), force=True, animate=False)


def _with_escapes(text: str) -> str:
    """Return a pasted text with escapes for invisible characters, and every blank as a space or a tab."""
    return with_escapes(text.replace("\r\n", "\n").replace("\r", "\n")).translate(_BLANKS)
