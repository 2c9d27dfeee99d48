"""The timeline of all workers as a page, with zoom and panning; live while the fleet runs."""

from collections.abc import Callable, Sequence

from tui_agent.protocol.amounts import seconds_text
from tui_agent.ui.panel.timeline_screen import TimelinePage
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.styled_lines import clipped

from .fleet_state import FleetState
from .worker_timeline import LEGEND, lane_rows, lanes_of

TICK = 1.0
"""Seconds between two updates while the fleet runs."""
_ALL = 100_000
"""More lanes than any fleet has."""


class WorkersScreen(TimelinePage):
    """The page."""

    def __init__(self, state: FleetState, now: Callable[[], int]) -> None:
        """Create the page; `now` returns milliseconds since the epoch."""
        super().__init__("Workers", RowsView(self._lane_rows, id="workers-lanes"), whole="whole time")
        self._state = state
        self._now = now
        self._head = RowsView(self._head_rows, id="workers-head")
        self._legend = RowsView(lambda width: [Line(clipped(LEGEND, width))], id="workers-legend")

    def on_mount(self) -> None:
        """Follow the fleet."""
        self.set_interval(TICK, self._tick)

    @property
    def views(self) -> Sequence[RowsView]:
        """The time that is shown, the lanes and the legend."""
        return self._head, self._lanes, self._legend

    @property
    def length(self) -> float:
        """Seconds from the start of the fleet to its end or to now."""
        return max(1.0, (self._state.end(self._now()) - self._state.started) / 1000)

    def _tick(self) -> None:
        if self._state.running:
            self.show_window()

    def show_window(self) -> None:
        """Show the time and the lanes."""
        self._head.show(self._head_rows)
        self._lanes.show(self._lane_rows)

    def _head_rows(self, width: int) -> Sequence[Line]:
        start, span = self.window.seen(self.length)
        text = f"{seconds_text(start, tenths=False)} – {seconds_text(start + span, tenths=False)}"
        return [Line(clipped([(text, "muted")], width))]

    def _lane_rows(self, width: int) -> Sequence[Line]:
        now, (start, span) = self._now(), self.window.seen(self.length)
        begin = self._state.started + round(start * 1000)
        lanes = lanes_of(self._state.rows.values())
        return lane_rows(lanes, begin, begin + round(span * 1000), now, width, _ALL)
