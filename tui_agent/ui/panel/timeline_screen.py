"""Keys of pages that show lanes over time, and such a page; zoom and panning choose the part that is shown."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.ui.base.commands import bindings_for, command, hint
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.styled_lines import clipped

from .time_bars import TimeWindow

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


class TimelinePage(WindowKeys, RowsPage[None]):
    """A page of lanes over time, with zoom and panning; a class below it makes its views."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("list"), *bindings_for("timeline")]
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
        self._lanes = lanes
        lanes.add_class("timeline-lanes")
        self._keys = RowsView(self._key_rows, id="timeline-keys")

    @property
    @abstractmethod
    def views(self) -> Sequence[RowsView]:
        """The rows above the keys, from the top."""

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

    def action_cursor_up(self) -> None:
        """Scroll up one lane."""
        self.action_line_up()

    def action_cursor_down(self) -> None:
        """Scroll down one lane."""
        self.action_line_down()

    def action_first(self) -> None:
        """Scroll to the first lane."""
        self.action_scroll_top()

    def action_last(self) -> None:
        """Scroll to the last lane."""
        self.action_scroll_end()

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def _key_rows(self, width: int) -> Sequence[Line]:
        pairs = [f"{keys} {text}" for keys, text in pair_keys()]
        others = [hint("timeline.whole", self._whole), hint("timeline.follow"), hint("list.close")]
        return [Line(clipped([(" · ".join((*pairs, *others)), "muted")], width))]
