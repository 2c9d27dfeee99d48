"""The middle of the chat: welcome page or conversation, the tool panel beside or over it, and the search line."""

from collections.abc import Callable

from textual import getters, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Size

from tui_agent.ui.base.app_type import ImmediateLayout, any_app
from tui_agent.ui.base.steady_widgets import RowStrips
from tui_agent.ui.panel.call_detail_screen import CallDetailScreen
from tui_agent.ui.panel.call_list import CallList
from tui_agent.ui.panel.tool_panel import PanelStrip
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.transcript.conversation import Conversation
from tui_agent.ui.transcript.transcript_search import SearchLine

from .chat_options import ChatOptions, PictureRequested
from .first_page import Welcome
from .screen_state import ScreenState
from .side_column import STEP, SideColumn

WIDE = 110
"""Columns from which the tool panel is beside the conversation."""

TINY = 10
"""Rows below which the line that replaces the panel gives its place to the conversation."""

LEAST_ABOVE = 3
"""Rows of the conversation above a dialog; if fewer are left, the dialog covers it."""


class BodyRow(Horizontal, RowStrips, ImmediateLayout):
    """The conversation beside the tool panel."""


class ChatBody(Vertical, RowStrips):
    """The conversation and the tool panel, moving between them, and searching the conversation."""

    app = getters.app(any_app)

    def __init__(
        self,
        state: ScreenState,
        options: ChatOptions,
        focus_composer: Callable[[], object],
        use_draft: Callable[[str], object],
    ) -> None:
        super().__init__(id="main")
        surroundings = options.surroundings
        self.conversation = Conversation(state.transcript, clock=surroundings.clock, id="conversation")
        self.side = SideColumn(state, surroundings)
        self.panel = self.side.panel
        self.strip = PanelStrip(state.ledger, state.plan)
        self.search = SearchLine(id="search")
        self._row = BodyRow(id="body")
        self._welcome = Welcome(
            options.label,
            options.ideas,
            service=options.sessions,
            use_draft=use_draft,
            leave=focus_composer,
            themes=options.theme_names,
        )
        self._clock = surroundings.clock
        self._focus_composer = focus_composer
        self._followed_before_search = False
        self._is_wide = self._is_tiny = False
        self._came_from_part = False
        self._state = state

    def compose(self) -> ComposeResult:
        with self._row:
            yield self._welcome
            yield self.conversation
            yield self.side
        yield self.strip
        yield self.search

    def show(self, state: ScreenState) -> None:
        self._state = state
        self.conversation.show(state.transcript)
        self.side.show(state)
        self.strip.show(state.ledger, state.plan)
        if state.begun:
            self.hide_welcome()
        elif self._begun:
            # A replay that seeks its start.
            self.remove_class("-begun", update=False)
            self.conversation.display = False
            self._welcome.display = True
            self._arrange()

    def fit(self, size: Size) -> None:
        """Arrange the parts for a size of the window."""
        self._is_wide, self._is_tiny = size.width >= WIDE, size.height < TINY
        self.side.fit(size.width, beside=self._is_wide)
        self._arrange()

    def hide_welcome(self) -> None:
        """Show the conversation in place of the welcome page, and in a wide window the right column beside it."""
        # Without an update of all styles: `_arrange` does what the class stands for.
        self.add_class("-begun", update=False)
        self._welcome.display = False
        self.conversation.display = True
        self._arrange()

    def _arrange(self) -> None:
        """Show the right column or the line that replaces it; the conversation has the plan where the column has not.

        The column is there from the first message on, whatever is in it: its first call must not wrap anew what the
        user reads.
        """
        # Not by rules of the style sheet: to look for their matches takes longer than the rest of the first request.
        beside = self._is_wide and self._begun and not self._is_closed
        self.side.display = beside if self._is_wide else self.drawer_open
        self.strip.display = self._begun and not beside and not self._is_tiny
        self.conversation.show_alone(not beside)

    def keep_above(self, rows: int) -> None:
        """Keep the conversation above a dialog that covers so many rows of the window, if enough of it is left."""
        body = self._row.region
        covered = max(0, body.bottom - (self.screen.size.height - rows)) if rows else 0
        if body.height - covered < LEAST_ABOVE:
            covered = 0
        # Each assignment would lay the row out again.
        if self.conversation.styles.margin.bottom != covered:
            self.conversation.styles.margin = (0, 0, covered, 0)
            self._row.rearrange()

    # --- conversation and panel ---------------------------------------------------------------------------------------

    @property
    def drawer_open(self) -> bool:
        """True if the panel covers the conversation."""
        return not self._is_wide and self.has_class("-drawer")

    @property
    def _begun(self) -> bool:
        """True if the conversation has replaced the welcome page."""
        return self.has_class("-begun")

    @property
    def _is_closed(self) -> bool:
        """True if the user has closed the right column of a wide window."""
        return self.has_class("-closed")

    def toggle_panel(self) -> None:
        """Move the focus to the panel or back; in a narrow window open or close the panel."""
        if self.conversation.has_focus and (call_ids := self.conversation.selected_calls):
            self._came_from_part = True
            self._select_calls(call_ids)
        elif not self._is_wide:
            self._set_drawer(not self.drawer_open)
        elif not self._begun:
            self._focus_composer()
        elif self._is_closed:
            self._set_closed(closed=False)
        elif self.panel.has_focus_within:
            self._leave_panel()
        else:
            self.panel.focus_list()

    def _leave_panel(self) -> None:
        """Return the keyboard to the part of the conversation it came from, else to the composer."""
        came_from_part, self._came_from_part = self._came_from_part, False
        if came_from_part:
            self.conversation.focus()
        else:
            self._focus_composer()

    def show_or_close_side(self) -> None:
        """Open or close the right column; it stays closed until it is opened."""
        if not self._is_wide:
            self._set_drawer(not self.drawer_open)
        elif self._begun:
            self._set_closed(closed=not self._is_closed)

    @on(CallList.Widened)
    def _side_widened(self, event: CallList.Widened) -> None:
        if self._is_wide:
            self.side.widen(event.steps * STEP)

    def close_drawer(self) -> None:
        """Uncover the conversation."""
        if self.drawer_open:
            self._set_drawer(False)

    @on(PanelStrip.Clicked)
    def _strip_clicked(self) -> None:
        self.show_or_close_side()

    @on(Conversation.CallsSelected)
    def _calls_selected(self, event: Conversation.CallsSelected) -> None:
        self._select_calls(event.call_ids)

    def _select_calls(self, call_ids: tuple[str, ...]) -> None:
        """Show the first of some calls in the panel."""
        if not self._is_wide:
            self._set_drawer(True)
        elif self._is_closed:
            self._set_closed(closed=False)
        self.panel.select(call_ids[0])
        self.panel.focus_list()

    @on(Conversation.PageRequested)
    def _page_requested(self, event: Conversation.PageRequested) -> None:
        call = self._state.ledger.find(event.call_ids[0]) if event.call_ids else None
        if call is not None:
            self._open_call(call.view)
            return
        page = PartPage(event.title, event.text, event.rows)
        if event.image is not None:
            self.post_message(PictureRequested(event.image, page))
        else:
            self.app.push_screen(page)

    @on(CallList.Opened)
    def _call_opened(self, event: CallList.Opened) -> None:
        self._open_call(event.view)

    def _open_call(self, view: CallViewState) -> None:
        def closed(reverts: bool | None) -> None:
            if reverts:
                self.post_message(CallList.ChangeRequested("revert", view))

        self.app.push_screen(CallDetailScreen(view, clock=self._clock, root=self._state.ledger.root), closed)

    def _set_drawer(self, shown: bool) -> None:
        self.set_class(shown, "-drawer", update=False)
        self._arrange()
        self.strip.panel_open = shown
        if shown:
            self.panel.focus_list()
        else:
            self._leave_panel()

    def _set_closed(self, *, closed: bool) -> None:
        self.set_class(closed, "-closed", update=False)
        self._arrange()
        if closed:
            self._leave_panel()
        else:
            self.panel.focus_list()

    # --- search -------------------------------------------------------------------------------------------------------

    def open_search(self) -> None:
        """Open the search line; if it is open, edit its text."""
        # The position before the first search is the one to come back to.
        if not self.search.is_open:
            self._followed_before_search = self.conversation.following
        self.close_drawer()
        self.search.open()

    @on(SearchLine.Changed)
    def _search_changed(self, event: SearchLine.Changed) -> None:
        self.search.show_matches(self.conversation.search(event.query))

    @on(Conversation.SearchCounted)
    def _search_counted(self) -> None:
        # Not numbers in the message: the query may have changed since it was sent.
        if self.search.is_open:
            self.search.show_matches(self.conversation.found)

    @on(SearchLine.Stepped)
    def _search_stepped(self, event: SearchLine.Stepped) -> None:
        if event.backwards:
            self.conversation.previous_match()
        else:
            self.conversation.next_match()

    @on(SearchLine.Confirmed)
    def _search_confirmed(self) -> None:
        # The user stays at the match, so closing the search must not scroll to the end.
        self._followed_before_search = False
        self.conversation.focus()

    @on(SearchLine.Closed)
    @on(Conversation.SearchClosed)
    def _search_closed(self) -> None:
        self.conversation.search("")
        self.search.close()
        if self._followed_before_search:
            self.conversation.show_end()
        self._focus_composer()
