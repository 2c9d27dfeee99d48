"""Where the parts of the chat stand, and moving between them; what they show is `chat_screen.py`'s."""

from collections.abc import Sequence

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Key, Resize
from textual.screen import Screen

from tui_agent.ui.base.app_type import any_app
from tui_agent.ui.base.initial_breakpoints import apply_initial_breakpoints
from tui_agent.ui.base.terminal_environment import TerminalEnvironment, WorkingDirectory
from tui_agent.ui.composer.prompt_area import PromptArea
from tui_agent.ui.composer.queue_strip import QueueStrip
from tui_agent.ui.panel.timeline import Timeline
from tui_agent.ui.panel.tool_panel import ToolPanel
from tui_agent.ui.status.notice_lines import AttentionLine, InterruptMenu, PanelStrip
from tui_agent.ui.status.session_status import SessionStatus
from tui_agent.ui.status.status_line import StatusLine
from tui_agent.ui.status.title_bar import TitleBar
from tui_agent.ui.transcript.conversation import Conversation
from tui_agent.ui.transcript.search_line import SearchLine

from .welcome import Welcome

WIDE = 110
"""Columns from which the panel stands beside the conversation."""


class ChatLayout(Screen[None]):
    """The parts, and the keys that lead from one to another."""

    app = getters.app(any_app)
    AUTO_FOCUS = "#composer"
    # Not annotated: Textual declares both as `ClassVar[...] | None`, which type checkers take for instance variables.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (10, "-short"), (24, "-tall")]  # noqa: RUF012

    def __init__(
        self,
        place: WorkingDirectory,
        view: SessionStatus,
        label: str,
        ideas: Sequence[str],
        surroundings: TerminalEnvironment,
    ) -> None:
        super().__init__()
        self.view = view
        """What goes on."""
        self.title_bar = TitleBar(place, label, self.view, id="title")
        self.welcome = Welcome(label, ideas, id="welcome")
        self.conversation = Conversation(id="conversation")
        self.panel = ToolPanel(surroundings, id="panel")
        self.timeline = Timeline(surroundings, id="timeline")
        self.strip = PanelStrip(self.panel.ledger, id="strip")
        self.search = SearchLine(id="search")
        self.queue = QueueStrip(self.view, id="queue")
        self.attention = AttentionLine(id="attention")
        self.menu = InterruptMenu(id="interrupt")
        self.entry = PromptArea(id="entry")
        self.status_line = StatusLine(surroundings, self.view, id="status")
        self._followed = False

    def compose(self) -> ComposeResult:
        """All parts, from the top."""
        apply_initial_breakpoints(self, self.app.size)
        self.entry.fit(self.app.size)
        yield self.title_bar
        with Horizontal(id="body"):
            yield self.welcome
            yield self.conversation
            with Vertical(id="side"):
                yield self.panel
                yield self.timeline
        yield self.strip
        yield self.search
        yield self.queue
        yield self.attention
        yield self.menu
        yield self.entry
        yield self.status_line

    @property
    def drawer_open(self) -> bool:
        """Whether the panel covers the conversation."""
        return self.has_class("-narrow") and self.has_class("-drawer")

    def hide_welcome(self) -> None:
        """Something was said: the conversation takes its place."""
        self.add_class("-begun")

    def on_resize(self, event: Resize) -> None:
        """The composer may be as high as the window allows."""
        self.entry.fit(event.size)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The paging keys scroll the conversation unless the keyboard is in the panel."""
        if action in ("page_up", "page_down"):
            return not self.panel.has_focus_within
        return super().check_action(action, parameters)

    def on_key(self, event: Key) -> None:
        """What is typed while nothing has the focus, or has no meaning where it has, is typed into the composer."""
        composer = self.entry.composer
        if event is composer.last_key:
            return
        if self.focused is None:
            self.set_focus(composer)
        letter = event.is_printable and event.key not in self.active_bindings
        if letter or self.focused is composer:
            composer.post_message(Key(event.key, event.character))

    def focus_composer(self) -> None:
        """Back to typing."""
        self.entry.composer.focus()

    def action_toggle_panel(self) -> None:
        """To the panel and back; in a narrow window it opens and closes."""
        if self.has_class("-narrow"):
            self._set_drawer(not self.drawer_open)
        elif self.panel.has_focus_within:
            self.focus_composer()
        else:
            self.panel.focus_list()

    def close_drawer(self) -> None:
        """Shows the conversation whole."""
        if self.drawer_open:
            self._set_drawer(False)

    def action_page_up(self) -> None:
        """The conversation, one page up."""
        self.conversation.scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        """The conversation, one page down."""
        self.conversation.scroll_page_down(animate=False)

    def action_scroll_top(self) -> None:
        """To the first message."""
        self.conversation.scroll_home(animate=False)

    def action_scroll_end(self) -> None:
        """To the newest message."""
        self.conversation.scroll_end(animate=False)

    @on(Conversation.SearchRequested)
    def action_search(self) -> None:
        """Asks what to find; a second time, for something else."""
        if not self.search.is_open:
            self._followed = self.conversation.following
        self.close_drawer()
        self.search.open()

    @on(SearchLine.Changed)
    def _search_changed(self, event: SearchLine.Changed) -> None:
        self.search.show_matches(self.conversation.search(event.query))

    @on(Conversation.SearchCounted)
    def _search_counted(self, event: Conversation.SearchCounted) -> None:
        if self.search.is_open:
            self.search.show_matches(event.count)

    @on(SearchLine.Stepped)
    def _search_stepped(self, event: SearchLine.Stepped) -> None:
        if event.backwards:
            self.conversation.previous_match()
        else:
            self.conversation.next_match()

    @on(SearchLine.Confirmed)
    def _search_confirmed(self) -> None:
        self._followed = False
        self.conversation.focus()

    @on(SearchLine.Closed)
    @on(Conversation.SearchClosed)
    def _search_closed(self) -> None:
        self.conversation.search("")
        self.search.close()
        if self._followed:
            self.conversation.show_end()
        self.focus_composer()

    @on(Conversation.CallsSelected)
    def _calls_selected(self, event: Conversation.CallsSelected) -> None:
        if self.has_class("-narrow"):
            self._set_drawer(True)
        self.panel.select(event.call_ids[0])
        self.panel.focus_list()

    @on(PanelStrip.Clicked)
    def _strip_clicked(self) -> None:
        self._set_drawer(not self.drawer_open)

    def _set_drawer(self, shown: bool) -> None:
        self.set_class(shown, "-drawer")
        self.strip.panel_open = shown
        if shown:
            self.panel.focus_list()
        else:
            self.focus_composer()
