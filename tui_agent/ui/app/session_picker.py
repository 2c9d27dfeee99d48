"""Dialogs before the app: the choice of a session, a session that is open elsewhere, and a start without a key."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.text.sanitiser import sanitise
from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

from .base_app import THIN_SCROLLBARS
from .question_app import QuestionApp
from .session_screen import SessionScreen
from .themes import DEFAULT_THEME


class _Choice(QuestionApp[str | None]):
    """Returns the id of the chosen row, or None if the user quits."""

    CSS = (
        THIN_SCROLLBARS
        + """
    Screen { align: center middle; }
    #choice {
        width: auto;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        padding: 0 2;
        & > Static { width: auto; max-width: 100%; }
        & > OptionList {
            width: auto;
            max-width: 100%;
            height: auto;
            margin: 1 0;
            padding: 0;
            border: none;
            background: transparent;
        }
        & > #keys { color: $text-muted; }
    }
    """
    )
    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("picker")]

    def __init__(self, heading: str, rows: Sequence[tuple[str, str, str]], theme: str) -> None:
        """Create the dialog; `rows` are id, text and explanation of each choice."""
        super().__init__(theme)
        self._heading = heading
        self._rows = rows

    def compose(self) -> ComposeResult:
        with Vertical(id="choice"):
            yield Static(Content.assemble(("❯ ", "$accent bold"), (sanitise(self._heading), "$text bold")))
            yield OptionList(
                *(
                    Option(Content.assemble(text, "\n", (f"  {more}", "dim")), id=row_id)
                    for row_id, text, more in self._rows
                )
            )
            yield Static(f"↑ ↓ choose · enter · {command('picker.leave').key_text} quit", id="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        self.exit(event.option_id)

    def action_leave(self) -> None:
        self.exit(None)


class SessionPicker(QuestionApp[str | None]):
    """The list of sessions. Returns the id of the chosen one, or None if the user quits."""

    def __init__(self, catalogue: SessionCatalogue, *, theme: str = DEFAULT_THEME) -> None:
        super().__init__(theme)
        self._list = SessionScreen(catalogue)

    def on_mount(self) -> None:
        """Show the list; the choice ends the app."""
        self.push_screen(self._list, self.exit)


class SessionInUse(_Choice):
    """Choice for a session that another program has open: returns `fork`, `look`, or None if the user quits."""

    def __init__(self, session_id: str, *, theme: str = DEFAULT_THEME) -> None:
        rows = (
            ("fork", "Continue in a copy", "Both sessions are saved; the other tui-agent keeps this one."),
            ("look", "Open it without saving", "Nothing from here on is saved."),
        )
        heading = f"Session {session_id} is open in another tui-agent"
        super().__init__(heading, rows, theme)


class NoKey(_Choice):
    """Choice for a start without a key: returns `demo` or `quit`, or None if the user quits."""

    def __init__(self, *, theme: str = DEFAULT_THEME) -> None:
        rows = (
            ("demo", "Take the guided tour", "A scripted model shows the screen, without key and network."),
            ("quit", "Quit and set a key", "export ANTHROPIC_API_KEY=…, then start tui-agent again."),
        )
        super().__init__("tui-agent needs a key for the model, and none is set", rows, theme)
