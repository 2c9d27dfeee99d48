"""The timeline as a page: a lane for each call of the newest run, with zoom, panning, a legend and totals; live."""

from collections.abc import Callable, Iterable, Sequence

from textual.events import Resize
from textual.widget import Widget

from tui_agent.protocol.amounts import seconds_text
from tui_agent.ui.panel.time_bars import TICK, TimeWindow, WindowKeys, lane_bars, length_of, pair_keys
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.call_view_state import PLACE_MARKS, CallViewState
from tui_agent.ui.state.run_times import LEAST_SAVED, RunTimes
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.sanitiser import one_line
from tui_agent.ui.text.styled_lines import clipped, width_of_runs, wrapped

from .list_page import ListPage

_NAMED = 60
"""Cells from which a lane has the name of its call."""
_FRAME = 4
"""Cells of a row beside its text: border and padding."""
_LEAST_TICK = 12
"""Least cells between two marks of the time."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 36_000)
"""Seconds between two marks of the time."""

_STYLES = {
    "model": "muted",
    "waits": "line-number",
    "asks": "warning",
    "runs": "cursor",
    "failed": "error",
    "stopped": "muted",
    "steer": "steer",
}
"""Styles of rows by those of the lanes."""
_LEAST_WAITED = 0.05
"""Seconds below which the user answered at once."""

LEGEND = (
    ("▆", "muted", "model"),
    ("▆", "cursor", "runs"),
    ("▄", "cursor", "in a trial"),
    ("·", "line-number", "waits"),
    ("░", "warning", "waits for you"),
    ("▚", "error", "failed"),
    ("▒", "muted", "cancelled"),
    ("▼", "steer", "message"),
)
"""Sign, style and meaning of everything in a lane."""


def label_room(width: int) -> int:
    """Return the cells before the bars."""
    return min(32, width // 3) if width >= _NAMED else 9


def head_rows(times: RunTimes, window: TimeWindow, now: float, width: int) -> list[Line]:
    """Return the marks of the time and the model's lane."""
    start, span = window.seen(length_of(times, now))
    room = label_room(width)
    columns = max(1, width - room)
    cells = [" "] * columns
    step = next((step for step in _STEPS if step / span * columns >= _LEAST_TICK), _STEPS[-1])
    # At multiples of the step, so that marks move with the bars.
    mark = int(start / step) * step
    while mark <= start + span:
        column, text = int((mark - start) / span * columns), f"╷{_mark_text(mark)}"
        if column >= 0 and column + len(text) <= columns:
            cells[column : column + len(text)] = text
        mark += step
    axis: list[Run] = [(" " * room, ""), ("".join(cells), "muted")]
    return [Line(clipped(axis, width)), lane_row("model", times, "", window, now, width)]


def call_label(call_id: str, ledger: CallLedger, *, is_named: bool) -> str:
    """Return number, tool and summary of a call; only its number if there is no room for its name."""
    call = ledger.find(call_id)
    if call is None or not is_named:
        return f"#{call.number}" if call is not None else ""
    mark = PLACE_MARKS.get(call.view.changes.trial.place)
    return f"#{call.number} {call.view.name} {f'{mark}: ' if mark else ''}{call.view.summary}"


def summary_rows(times: RunTimes, window: TimeWindow, now: float, width: int) -> list[Line]:
    """Return the totals of a finished run, or the time so far; then the part that is shown."""
    length = length_of(times, now)
    start, span = window.seen(length)
    totals = times.totals()
    runs: list[Run] = [("total ", "muted"), (seconds_text(length, tenths=totals is not None), "strong")]
    if totals is not None:
        runs += [(" · model ", "muted"), (seconds_text(totals.model), "")]
        runs += [(" · tools ", "muted"), (seconds_text(totals.tools), "")]
        if totals.person >= _LEAST_WAITED:
            runs += [(" · waited for you ", "muted"), (seconds_text(totals.person), "warning")]
        if totals.saved >= LEAST_SAVED:
            runs += [(" · calls at the same time saved ", "muted"), (seconds_text(totals.saved), "success")]
    if span < length:
        runs += [(" · shown ", "muted"), (f"{seconds_text(start)} – {seconds_text(start + span)}", "")]
    if times.in_progress:
        runs.append((" · follows" if window.follows else " · stands still", "muted"))
    return wrapped(runs, width)


def legend_rows(width: int) -> list[Line]:
    """Return the meaning of each sign, in as many rows as it needs."""
    rows: list[list[Run]] = [[]]
    for sign, style, meaning in LEGEND:
        if rows[-1] and width_of_runs(rows[-1]) + len(meaning) + 4 > width:
            rows.append([])
        rows[-1] += [("  " * bool(rows[-1]), ""), (sign, style), (f" {meaning}", "muted")]
    return [Line(clipped(row, width)) for row in rows]


def lane_row(
    label: str, times: RunTimes, call_id: str, window: TimeWindow, now: float, width: int, sign: Run = ("  ", "")
) -> Line:
    """Return the lane of a call, or of the model without a `call_id`, after the sign of the cursor and its label."""
    start, span = window.seen(length_of(times, now))
    room = label_room(width)
    lane = times.calls[call_id] if call_id else times.model
    bars = lane_bars(lane, times, now, (times.started or 0.0) + start, span, max(1, width - room))
    shown = one_line(label, room - 3)
    runs: Sequence[Run] = [
        sign,
        (f"{shown:<{room - 2}}", ""),
        *((text, _STYLES.get(style, "")) for text, style in bars),
    ]
    return Line(clipped(runs, width))


def _mark_text(seconds: float) -> str:
    return f"{seconds:g} s" if seconds < 60 else seconds_text(seconds)


class TimelineScreen(WindowKeys, ListPage[str, None]):
    """The page, whose items are the ids of the calls."""

    WHERE = "timeline"
    KEYS = ("open", "whole", "follow", "search", "close")
    DETAIL_ROWS = 0
    # The lanes need the width.
    BESIDE = 10_000
    DEFAULT_CSS = """
    TimelineScreen {
        & .list-rows { overflow-y: scroll; }
    }
    """

    def __init__(
        self,
        times: Callable[[], RunTimes],
        ledger: Callable[[], CallLedger],
        clock: Callable[[], float],
        opened: Callable[[CallViewState], object],
    ) -> None:
        super().__init__("Timeline", clock=clock)
        self._times = times
        self._ledger = ledger
        self._clock = clock
        self._opened = opened
        self._legend = RowsView(legend_rows, id="timeline-legend")
        self._legend.can_focus = False

    def fields(self) -> Iterable[Widget]:
        return (self._legend,)

    def on_resize(self, event: Resize) -> None:
        # Textual calls the handler of `ListPage`, too.
        self._legend.styles.height = len(legend_rows(max(1, event.size.width - _FRAME)))

    def on_mount(self) -> None:
        self.show_window()
        self.set_interval(TICK, self._tick)

    @property
    def length(self) -> float:
        return length_of(self._times(), self._clock())

    def _tick(self) -> None:
        # After the end nothing moves, until another run has other calls.
        if self._times().in_progress or len(self.all_items) != len(self._times().calls):
            self.show_window()

    def show_window(self) -> None:
        """Show the lanes and the totals; stay at the end of the lanes."""
        at_end = self.rows.rows_below == 0 and self.rows.scroll_offset.y > 0
        self.use(tuple(self._times().calls))
        if at_end:
            self.rows.scroll_end(animate=False, immediate=True)

    def action_open(self) -> None:
        """Open the page about the selected call."""
        call = self._ledger().find(self.selected) if self.selected is not None else None
        if call is not None:
            self._opened(call.view)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _shown_heading(self, width: int) -> Sequence[Line]:
        # The lane of the model counts in a low window, too.
        shared = min(width, self.rows.row_width or width)
        return head_rows(self._times(), self.window, self._clock(), shared)

    def item_row(self, item: str, place: int, width: int) -> Line:
        label = call_label(item, self._ledger(), is_named=width >= _NAMED)
        return lane_row(label, self._times(), item, self.window, self._clock(), width, self.cursor_sign(place))

    def search_text(self, item: str) -> str:
        return call_label(item, self._ledger(), is_named=True)

    def summary(self) -> Run:
        return "".join(text for text, _ in summary_rows(self._times(), self.window, self._clock(), 300)[0].runs), ""

    def _state_rows(self, width: int) -> Sequence[Line]:
        if self._message[0]:
            return super()._state_rows(width)
        return summary_rows(self._times(), self.window, self._clock(), width)[:1]

    def key_answers(self) -> list[tuple[str, str, bool]]:
        entries = [self._command(name) for name in self.KEYS]
        return [(keys, text, True) for keys, text in pair_keys()] + [(one.key_text, one.text, True) for one in entries]
