"""Timeline of the newest run: lanes of the model and the calls, with overlaps and waits, and the shown part of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollLeft, MouseScrollRight, MouseScrollUp, Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer

from tui_agent.protocol.amounts import seconds_text
from tui_agent.ui.base.coalesced_refresh import CoalescedRefresh
from tui_agent.ui.base.row_strips import RowStrips
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import PLACE_MARKS
from tui_agent.ui.state.run_times import Lane, RunTimes, SpanKind, Totals
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
        if wanted >= max(length, SHORTEST):
            return TimeWindow(follows=self.follows)
        return replace(self, start=start + (span - wanted) / 2, span=wanted)

    def panned(self, steps: int, length: float) -> "TimeWindow":
        """Return a window that is moved by quarters; it no longer follows, unless it reaches the end."""
        start, span = self.seen(length)
        moved = min(max(0.0, start + steps * span / 4), max(length, SHORTEST) - span)
        at_end = steps > 0 and moved + span >= length
        return TimeWindow(moved, span, follows=at_end)


def length_of(times: RunTimes, now: float) -> float:
    """Return the seconds of the run so far."""
    return 0.0 if times.started is None else max(0.0, (now if times.ended is None else times.ended) - times.started)


TICK = 0.5
"""Seconds between two updates during a run."""

LEAST_SAVED = 1.0
"""Seconds below which overlapping calls saved nothing worth a word."""
STYLES = ("title", "label", "amount", "model", "waits", "asks", "runs", "failed", "stopped", "steer", "saved")

LABEL_ROOM = 7
"""Cells before the lanes."""

_BARS: dict[SpanKind, tuple[str, str]] = {
    "model": ("▆", "model"),
    "waits": ("·", "waits"),
    "asks": ("░", "asks"),
    "runs": ("▆", "runs"),
    "trial": ("▄", "runs"),
    "failed": ("▚", "failed"),
    "stopped": ("▒", "stopped"),
}
"""Character and style of each kind of span."""

_SCALES = (2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 450, 600, 900, 1_200, 1_800, 2_700, 3_600)
"""Seconds that the width stands for during a run: fixed steps, so that bars grow instead of shrinking all the time."""


class Timeline(CoalescedRefresh, RowStrips):
    """Timeline, drawn line by line after each change; its timer runs only during a run."""

    DEFAULT_CSS = """
    Timeline {
        height: 0;
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

    class Opened(Message):
        """The user opens the timeline as a page."""

    def __init__(
        self,
        times: RunTimes,
        ledger: CallLedger,
        surroundings: TerminalEnvironment,
        *,
        id: str | None = None,  # noqa: A002
    ) -> None:
        super().__init__(id=id)
        self._surroundings = surroundings
        self._times = times
        self._ledger = ledger
        self._timer: Timer | None = None
        self._lines: list[Strip] | None = None
        self._styles: dict[str, Style] = {}
        self._height = 0
        self._shown_run: float | None = None
        self.window = TimeWindow()
        """The part of the run that is shown; the whole of each new run at first."""

    def on_mount(self) -> None:
        """Create the timer, paused."""
        self._timer = self.set_interval(TICK, self._redraw, pause=True)

    def show(self, times: RunTimes, ledger: CallLedger) -> None:
        """Show the times of another run, and the numbers of another ledger."""
        self._times, self._ledger = times, ledger
        self.changed()

    def settle(self) -> None:
        """Draw the lanes, be as tall as they are, and start or pause the timer."""
        if self._shown_run != self._times.started:
            self._shown_run, self.window = self._times.started, TimeWindow()
        if self._timer is not None:
            (self._timer.resume if self._times.in_progress else self._timer.pause)()
        height, shown = timeline_height(self._times, self.size.width), self.size.height
        # If even fewer lanes do not fit, another one must not lay out the whole screen.
        if height != self._height and not shown < min(height, self._height):
            self._height = self.styles.height = height
        self._redraw()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the lines of the widget."""
        if self._lines is None:
            (width, height), base = self.size, self.rich_style
            now = self._surroundings.clock()
            rows = timeline_rows(self._times, self._ledger, now, width, height, self.window)
            rows += [()] * (height - len(rows))
            self._lines = [self._strip(runs, width, base) for runs in rows]
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        """Return one line of the widget."""
        if self._lines is None or y >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        return self._lines[y]

    def _strip(self, runs: Sequence[Run], width: int, base: Style) -> Strip:
        segments = [Segment(text, base + self._style(name) if name else base) for text, name in runs if text]
        return Strip(segments).adjust_cell_length(width, base)

    def notify_style_update(self) -> None:
        """Drop cached colours after a change of theme."""
        super().notify_style_update()
        self._styles.clear()
        self._lines = None

    def on_click(self, event: Click) -> None:
        """Open the timeline as a page."""
        event.stop()
        self.post_message(self.Opened())

    def zoom(self, factor: float) -> None:
        """Show less or more time."""
        self.window = self.window.zoomed(factor, self._length)
        self._redraw()

    def pan(self, steps: int) -> None:
        """Show an earlier or a later part."""
        if steps and self.window.span:
            self.window = self.window.panned(steps, self._length)
            self._redraw()

    @property
    def _length(self) -> float:
        return length_of(self._times, self._surroundings.clock())

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Zoom in."""
        event.stop()
        self.zoom(0.5)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Zoom out."""
        event.stop()
        self.zoom(2.0)

    def on_mouse_scroll_left(self, event: MouseScrollLeft) -> None:
        """Show an earlier part."""
        event.stop()
        self.pan(-1)

    def on_mouse_scroll_right(self, event: MouseScrollRight) -> None:
        """Show a later part."""
        event.stop()
        self.pan(1)

    def on_resize(self, event: Resize) -> None:
        """Lay out the lanes for the new size, which may have room for more, or need fewer rows for the totals."""
        self.settle()

    def _redraw(self) -> None:
        self._lines = None
        self.refresh()

    def _style(self, name: str) -> Style:
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self.get_component_rich_style(f"time--{name}", partial=True)
        return found


def timeline_height(times: RunTimes, width: int) -> int:
    """Return the number of rows of all lanes; 0 before the first run."""
    return 0 if times.started is None else 2 + len(times.calls) + len(_totals(times, width))


def timeline_rows(
    times: RunTimes, ledger: CallLedger, now: float, width: int, height: int, window: TimeWindow
) -> list[tuple[Run, ...]]:
    """Return all rows: heading, model, as many calls as fit, and after the run its totals."""
    if height < 1:
        return []
    length = length_of(times, now)
    start, span = window.seen(length) if window.span else (0.0, _span(length, exact=times.ended is not None))
    shown = f"{seconds_text(start)} – {seconds_text(start + span)} of " if window.span else ""
    rows = [_heading(times, f"{shown}{seconds_text(length, tenths=False)}", width)]
    if times.started is None:
        return rows
    totals = _totals(times, width)
    room = height - 2 - len(totals)
    chosen = _chosen(list(times.calls.items()), room)
    lanes = [("model", times.model), *((_number_of(call_id, ledger), lane) for call_id, lane in chosen)]
    columns = max(1, width - LABEL_ROOM - 1)
    rows += [
        ((f" {label:<{LABEL_ROOM - 1}}", "label"), *lane_bars(lane, times, now, times.started + start, span, columns))
        for label, lane in lanes
    ]
    return [*rows, *totals][:height]


def _heading(times: RunTimes, seconds: str, width: int) -> tuple[Run, ...]:
    title = " TIMELINE"
    clock = seconds if times.started is not None else ""
    return ((title, "title"), (" " * max(1, width - len(title) - len(clock) - 1), ""), (clock, "amount"))


def _span(seconds: float, *, exact: bool) -> float:
    """Return the seconds that the width stands for."""
    if exact:
        return max(seconds, 0.001)
    return next((float(scale) for scale in _SCALES if scale >= seconds), seconds * 1.25)


def _number_of(call_id: str, ledger: CallLedger) -> str:
    call = ledger.find(call_id)
    return f"#{call.number}" if call is not None else ""


def _chosen(lanes: Sequence[tuple[str, Lane]], room: int) -> list[tuple[str, Lane]]:
    """Return the calls that get a lane: open ones first, then the newest, in their order."""
    if room < 1:
        return []
    if len(lanes) <= room:
        return list(lanes)
    in_progress = [call_id for call_id, lane in lanes if lane.open][-room:]
    over = [call_id for call_id, lane in lanes if not lane.open]
    kept = {*in_progress, *over[len(over) - (room - len(in_progress)) :]}
    return [(call_id, lane) for call_id, lane in lanes if call_id in kept]


def lane_bars(lane: Lane, times: RunTimes, now: float, start: float, span: float, columns: int) -> list[Run]:
    """Return the bars of a lane, and on the model's lane the marks of steering messages.

    Args:
        lane: the lane.
        times: the times it belongs to.
        now: the present time, until which open spans last.
        start: the time of the first column.
        span: seconds that the columns stand for.
        columns: cells.
    """
    cells: list[tuple[str, str]] = [(" ", "")] * columns
    for stretch in lane.spans:
        end = stretch.end if stretch.end is not None else now
        if end < start or stretch.start > start + span:
            continue
        sign = _BARS[stretch.kind]
        first = min(columns - 1, max(0, int((stretch.start - start) / span * columns)))
        last = min(columns - 1, max(first, int((end - start) / span * columns)))
        for column in range(first, last + 1):
            cells[column] = sign
        if stretch.kind == "trial" and last - first > len(PLACE_MARKS["trial"]):
            for column, letter in enumerate(PLACE_MARKS["trial"], first + 1):
                cells[column] = (letter, "runs")
    if lane is times.model:
        for at in times.steers:
            if start <= at <= start + span:
                cells[min(columns - 1, int((at - start) / span * columns))] = ("▼", "steer")
    return _merged(cells)


def _merged(cells: Sequence[tuple[str, str]]) -> list[Run]:
    """Merge neighbours of the same style."""
    runs: list[Run] = []
    for text, style in cells:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        else:
            runs.append((text, style))
    return runs


def _totals(times: RunTimes, width: int) -> list[tuple[Run, ...]]:
    """Return the totals of a finished run, on two rows if one is too narrow."""
    totals = times.totals()
    if totals is None:
        return []
    parts = total_parts(totals)
    rows: list[list[Run]] = [[(" ", "")]]
    used = 1
    for word, amount, style in parts:
        size = len(word) + len(amount) + 2
        if used + size > width and used > 1:
            rows.append([(" ", "")])
            used = 1
        rows[-1] += [(word, "amount"), (f"{amount}  ", style or "label")]
        used += size
    return [tuple(row) for row in rows]


def total_parts(totals: Totals) -> list[tuple[str, str, str]]:
    """Return word, amount and style of each total that says something."""
    parts: list[tuple[str, str, str]] = [
        ("model ", seconds_text(totals.model), ""),
        ("tools ", seconds_text(totals.tools), ""),
        ("saved ", seconds_text(totals.saved), "saved") if totals.saved >= LEAST_SAVED else ("", "", ""),
        ("you ", seconds_text(totals.person), "asks") if totals.person >= 0.05 else ("", "", ""),
    ]
    return [part for part in parts if part[0]]
