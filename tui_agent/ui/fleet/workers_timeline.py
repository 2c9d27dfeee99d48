"""The timeline of all workers as a page, with zoom and panning; live while the fleet runs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import count_text, seconds_text
from tui_agent.protocol.fleet_records import UnitRow, UnitState
from tui_agent.ui.base.commands import bindings_for, hint
from tui_agent.ui.panel.time_bars import WindowKeys, merged, pair_keys
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Paging, RowsPage, RowsView
from tui_agent.ui.text.styled_lines import clipped, width_of_runs

from .fleet_state import FleetState
from .unit_rows import plain_text

_BARS: dict[UnitState, tuple[str, str]] = {
    "done": ("▆", "success"),
    "failed": ("▚", "error"),
    "stopped": ("▒", "muted"),
    "asking": ("░", "warning"),
}
"""Character and style of a unit's last span, or `_RUNS` in other states; an earlier one was stopped, if not lost."""
_RUNS = ("▆", "cursor")
_LOST = ("×", "warning")
_BORDER = ("▏", "muted")

LEGEND: tuple[Run, ...] = (
    *(("▆ ", "cursor"), ("runs  ", "muted"), ("▆ ", "success"), ("done  ", "muted")),
    *(("▚ ", "error"), ("failed  ", "muted"), ("░ ", "warning"), ("needs you  ", "muted")),
    *(("▒ ", "muted"), ("stopped  ", "muted"), ("× ", "warning"), ("lost with its worker", "muted")),
)


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """Time that a unit spent on a worker; milliseconds since the epoch."""

    started: int
    ended: int | None
    """None while it is there."""
    bar: tuple[str, str]
    """Character and style."""


def lanes_of(rows: Iterable[UnitRow]) -> dict[str, list[LaneSpan]]:
    """Return the spans of every worker, by its name."""
    lanes: dict[str, list[LaneSpan]] = {}
    for row in rows:
        last = len(row.spans) - 1
        for number, span in enumerate(row.spans):
            # A unit that left a worker alive was stopped there, whatever became of it later.
            bar = _BARS.get(row.state if number == last else "stopped", _RUNS)
            bar = _LOST if span.lost else bar
            lanes.setdefault(span.worker, []).append(LaneSpan(span.started, span.ended, bar))
    for spans in lanes.values():
        spans.sort(key=lambda span: span.started)
    return dict(sorted(lanes.items(), key=lambda lane: _natural(lane[0])))


def lane_rows(lanes: dict[str, list[LaneSpan]], start: int, end: int, now: int, width: int, most: int) -> list[Line]:
    """Return the lanes of as many workers as fit, and a row for the others; times are milliseconds since the epoch."""
    names = list(lanes)
    kept = names if len(names) <= most else _busiest(lanes, max(1, most - 1))
    # Names of Dask workers are addresses, which would leave no room for the bars.
    label = min(max((len(name) for name in names), default=0), max(6, width // 5))
    rows = [_lane(name, lanes[name], start, end, now, label, width) for name in kept]
    if len(kept) < len(names) and most > 1:
        rows.append(Line(clipped([(f" {count_text(len(names) - len(kept), 'more worker')}", "muted")], width)))
    return rows


def lanes_in_short(state: FleetState, now: int, width: int, most: int) -> list[Line]:
    """Return the time of `most` workers below a heading with its length; nothing without workers.

    Args:
        now: milliseconds since the epoch.
    """
    if not (lanes := lanes_of(state.rows.values())):
        return []
    started, end = state.status.started, state.end(now)
    title, shown = " WORKERS", f"{seconds_text(max(0, end - started) / 1000, tenths=False)} "
    gap = " " * max(1, width - len(title) - len(shown))
    heading = Line(clipped([(title, "strong"), (gap, ""), (shown, "muted")], width))
    return [heading, *lane_rows(lanes, started, end, now, width, most)]


def _busiest(lanes: dict[str, list[LaneSpan]], count: int) -> list[str]:
    """Return the workers with a unit now, then those with the latest end, in the order of the lanes."""
    # A span that has not ended is later than any that has.
    latest = {name: max(span.ended or 2**60 for span in spans) for name, spans in lanes.items()}
    chosen = set(sorted(lanes, key=lambda name: -latest[name])[:count])
    return [name for name in lanes if name in chosen]


def _lane(name: str, spans: Sequence[LaneSpan], start: int, end: int, now: int, label: int, width: int) -> Line:
    columns, length = max(1, width - label - 3), max(1, end - start)
    cells: list[tuple[str, str]] = [(" ", "")] * columns
    before = -1
    for span in spans:
        until = span.ended if span.ended is not None else now
        if until < start or span.started > end:
            continue
        first = min(columns - 1, max(0, (span.started - start) * columns // length))
        last = min(columns - 1, max(first, (until - start) * columns // length - 1))
        cells[first : last + 1] = [span.bar] * (last + 1 - first)
        if first == before + 1 and first < last and before >= 0:
            # Two units of one state in a row would look like one.
            cells[first] = _BORDER
        before = last
    shown = plain_text(name, label)
    name = f" {shown}{' ' * (label - width_of_runs([(shown, '')]))} "
    return Line(clipped([(name, ""), *merged(cells)], width))


def _natural(name: str) -> tuple[int, str]:
    """Return a key that puts `w2` before `w10`."""
    return len(name), name


TICK = 1.0
"""Seconds between two updates while the fleet runs."""
_ALL = 100_000
"""More lanes than any fleet has."""


class WorkersScreen(WindowKeys, RowsPage[None]):
    """The page."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("list"), *bindings_for("timeline")]
    DEFAULT_CSS = """
    WorkersScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #workers-lanes { height: 1fr; min-height: 1; overflow-y: scroll; }
    }
    """

    # The keys of a list scroll: no lane has a page of its own.
    action_cursor_up, action_cursor_down = Paging.action_line_up, Paging.action_line_down
    action_first, action_last = Paging.action_scroll_top, Paging.action_scroll_end

    def __init__(self, state: FleetState, now: Callable[[], int]) -> None:
        """Create the page; `now` returns milliseconds since the epoch."""
        super().__init__()
        self._state = state
        self._now = now
        self._head = RowsView(self._head_rows, id="workers-head")
        self._lanes = RowsView(self._lane_rows, id="workers-lanes")
        self._legend = RowsView(lambda width: [Line(clipped(LEGEND, width))], id="workers-legend")
        self._keys = RowsView(self._key_rows, id="workers-keys")

    def compose(self) -> ComposeResult:
        with Vertical() as page:
            page.border_title = Content(" Workers ")
            for view in (self._head, self._lanes, self._legend, self._keys):
                view.can_focus = False
                yield view

    def on_mount(self) -> None:
        self.set_interval(TICK, self._tick)

    @property
    def paged(self) -> RowsView:
        return self._lanes

    def action_close(self) -> None:
        self.dismiss(None)

    @property
    def length(self) -> float:
        return max(1.0, (self._state.end(self._now()) - self._state.status.started) / 1000)

    def _tick(self) -> None:
        # Without a driver no span grows any more.
        if self._state.running:
            self.show_window()

    def show_window(self) -> None:
        self._head.show(self._head_rows)
        self._lanes.show(self._lane_rows)

    def _head_rows(self, width: int) -> Sequence[Line]:
        start, span = self.window.seen(self.length)
        text = f"{seconds_text(start, tenths=False)} – {seconds_text(start + span, tenths=False)}"
        return [Line(clipped([(text, "muted")], width))]

    def _lane_rows(self, width: int) -> Sequence[Line]:
        now, (start, span) = self._now(), self.window.seen(self.length)
        begin = self._state.status.started + round(start * 1000)
        lanes = lanes_of(self._state.rows.values())
        return lane_rows(lanes, begin, begin + round(span * 1000), now, width, _ALL)

    def _key_rows(self, width: int) -> Sequence[Line]:
        pairs = [f"{keys} {text}" for keys, text in pair_keys()]
        others = [hint("timeline.whole", "whole time"), hint("timeline.follow"), hint("list.close")]
        return [Line(clipped([(" · ".join((*pairs, *others)), "muted")], width))]
