"""A text area for what a call is given: whatever is pasted into it can be seen."""

from textual.events import Paste
from textual.widgets import TextArea

from tui_agent.ui.text import sanitise


class InputEditor(TextArea):
    """Takes no character that a person would not see."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, tab_behavior="focus", show_line_numbers=False, highlight_cursor_line=False)
        # A blinking cursor wakes an idle program twice a second.
        self.cursor_blink = False

    def on_paste(self, event: Paste) -> None:
        """Takes a paste with everything hidden in it made visible."""
        event.prevent_default()
        event.stop()
        self.insert(sanitise(event.text))
