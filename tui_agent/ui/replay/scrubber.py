"""The row below a recording: it shows the position; clicking or dragging seeks."""

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from .scrubber_row import PlayState, scrubber_row


class Scrubber(Widget):
    """One line, redrawn when its content changes."""

    DEFAULT_CSS = """
    Scrubber {
        height: 1;
        background: $panel;
        & > .scrub--sign { color: $text; }
        & > .scrub--done { color: $primary; }
        & > .scrub--head { color: $accent; text-style: bold; }
        & > .scrub--rest { color: $text-muted; }
        & > .scrub--keys { color: $text-muted; }
    }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"scrub--{name}" for name in ("sign", "done", "head", "rest", "keys")}

    @dataclass
    class Sought(Message):
        """The user seeks another moment."""

        at: float
        """Seconds since the start."""

    def __init__(self, length: float, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.state = PlayState(0.0, length)
        """The state on display."""
        self._held = False

    def show(self, state: PlayState) -> None:
        """Show another state."""
        changed = scrubber_row(self.state, self.size.width) != scrubber_row(state, self.size.width)
        self.state = state
        if changed:
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return the line."""
        width, base = self.size.width, self.rich_style
        row = scrubber_row(self.state, width)
        segments = [
            Segment(text, base + self.get_component_rich_style(f"scrub--{name}", partial=True))
            for text, name in row.runs
            if text
        ]
        return Strip(segments).adjust_cell_length(width, base)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Seek to this position, and follow the mouse until the button is released."""
        self._held = True
        self.capture_mouse()
        self._seek(event.x)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Seek to the position of the drag."""
        if self._held:
            self._seek(event.x)

    def on_mouse_up(self, event: MouseUp) -> None:
        """Stop following the mouse."""
        self._held = False
        self.release_mouse()

    def _seek(self, x: int) -> None:
        row = scrubber_row(self.state, self.size.width)
        self.post_message(self.Sought(row.moment_at(x, self.state.length)))
