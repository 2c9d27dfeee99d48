"""The right column: plan, calls, changed files and time strip. Its left border is dragged to change the width.

A section with the plan, while it has open items, is above the calls, one with the changed files below them.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.events import TodoItem
from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.steady_widgets import CoalescedRefresh
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.panel.time_bars import TimeStrip
from tui_agent.ui.panel.tool_panel import ToolPanel
from tui_agent.ui.state.plan_and_files import ChangedFiles, FileTotals, Plan
from tui_agent.ui.text.sanitiser import ELLIPSIS, cut_at, one_line

from .screen_state import ScreenState

MOST_ITEMS = 8
"""Most items of a plan shown; others are counted."""
MOST_FILES = 6
"""Most files shown, the newest ones; others are counted."""

_SIGNS = {"pending": ("○", "$text-muted"), "in_progress": ("◐", "$primary"), "done": ("●", "$text-muted")}


class SideSection(CoalescedRefresh):
    """Rows that are as tall as their content, or hidden without any."""

    DEFAULT_CSS = """
    SideSection {
        height: auto;
        max-height: 40%;
        margin-bottom: 1;
        display: none;
    }
    """

    def rows(self, width: int) -> Sequence[Content]:
        """Return the rows; none hides the section."""
        raise NotImplementedError

    def settle(self) -> None:
        """Draw the rows, and lay out the column if their number changes."""
        number = len(self.rows(max(1, self.size.width)))
        if not self.display or number != self.size.height:
            self.styles.height = number
        self.display = number > 0
        self.refresh()

    def render(self) -> Content:
        return Content("\n").join(self.rows(self.size.width))


class PlanSection(SideSection):
    """The plan, while it has open items."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(id="plan")
        self._plan = plan

    def show(self, plan: Plan) -> None:
        self._plan = plan
        self.changed()

    def rows(self, width: int) -> Sequence[Content]:
        """Return a heading and the items around the first open one."""
        items = self._plan.items
        if not self._plan.is_open:
            return ()
        first = next(place for place, item in enumerate(items) if item.status != "done")
        # One finished item stays in sight above the first open one.
        start = max(0, min(first - 1, len(items) - MOST_ITEMS))
        shown = items[start : start + MOST_ITEMS]
        rows = [_heading("PLAN", Content.styled(self._plan.count_text, "$text-muted"), width)]
        rows += [_item_row(item, width) for item in shown]
        if len(shown) < len(items):
            rows.append(
                Content.styled(f" {ELLIPSIS} {count_text(len(items) - len(shown), 'more item')}", "$text-muted")
            )
        return rows


class FilesSection(SideSection):
    """Files that the session has changed; a click opens the page with all of them."""

    class Opened(Message):
        """The user opens the page."""

    def __init__(self, files: ChangedFiles) -> None:
        super().__init__(id="files")
        self._files = files

    def show(self, files: ChangedFiles) -> None:
        """Show the files of another session."""
        self._files = files
        self.changed()

    def on_click(self) -> None:
        self.post_message(self.Opened())

    def rows(self, width: int) -> Sequence[Content]:
        """Return a heading and the files that changed last, the newest first."""
        files = self._files.files
        if not files:
            return ()
        rows = [_heading("FILES", Content(""), width)]
        rows += [_file_row(path, files[path], width) for path in islice(reversed(files), MOST_FILES)]
        if (left := len(files) - MOST_FILES) > 0:
            rows.append(Content.styled(f" {ELLIPSIS} {count_text(left, 'more file')}", "$text-muted"))
        return rows


def _heading(title: str, right: Content, width: int) -> Content:
    left = Content.styled(f" {title}", "$text bold")
    gap = max(1, width - left.cell_length - right.cell_length - 1)
    return Content("").join([left, Content(" " * gap), right]).truncate(max(1, width))


def _item_row(item: TodoItem, width: int) -> Content:
    sign, style = _SIGNS[item.status]
    text = one_line(item.text, max(1, width - 4))
    strength = {"in_progress": "$text bold", "done": "$text-muted"}.get(item.status, "$text")
    return Content.assemble((f" {sign} ", style), (text, strength))


def _file_row(path: str, totals: FileTotals, width: int) -> Content:
    """Return a file with its counts; the end of a long path is shown."""
    counts = Content.assemble((f"+{totals.added} ", "$success"), (f"−{totals.removed}", "$error"))
    room = max(1, width - counts.cell_length - 4)
    shown = one_line(path, 4_096)
    if len(shown) > cut_at(shown, room):
        shown = ELLIPSIS + shown[len(shown) - cut_at(shown[::-1], room - 1) :]
    left = Content.styled(f" {shown}", "$text")
    gap = max(1, width - left.cell_length - counts.cell_length - 1)
    return Content("").join([left, Content(" " * gap), counts]).truncate(max(1, width))


NARROWEST: Final = 30
"""Least columns of the right column."""
CONVERSATION: Final = 50
"""Least columns that the conversation keeps."""
WHOLE: Final = 72
"""Columns of a window below which the column over the conversation covers all of it."""
STEP: Final = 4
"""Columns by which a key moves the border."""


class SideColumn(Vertical):
    """The parts of the right column from the top, and its width, which is kept for the session."""

    app = getters.app(any_app)

    def __init__(self, state: ScreenState, surroundings: TerminalEnvironment) -> None:
        super().__init__(id="side")
        self.plan = PlanSection(state.plan)
        self.panel = ToolPanel(state.ledger, surroundings)
        self.files = FilesSection(state.files)
        self.times = TimeStrip(state.times, surroundings)
        self._width: int | None = None
        self._is_beside = self._is_dragged = False

    def compose(self) -> ComposeResult:
        yield self.plan
        yield self.panel
        yield self.files
        yield self.times

    @on(TimeStrip.Opened)
    def _timeline_opened(self) -> None:
        self.call_later(self.screen.run_action, "perform('chat.timeline')")

    @on(FilesSection.Opened)
    def _files_opened(self) -> None:
        self.call_later(self.screen.run_action, "perform('chat.files')")

    def show(self, state: ScreenState) -> None:
        self.plan.show(state.plan)
        self.panel.show(state.ledger)
        self.files.show(state.files)
        self.times.show(state.times)

    def fit(self, window: int, *, beside: bool) -> None:
        """Use the chosen width beside the conversation, over it that of the style sheet, or all of a small window."""
        self._is_beside = beside
        # What an earlier size has set would win over the style sheet.
        self.styles.clear_rule("width")
        self.styles.clear_rule("max_width")
        if beside and self._width is not None:
            self.styles.width = max(NARROWEST, min(self._width, window - CONVERSATION))
            self.styles.max_width = "100%"
        elif not beside and window < WHOLE:
            self.styles.width = "100%"

    def widen(self, columns: int) -> None:
        """Move the border by some columns, to the left for a wider column."""
        self._resize(self.outer_size.width + columns)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the border."""
        # Over the conversation, the style sheet alone decides about its width.
        if event.screen_x == self.region.x and self._is_beside:
            self._is_dragged = True
            self.add_class("-dragged")
            self.capture_mouse()
            event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        """Move the border with the mouse."""
        if self._is_dragged:
            self._resize(int(self.region.right - event.screen_x))

    def on_mouse_up(self, event: MouseUp) -> None:
        """Let go of the border."""
        if self._is_dragged:
            self._is_dragged = False
            self.remove_class("-dragged")
            self.release_mouse()
            event.stop()

    def _resize(self, width: int) -> None:
        self._width = max(NARROWEST, min(width, self.app.size.width - CONVERSATION))
        self.fit(self.app.size.width, beside=True)
