"""The timeline of all workers as a page, with zoom and panning; live while the fleet runs."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.panel.time_window import TimeWindow
from tui_agent.ui.text.amounts import seconds_text
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_page import RowsPage
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.styled_lines import clipped

from .fleet_state import FleetState
from .worker_timeline import LEGEND, lane_rows, lanes_of

TICK = 1.0
"""Seconds between two updates while the fleet runs."""
_ALL = 100_000
"""More lanes than any fleet has."""


class WorkersScreen(RowsPage[None]):
    """The page."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("timeline")]
    DEFAULT_CSS = """
    WorkersScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #workers-lanes { height: 1fr; min-height: 1; overflow-y: scroll; }
    }
    """

    def __init__(self, state: FleetState, now: Callable[[], int]) -> None:
        """Create the page; `now` returns milliseconds since the epoch."""
        super().__init__()
        self._state = state
        self._now = now
        self.window = TimeWindow()
        """The part of the time that is shown."""
        self._lanes = RowsView(self._lane_rows, id="workers-lanes")
        self._head = RowsView(self._head_rows, id="workers-head")
        self._legend = RowsView(lambda width: [Line(clipped(LEGEND, width))], id="workers-legend")
        self._keys = RowsView(_key_rows, id="workers-keys")

    def compose(self) -> ComposeResult:
        """Yield the time that is shown, the lanes, the legend and the keys."""
        with Vertical() as page:
            page.border_title = Content(" Workers ")
            for view in (self._head, self._lanes, self._legend, self._keys):
                view.can_focus = False
                yield view

    def on_mount(self) -> None:
        """Follow the fleet."""
        self.set_interval(TICK, self._tick)

    @property
    def paged(self) -> RowsView:
        """The lanes, which the paging keys move."""
        return self._lanes

    def action_zoom(self, factor: float) -> None:
        """Show less or more time."""
        self._use(self.window.zoomed(factor, self._length))

    def action_pan(self, steps: int) -> None:
        """Show an earlier or a later part."""
        self._use(self.window.panned(steps, self._length))

    def action_whole(self) -> None:
        """Show the whole time."""
        self._use(TimeWindow())

    def action_follow(self) -> None:
        """Keep the present moment in sight."""
        start, span = self.window.seen(self._length)
        self._use(TimeWindow(start, span if self.window.span else 0.0))

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    @property
    def _length(self) -> float:
        return max(1.0, (self._state.end(self._now()) - self._state.started) / 1000)

    def _use(self, window: TimeWindow) -> None:
        self.window = window
        self._show()

    def _tick(self) -> None:
        if self._state.running:
            self._show()

    def _show(self) -> None:
        self._head.show(self._head_rows)
        self._lanes.show(self._lane_rows)

    def _head_rows(self, width: int) -> Sequence[Line]:
        start, span = self.window.seen(self._length)
        text = f"{seconds_text(start, tenths=False)} – {seconds_text(start + span, tenths=False)}"
        return [Line(clipped([(text, "muted")], width))]

    def _lane_rows(self, width: int) -> Sequence[Line]:
        now, (start, span) = self._now(), self.window.seen(self._length)
        begin = self._state.started + round(start * 1000)
        lanes = lanes_of(self._state.rows.values())
        return lane_rows(lanes, begin, begin + round(span * 1000), now, width, _ALL)


def _key_rows(width: int) -> Sequence[Line]:
    pairs = (("zoom_in", "zoom_out", "zoom"), ("pan_left", "pan_right", "move"))
    texts = [
        f"{command(f'timeline.{one}').key_text} {command(f'timeline.{other}').key_text} {text}"
        for one, other, text in pairs
    ]
    texts += [hint("timeline.whole", "whole time"), hint("timeline.follow"), hint("timeline.close")]
    return [Line(clipped([(" · ".join(texts), "muted")], width))]
