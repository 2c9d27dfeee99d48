"""Questions about sessions before the app starts: which one, and what to do where another program has it open."""

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.session.store import SessionStore, SessionSummary
from tui_agent.ui.base.commands import bindings_for
from tui_agent.ui.text.sanitiser import one_line, sanitise

from .question_app import QuestionApp
from .themes import DEFAULT_THEME

TITLE_WIDTH = 60


class _Choice(QuestionApp[str | None]):
    """Returns the id of the row a person chose, or None if they left."""

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

    def __init__(self, heading: str, rows: Sequence[tuple[str, str]], theme: str) -> None:
        """
        Args:
            heading: what is asked.
            rows: id and text of each choice.
            theme: its name.
        """
        super().__init__(theme)
        self._heading = heading
        self._rows = rows

    def compose(self) -> ComposeResult:
        """The heading and the list."""
        yield Static(sanitise(self._heading), id="heading", markup=False)
        yield OptionList(*(Option(Content(text), id=row_id) for row_id, text in self._rows))

    def on_mount(self) -> None:
        """Keys go to the list."""
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.exit(event.option_id)

    def action_leave(self) -> None:
        """Leaves without a choice."""
        self.exit(None)


class SessionPicker(_Choice):
    """Returns the id of the session a person chose, or None if they left."""

    def __init__(self, store: SessionStore, *, theme: str = DEFAULT_THEME) -> None:
        sessions = [found for found in store.list() if found.said]
        heading = "Go on with which session?" if sessions else "No sessions yet. Press escape to leave."
        super().__init__(heading, [(found.id, _row_of(found)) for found in sessions], theme)


class SessionInUse(_Choice):
    """What to do with a session that another program writes: returns `fork`, `look`, or None if the person left."""

    def __init__(self, session_id: str, *, theme: str = DEFAULT_THEME) -> None:
        rows = (
            ("fork", "Go on with a copy of it, kept as a session of its own"),
            ("look", "Only look at it: nothing that is said from here on is kept"),
        )
        heading = f"Session {session_id} is open in another tui-agent, which goes on writing it. Escape leaves."
        super().__init__(heading, rows, theme)


def _row_of(found: SessionSummary) -> str:
    """When, what, where."""
    when = datetime.fromtimestamp(found.updated / 1000)
    title = one_line(found.title or "(no title)", TITLE_WIDTH)
    return f"{when:%Y-%m-%d %H:%M}  {title:<{TITLE_WIDTH}}  {one_line(found.cwd, 40)}"
