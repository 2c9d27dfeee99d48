"""The newest run in two rows: when the model answered, and when calls ran, failed or waited for the user."""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.row_strips import RowStrips
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.run_times import Lane, RunTimes, SpanKind
from tui_agent.ui.text.line import Run

from .time_bars import lane_bars, length_of

TICK = 0.5
"""Seconds between two updates during a run."""
STYLES = ("label", "model", "waits", "asks", "runs", "failed", "stopped", "steer")

_LABEL_ROOM = 7
"""Cells before the bars."""
_ABOVE: tuple[SpanKind, ...] = ("waits", "trial", "runs", "stopped", "failed", "asks")
"""Kinds of spans of calls; where several calls have one, the later kind is drawn."""
_SCALES = (2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1_200, 1_800, 2_700, 3_600)
"""Seconds that the width stands for during a run: fixed steps, so that bars grow instead of shrinking all the time."""


class TimeStrip(CoalescedRefresh, RowStrips):
    """The strip, drawn after each change; its timer runs only during a run."""

    DEFAULT_CSS = """
    TimeStrip {
        height: 3;
        pointer: pointer;
        & > .time--label { color: $text-muted; }
        & > .time--model { color: $secondary; }
        & > .time--waits { color: $text-disabled; }
        & > .time--asks { color: $warning; }
        & > .time--runs { color: $primary; }
        & > .time--failed { color: $error; }
        & > .time--stopped { color: $text-muted; }
        & > .time--steer { color: $accent; text-style: bold; }
    }
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"time--{name}" for name in STYLES}

    class Opened(Message):
        """The user opens the timeline, which has a lane for each call."""

    def __init__(self, times: RunTimes, surroundings: TerminalEnvironment) -> None:
        super().__init__(id="times")
        self._surroundings = surroundings
        self._times = times
        self._timer: Timer | None = None
        self._styles: dict[str, Style] = {}

    def on_mount(self) -> None:
        """Create the timer, paused."""
        self._timer = self.set_interval(TICK, self.refresh, pause=True)

    def show(self, times: RunTimes) -> None:
        """Show the times of another run."""
        self._times = times
        self.changed()

    def settle(self) -> None:
        """Draw the strip, and start or pause the timer."""
        if self._timer is not None:
            (self._timer.resume if self._times.in_progress else self._timer.pause)()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return one line of the widget."""
        width, base = self.size.width, self._style()
        runs = strip_row(self._times, y, self._surroundings.clock(), width)
        segments = [Segment(text, base + self._style(name) if name else base) for text, name in runs if text]
        return Strip(segments).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        """Drop cached colours after a change of theme."""
        super().notify_style_update()
        self._styles.clear()

    def on_click(self) -> None:
        """Open the timeline."""
        self.post_message(self.Opened())

    def _style(self, name: str = "") -> Style:
        found = self._styles.get(name)
        if found is None:
            found = self.get_component_rich_style(f"time--{name}", partial=True) if name else self.rich_style
            self._styles[name] = found
        return found


def strip_row(times: RunTimes, row: int, now: float, width: int) -> Sequence[Run]:
    """Return the model's bar or the bar of all calls, below an empty row; nothing before the first run."""
    if times.started is None or row not in (1, 2) or (row == 2 and not times.calls):
        return ()
    label, lane = ("model", times.model) if row == 1 else ("tools", _all_calls(times))
    length = length_of(times, now)
    span = length or 0.001
    if times.ended is None:
        span = next((float(scale) for scale in _SCALES if scale >= length), length * 1.25)
    bars = lane_bars(lane, times, now, times.started, span, max(1, width - _LABEL_ROOM - 1))
    return ((f" {label:<{_LABEL_ROOM - 1}}", "label"), *bars)


def _all_calls(times: RunTimes) -> Lane:
    """Return one lane with the spans of all calls; those that matter more are drawn last."""
    spans = [span for lane in times.calls.values() for span in lane.spans]
    return Lane(sorted(spans, key=lambda span: _ABOVE.index(span.kind)))
