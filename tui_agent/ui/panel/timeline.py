"""Timeline of the newest run: lanes of the model and the calls, with overlaps and waits."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer

from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.styled_lines import Run

from .timeline_rows import timeline_rows

TICK = 0.5
"""Seconds between two updates during a run."""

STYLES = ("title", "label", "amount", "model", "waits", "asks", "runs", "failed", "stopped", "steer", "saved")


class Timeline(CoalescedRefresh):
    """Timeline, drawn line by line after each change; its timer runs only during a run."""

    DEFAULT_CSS = """
    Timeline {
        & > .time--title { color: $text; text-style: bold; }
        & > .time--label { color: $text; }
        & > .time--amount { color: $text-muted; }
        & > .time--model { color: $secondary; }
        & > .time--waits { color: $text-disabled; }
        & > .time--asks { color: $warning; }
        & > .time--runs { color: $primary; }
        & > .time--failed { color: $error; }
        & > .time--stopped { color: $text-muted; }
        & > .time--steer { color: $accent; text-style: bold; }
        & > .time--saved { color: $success; }
    }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"time--{name}" for name in STYLES}

    def __init__(self, times: RunTimes, surroundings: TerminalEnvironment, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._surroundings = surroundings
        self._times = times
        self._timer: Timer | None = None
        self._lines: list[tuple[Run, ...]] | None = None
        self._styles: dict[str, Style] = {}

    def on_mount(self) -> None:
        """Create the timer, paused."""
        self._timer = self.set_interval(TICK, self._redraw, pause=True)

    def show(self, times: RunTimes) -> None:
        """Show the times of another run."""
        self._times = times
        self.changed()

    def settle(self) -> None:
        """Draw the lanes, and start or pause the timer."""
        if self._timer is not None:
            (self._timer.resume if self._times.in_progress else self._timer.pause)()
        self._redraw()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of the widget."""
        if self._lines is None:
            self._lines = timeline_rows(self._times, self._surroundings.clock(), self.size.width, self.size.height)
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line of the widget."""
        width, base = self.size.width, self.rich_style
        runs = self._lines[y] if self._lines is not None and y < len(self._lines) else ()
        segments = [Segment(text, base + self._style(name) if name else base) for text, name in runs if text]
        return Strip(segments).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        """Drop cached colours after a change of theme."""
        super().notify_style_update()
        self._styles.clear()

    def on_resize(self, event: Resize) -> None:
        """Lay out the lanes for the new size."""
        self._redraw()

    def _redraw(self) -> None:
        self._lines = None
        self.refresh()

    def _style(self, name: str) -> Style:
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self.get_component_rich_style(f"time--{name}", partial=True)
        return found
