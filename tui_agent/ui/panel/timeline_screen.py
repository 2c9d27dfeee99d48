"""The timeline as a page: all lanes of the newest run, with zoom, panning, a legend and totals; live during the run."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import seconds_text
from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import PLACE_MARKS
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import clipped, width_of_runs, wrapped

from .timeline import TICK, TimeWindow, lane_bars, length_of, total_parts

_NAMED = 60
"""Cells from which a lane has the name of its call."""
_FRAME = 4
"""Cells of a row beside its text: border and padding."""
_LEAST_TICK = 12
"""Least cells between two marks of the time."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 36_000)
"""Seconds between two marks of the time."""

_STYLES = {
    "label": "",
    "amount": "muted",
    "model": "muted",
    "waits": "line-number",
    "asks": "warning",
    "runs": "cursor",
    "failed": "error",
    "stopped": "muted",
    "steer": "steer",
    "saved": "success",
}
"""Styles of rows by those of the small timeline."""

LEGEND = (
    ("▆", "muted", "model"),
    ("▆", "cursor", "runs"),
    ("·", "line-number", "waits"),
    ("░", "warning", "waits for you"),
    ("▚", "error", "failed"),
    ("▒", "muted", "cancelled"),
    ("▼", "steer", "message"),
)
"""Sign, style and meaning of everything in a lane."""


def label_room(width: int) -> int:
    """Return the cells before the bars."""
    return min(30, width // 3) if width >= _NAMED else 7


def head_rows(times: RunTimes, window: TimeWindow, now: float, width: int) -> list[Line]:
    """Return the marks of the time and the model's lane."""
    start, span = window.seen(length_of(times, now))
    room = label_room(width)
    columns = max(1, width - room)
    cells = [" "] * columns
    step = next((step for step in _STEPS if step / span * columns >= _LEAST_TICK), _STEPS[-1])
    mark = int(start / step) * step
    while mark <= start + span:
        column, text = int((mark - start) / span * columns), f"╷{_mark_text(mark)}"
        if column >= 0 and column + len(text) <= columns:
            cells[column : column + len(text)] = text
        mark += step
    axis: list[Run] = [(" " * room, ""), ("".join(cells), "muted")]
    return [Line(clipped(axis, width)), _lane_row("model", times, "", window, now, width)]


def lane_rows(times: RunTimes, ledger: CallLedger, window: TimeWindow, now: float, width: int) -> list[Line]:
    """Return the lane of every call of the run, oldest first."""
    rows: list[Line] = []
    for call_id in times.calls:
        call = ledger.find(call_id)
        number = f"#{call.number}" if call is not None else ""
        label = number
        if call is not None and width >= _NAMED:
            mark = PLACE_MARKS.get(call.view.changes.trial.place)
            label = f"{number} {call.view.name} {f'{mark}: ' if mark else ''}{call.view.summary}"
        rows.append(_lane_row(label, times, call_id, window, now, width))
    return rows


def summary_rows(times: RunTimes, window: TimeWindow, now: float, width: int) -> list[Line]:
    """Return the totals of a finished run, or the time so far; then the part that is shown."""
    length = length_of(times, now)
    start, span = window.seen(length)
    totals = times.totals()
    runs: list[Run] = [("total ", "muted"), (seconds_text(length, tenths=totals is not None), "strong")]
    for word, amount, style in total_parts(totals) if totals is not None else ():
        runs += [(f"  {word}", "muted"), (amount, _STYLES.get(style, ""))]
    if span < length:
        runs += [("  shown ", "muted"), (f"{seconds_text(start)} – {seconds_text(start + span)}", "")]
    if times.in_progress:
        runs.append(("  follows" if window.follows else "  stands still", "muted"))
    return wrapped(runs, width)


def legend_rows(width: int) -> list[Line]:
    """Return the meaning of each sign, in as many rows as it needs."""
    rows: list[list[Run]] = [[]]
    for sign, style, meaning in LEGEND:
        if rows[-1] and width_of_runs(rows[-1]) + len(meaning) + 4 > width:
            rows.append([])
        rows[-1] += [("  " * bool(rows[-1]), ""), (sign, style), (f" {meaning}", "muted")]
    return [Line(clipped(row, width)) for row in rows]


def _lane_row(label: str, times: RunTimes, call_id: str, window: TimeWindow, now: float, width: int) -> Line:
    start, span = window.seen(length_of(times, now))
    room = label_room(width)
    lane = times.calls[call_id] if call_id else times.model
    bars = lane_bars(lane, times, now, (times.started or 0.0) + start, span, max(1, width - room))
    shown = one_line(label, room - 1)
    runs: Sequence[Run] = [(f"{shown:<{room}}", ""), *((text, _STYLES.get(style, "")) for text, style in bars)]
    return Line(clipped(runs, width))


def _mark_text(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else seconds_text(seconds)


_PAIRS = (("zoom_in", "zoom_out", "zoom"), ("pan_left", "pan_right", "move"))


class TimelinePage(RowsPage[None]):
    """A page of lanes over time, with zoom and panning; a class below it makes its views."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("timeline")]
    DEFAULT_CSS = """
    TimelinePage {
        & RowsView { height: 1; overflow: hidden; }
        & .timeline-lanes { height: 1fr; min-height: 1; overflow-y: scroll; }
    }
    """

    def __init__(self, title: str, lanes: RowsView, *, whole: str | None = None) -> None:
        """Create the page.

        Args:
            title: title in the frame.
            lanes: the rows that the paging keys move.
            whole: name of the whole time in the row of keys; None: that of the command.
        """
        super().__init__()
        self._title, self._whole = title, whole
        self.window = TimeWindow()
        """The part of the time that is shown."""
        self._lanes = lanes
        lanes.add_class("timeline-lanes")
        self._keys = RowsView(self._key_rows, id="timeline-keys")

    @property
    @abstractmethod
    def length(self) -> float:
        """Seconds from the start to the end or to now."""

    @property
    @abstractmethod
    def views(self) -> Sequence[RowsView]:
        """The rows above the keys, from the top."""

    @abstractmethod
    def show_window(self) -> None:
        """Show what depends on the window and on the time."""

    def compose(self) -> ComposeResult:
        """Yield the rows and the keys."""
        with Vertical() as page:
            page.border_title = Content(f" {self._title} ")
            for view in (*self.views, self._keys):
                view.can_focus = False
                yield view

    @property
    def paged(self) -> RowsView:
        """The lanes, which the paging keys move."""
        return self._lanes

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

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def _use(self, window: TimeWindow) -> None:
        self.window = window
        self.show_window()

    def _key_rows(self, width: int) -> Sequence[Line]:
        pairs = [
            f"{command(f'timeline.{one}').key_text} {command(f'timeline.{other}').key_text} {text}"
            for one, other, text in _PAIRS
        ]
        others = [hint("timeline.whole", self._whole), hint("timeline.follow"), hint("timeline.close")]
        return [Line(clipped([(" · ".join((*pairs, *others)), "muted")], width))]


class TimelineScreen(TimelinePage):
    """The page."""

    DEFAULT_CSS = """
    TimelineScreen {
        & #timeline-head { height: 2; }
    }
    """

    def __init__(
        self, times: Callable[[], RunTimes], ledger: Callable[[], CallLedger], clock: Callable[[], float]
    ) -> None:
        """Create the page.

        Args:
            times: returns the times of the newest run.
            ledger: returns the session's calls.
            clock: monotonic seconds.
        """
        super().__init__("Timeline", RowsView(self._lane_rows, id="timeline-lanes"))
        self._times = times
        self._ledger = ledger
        self._clock = clock
        self._head = RowsView(self._head_rows, id="timeline-head")
        self._summary = RowsView(self._summary_rows, id="timeline-summary")
        self._legend = RowsView(legend_rows, id="timeline-legend")

    def on_resize(self) -> None:
        """Give the legend the rows that it needs."""
        self._legend.styles.height = len(legend_rows(max(1, self.size.width - _FRAME)))

    def on_mount(self) -> None:
        """Follow the run."""
        self.set_interval(TICK, self._tick)

    @property
    def views(self) -> Sequence[RowsView]:
        """The model's lane, those of the calls, the totals and the legend."""
        return self._head, self._lanes, self._summary, self._legend

    @property
    def length(self) -> float:
        """Seconds of the run so far."""
        return length_of(self._times(), self._clock())

    def _tick(self) -> None:
        if self._times().in_progress or self._lanes.total != len(self._times().calls):
            self.show_window()

    def show_window(self) -> None:
        """Show the model's lane, those of the calls and the totals; stay at the end of the lanes."""
        at_end = self._lanes.rows_below == 0 and self._lanes.scroll_offset.y > 0
        self._head.show(self._head_rows)
        self._lanes.show(self._lane_rows)
        self._summary.show(self._summary_rows)
        if at_end:
            self._lanes.scroll_end(animate=False, immediate=True)

    def _head_rows(self, width: int) -> Sequence[Line]:
        # The scrollbar beside the lanes takes cells, and both must have the same scale.
        shared = min(width, self._lanes.row_width or width)
        return head_rows(self._times(), self.window, self._clock(), shared)

    def _lane_rows(self, width: int) -> Sequence[Line]:
        return lane_rows(self._times(), self._ledger(), self.window, self._clock(), width)

    def _summary_rows(self, width: int) -> Sequence[Line]:
        return summary_rows(self._times(), self.window, self._clock(), width)[:1]
