"""The right column: plan, calls, changed files and timeline. Its left border is dragged to change the width."""

from typing import Final

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import MouseDown, MouseMove, MouseUp

from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.panel.side_sections import FilesSection, PlanSection
from tui_agent.ui.panel.timeline import Timeline
from tui_agent.ui.panel.tool_panel import ToolPanel

from .screen_state import ScreenState

NARROWEST: Final = 30
"""Least columns of the right column."""
CONVERSATION: Final = 50
"""Least columns that the conversation keeps."""
STEP: Final = 4
"""Columns by which a key moves the border."""


class SideColumn(Vertical):
    """The parts of the right column from the top, and its width, which is kept for the session."""

    app = getters.app(any_app)

    def __init__(self, state: ScreenState, surroundings: TerminalEnvironment, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.plan = PlanSection(state.plan, id="plan")
        self.panel = ToolPanel(state.ledger, surroundings, id="panel")
        self.files = FilesSection(state.files, id="files")
        self.timeline = Timeline(state.times, state.ledger, surroundings, id="timeline")
        self._width: int | None = None
        self._is_dragged = False

    def compose(self) -> ComposeResult:
        """Yield the parts from the top."""
        yield self.plan
        yield self.panel
        yield self.files
        yield self.timeline

    @on(Timeline.Opened)
    def _timeline_opened(self) -> None:
        self.call_later(self.screen.run_action, "perform('chat.timeline')")

    @on(FilesSection.Opened)
    def _files_opened(self) -> None:
        self.call_later(self.screen.run_action, "perform('chat.files')")

    def show(self, state: ScreenState) -> None:
        """Show another state."""
        self.plan.show(state.plan)
        self.panel.show(state.ledger)
        self.files.show(state.files)
        self.timeline.show(state.times, state.ledger)

    def fit(self, *, beside: bool) -> None:
        """Use the chosen width beside the conversation; over it, the width of the style sheet."""
        if beside and self._width is not None:
            self.styles.width = max(NARROWEST, min(self._width, self.app.size.width - CONVERSATION))
        else:
            self.styles.clear_rule("width")

    def widen(self, columns: int) -> None:
        """Move the border by some columns, to the left for a wider column."""
        self._resize(self.outer_size.width + columns)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the border."""
        if event.screen_x == self.region.x and not self.screen.has_class("-narrow"):
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
        self.fit(beside=True)
