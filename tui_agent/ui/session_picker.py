"""Chooses a session before the app starts: a list of what is kept, the newest first."""

from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.session.store import SessionStore, SessionSummary

from .commands import bindings_for
from .plain_app import PlainApp
from .text import one_line
from .themes import DEFAULT_THEME, ThemeShelf, shipped_themes

TITLE_WIDTH = 60


class SessionPicker(PlainApp[str | None]):
    """Returns the id of the session a person chose, or None if they left."""

    CSS = """
    #heading {
        padding: 1 2;
        text-style: bold;
    }
    OptionList {
        height: 1fr;
        margin: 0 1 1 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("picker")]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, store: SessionStore, *, theme: str = DEFAULT_THEME) -> None:
        super().__init__()
        self._sessions = [found for found in store.list() if found.said]
        shelf = ThemeShelf((shipped_themes(),))
        chosen = shelf.find(theme) or shelf.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name

    def compose(self) -> ComposeResult:
        """The heading and the list."""
        words = "Go on with which session?" if self._sessions else "No sessions yet. Press escape to leave."
        yield Static(words, id="heading", markup=False)
        yield OptionList(*(Option(Content(_row_of(found)), id=found.id) for found in self._sessions))

    def on_mount(self) -> None:
        """Keys go to the list."""
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.exit(event.option_id)

    def action_leave(self) -> None:
        """Leaves without a choice."""
        self.exit(None)


def _row_of(found: SessionSummary) -> str:
    """When, what, where."""
    when = datetime.fromtimestamp(found.updated / 1000)
    title = one_line(found.title or "(no title)", TITLE_WIDTH)
    return f"{when:%Y-%m-%d %H:%M}  {title:<{TITLE_WIDTH}}  {one_line(found.cwd, 40)}"
