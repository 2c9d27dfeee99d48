"""The timeline as a page: all lanes of the newest run, with zoom, panning, a legend and totals; live during the run."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.state.call_ledger import CallLedger
from tui_agent.ui.state.run_times import RunTimes
from tui_agent.ui.text.rows_page import RowsPage
from tui_agent.ui.text.rows_view import RowsView
from tui_agent.ui.text.styled_lines import Line, clipped

from .timeline import TICK
from .timeline_window import TimeWindow, head_rows, lane_rows, legend_rows, length_of, summary_rows

_PAIRS = (("zoom_in", "zoom_out", "zoom"), ("pan_left", "pan_right", "move"))


class TimelineScreen(RowsPage[None]):
    """The page."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("timeline")]
    DEFAULT_CSS = """
    TimelineScreen {
        & RowsView { height: 1; overflow: hidden; }
        & #timeline-head { height: 2; }
        & #timeline-lanes { height: 1fr; min-height: 1; overflow-y: scroll; }
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
        super().__init__()
        self._times = times
        self._ledger = ledger
        self._clock = clock
        self.window = TimeWindow()
        """The part of the run that is shown."""
        self._head = RowsView(self._head_rows, id="timeline-head")
        self._lanes = RowsView(self._lane_rows, id="timeline-lanes")
        self._summary = RowsView(self._summary_rows, id="timeline-summary")
        self._legend = RowsView(legend_rows, id="timeline-legend")
        self._keys = RowsView(_key_rows, id="timeline-keys")

    def compose(self) -> ComposeResult:
        """Yield the model's lane, those of the calls, the totals, the legend and the keys."""
        with Vertical() as page:
            page.border_title = Content(" Timeline ")
            for view in (self._head, self._lanes, self._summary, self._legend, self._keys):
                view.can_focus = False
                yield view

    def on_mount(self) -> None:
        """Follow the run."""
        self.set_interval(TICK, self._tick)

    @property
    def paged(self) -> RowsView:
        """The lanes, which the paging keys move."""
        return self._lanes

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_zoom(self, factor: float) -> None:
        """Show less or more time."""
        self._use(self.window.zoomed(factor, self._length))

    def action_pan(self, steps: int) -> None:
        """Show an earlier or a later part."""
        self._use(self.window.panned(steps, self._length))

    def action_whole(self) -> None:
        """Show the whole run."""
        self._use(TimeWindow())

    def action_follow(self) -> None:
        """Keep the present moment in sight."""
        start, span = self.window.seen(self._length)
        self._use(TimeWindow(start, span if self.window.span else 0.0))

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def _length(self) -> float:
        return length_of(self._times(), self._clock())

    def _use(self, window: TimeWindow) -> None:
        self.window = window
        self._show()

    def _tick(self) -> None:
        if self._times().in_progress or self._lanes.total != len(self._times().calls):
            self._show()

    def _show(self) -> None:
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


def _key_rows(width: int) -> Sequence[Line]:
    pairs = [
        f"{command(f'timeline.{one}').key_text} {command(f'timeline.{other}').key_text} {text}"
        for one, other, text in _PAIRS
    ]
    others = [hint(f"timeline.{name}") for name in ("whole", "follow", "close")]
    return [Line(clipped([(" · ".join((*pairs, *others)), "muted")], width))]
