"""Text fields for any paste: every character is visible, and the text is exactly what the field shows."""

from textual.events import Paste
from textual.geometry import Region
from textual.widgets import Input, TextArea

from tui_agent.protocol.visible_text import TYPOGRAPHY

from .sanitiser import with_escapes

_BLANKS = str.maketrans(TYPOGRAPHY)


class InputEditor(TextArea):
    """A text area that never contains an invisible character."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False)
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False

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
