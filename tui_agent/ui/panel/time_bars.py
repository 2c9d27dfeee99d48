"""Lanes over time as rows of text, the part of the time that they show, and the strip of the newest run."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from tui_agent.ui.base.commands import command
from tui_agent.ui.base.steady_widgets import CoalescedRefresh, RowStrips
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.run_times import Lane, RunTimes, SpanKind
from tui_agent.ui.text.line import Run

SHORTEST = 0.1
"""Least seconds that the width stands for."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A part of the run."""

    start: float = 0.0
    """Seconds from the start of the run."""
    span: float = 0.0
    """Seconds; 0 for the whole run."""
    follows: bool = True
    """True if it ends at the present moment."""

    def seen(self, length: float) -> tuple[float, float]:
        """Return the first second and the number of seconds to show of a run of this length."""
        whole = max(length, SHORTEST)
        span = min(self.span, whole) if self.span else whole
        start = whole - span if self.follows else min(max(0.0, self.start), whole - span)
        return start, span

    def zoomed(self, factor: float, length: float) -> "TimeWindow":
        """Return a window that shows `factor` times as much, with the same middle unless it follows."""
        start, span = self.seen(length)
        wanted = max(SHORTEST, span * factor)
        # The whole run grows; a window of its present length would not.
        if wanted >= max(length, SHORTEST):
            return TimeWindow(follows=self.follows)
        return replace(self, start=start + (span - wanted) / 2, span=wanted)

    def panned(self, steps: int, length: float) -> "TimeWindow":
        """Return a window that is moved by quarters; it no longer follows, unless it reaches the end."""
        start, span = self.seen(length)
        moved = min(max(0.0, start + steps * span / 4), max(length, SHORTEST) - span)
        at_end = steps > 0 and moved + span >= length
        return TimeWindow(moved, span, follows=at_end)


_PAIRS = (("zoom_in", "zoom_out", "zoom"), ("pan_left", "pan_right", "move"))


def pair_keys() -> list[tuple[str, str]]:
    """Return the keys that zoom and pan, two at a time, each with its text."""
    return [
        (f"{command(f'timeline.{one}').key_text} {command(f'timeline.{other}').key_text}", text)
        for one, other, text in _PAIRS
    ]


class WindowKeys:
    """Mixin of a page with the actions of the keys that choose the part of the time."""

    window = TimeWindow()
    """The part of the time that is shown."""

    @property
    @abstractmethod
    def length(self) -> float:
        """Seconds from the start to the end or to now."""

    @abstractmethod
    def show_window(self) -> None:
        """Show what depends on the window and on the time."""

    def action_zoom(self, factor: float) -> None:
        """Show less or more time."""
        self._use(self.window.zoomed(factor, self.length))

    def action_pan(self, steps: int) -> None:
        """Show an earlier or a later part."""
        self._use(self.window.panned(steps, self.length))

    def action_whole(self) -> None:
        """Show the whole time."""
        self._use(TimeWindow())

    def action_follow(self) -> None:
        """Keep the present moment in sight."""
        start, span = self.window.seen(self.length)
        self._use(TimeWindow(start, span if self.window.span else 0.0))

    def _use(self, window: TimeWindow) -> None:
        self.window = window
        self.show_window()


def length_of(times: RunTimes, now: float) -> float:
    """Return the seconds of the run so far, or of the whole run once it has ended; 0 before the first run."""
    return 0.0 if times.started is None else max(0.0, (now if times.ended is None else times.ended) - times.started)


_BARS: dict[SpanKind, tuple[str, str]] = {
    "model": ("▆", "model"),
    "waits": ("·", "waits"),
    "asks": ("░", "asks"),
    "runs": ("▆", "runs"),
    "trial": ("▄", "runs"),
    "failed": ("▚", "failed"),
    "stopped": ("▒", "stopped"),
}


def lane_bars(lane: Lane, times: RunTimes, now: float, start: float, span: float, columns: int) -> list[Run]:
    """Return the bars of a lane in `columns` cells, and on the model's lane the marks of steering messages.

    The cells show `span` seconds from `start` on; `start` and `now` are seconds on the clock of the events.
    """
    cells: list[tuple[str, str]] = [(" ", "")] * columns
    for stretch in lane.spans:
        end = stretch.end if stretch.end is not None else now
        if end < start or stretch.start > start + span:
            continue
        sign = _BARS[stretch.kind]
        first = min(columns - 1, max(0, int((stretch.start - start) / span * columns)))
        # The shortest call is one cell wide.
        last = min(columns - 1, max(first, int((end - start) / span * columns)))
        for column in range(first, last + 1):
            cells[column] = sign
    if lane is times.model:
        for at in times.steers:
            if start <= at <= start + span:
                cells[min(columns - 1, int((at - start) / span * columns))] = ("▼", "steer")
    return merged(cells)


def merged(cells: Sequence[tuple[str, str]]) -> list[Run]:
    """Merge neighbours of the same style."""
    runs: list[Run] = []
    for text, style in cells:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        else:
            runs.append((text, style))
    return runs


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

    STYLE_PREFIX = "time--"
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"time--{name}" for name in STYLES}

    class Opened(Message):
        """The user opens the timeline, which has a lane for each call."""

    def __init__(self, times: RunTimes, surroundings: TerminalEnvironment) -> None:
        super().__init__(id="times")
        self._surroundings = surroundings
        self._times = times
        self._timer: Timer | None = None

    def on_mount(self) -> None:
        self._timer = self.set_interval(TICK, self.refresh, pause=True)

    def show(self, times: RunTimes) -> None:
        self._times = times
        self.changed()

    def settle(self) -> None:
        """Draw the strip, and start or pause the timer."""
        if self._timer is not None:
            (self._timer.resume if self._times.in_progress else self._timer.pause)()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        return self.strip_of(strip_row(self._times, y, self._surroundings.clock(), self.size.width))

    def on_click(self) -> None:
        self.post_message(self.Opened())


def strip_row(times: RunTimes, row: int, now: float, width: int) -> Sequence[Run]:
    """Return the model's bar or the bar of all calls, below an empty row; nothing before the first run."""
    if times.started is None or row not in (1, 2) or (row == 2 and not times.calls):
        return ()
    label, lane = ("model", times.model) if row == 1 else ("tools", _all_calls(times))
    length = length_of(times, now)
    # A run that has just begun has no length.
    span = length or 0.001
    if times.ended is None:
        span = next((float(scale) for scale in _SCALES if scale >= length), length * 1.25)
    bars = lane_bars(lane, times, now, times.started, span, max(1, width - _LABEL_ROOM - 1))
    return ((f" {label:<{_LABEL_ROOM - 1}}", "label"), *bars)


def _all_calls(times: RunTimes) -> Lane:
    """Return one lane with the spans of all calls; those that matter more are drawn last."""
    spans = [span for lane in times.calls.values() for span in lane.spans]
    return Lane(sorted(spans, key=lambda span: _ABOVE.index(span.kind)))
