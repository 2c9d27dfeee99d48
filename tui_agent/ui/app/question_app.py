"""Dialogs before the app: trust in a folder, which session, one that is open elsewhere, a start without a key.

Keys of the question about trust count as in an approval dialog: no is the default, and a yes counts only after
everything was read.
"""

import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tui_agent.ui.base.commands import COMMANDS, bindings_for, command, hint
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.dialogs.answer_screen import EARLY, AnswerRow, QuestionScreen, TypedKeys
from tui_agent.ui.text.decision_rows import labelled_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.rows_view import Paging, RowsView
from tui_agent.ui.text.sanitiser import sanitise, visible
from tui_agent.ui.text.styled_lines import choice_runs, clipped, plain_line, wrapped

from .base_app import THIN_SCROLLBARS, BaseApp
from .themes import AUTO_THEME, DEFAULT_THEME, ThemeCatalogue, shipped_themes, theme_for

if TYPE_CHECKING:
    from tui_agent.workbench.sessions.session_catalogue import SessionCatalogue

TrustChoice: TypeAlias = Literal["no", "tightening", "all"]
"""Apply nothing; everything but allow rules, tool servers and hooks; everything."""


TrustSections: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Headings of the question, each with its entries word for word."""


class TrustScreen(Paging, QuestionScreen[TrustChoice | None]):
    """The question. Returns the answer, or None if the user quit."""

    CSS = """
    TrustScreen { background: $background; }
    #trust-heading { padding: 1 2; text-style: bold; }
    #trust-body { height: 1fr; margin: 0 2; overflow-y: auto; }
    #trust-keys { height: 2; margin: 0 2; }
    """
    WHERE = "trust"
    SELECTS = frozenset(("line_up", "line_down", "page_down"))
    CLICKED = frozenset(("refuse", "tighten", "accept"))
    TYPES = False

    def __init__(
        self, folder: str, sections: TrustSections, powers: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Ask about a folder; `powers` are contents that need an answer of their own, empty if there are none."""
        super().__init__(AnswerRow(self._key_rows, clock, id="trust-keys"), TypedKeys(clock))
        self._folder, self._sections, self._powers = folder, sections, powers
        self._body = RowsView(self._body_rows, id="trust-body")

    def compose(self) -> ComposeResult:
        yield Static("This folder has its own settings or instructions. Apply them?", id="trust-heading", markup=False)
        self._body.can_focus = self.row.can_focus = False
        yield self._body
        yield self.row

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Enable the whole yes if it differs from the other one."""
        return action != "accept" or bool(self._powers)

    def refusal(self, action: str) -> str:
        """Return why a yes is impossible: not everything was read."""
        is_yes = action in ("tighten", "accept")
        return f"{hint('trust.page_down')}: a yes counts once you saw the end." if is_yes and self._left else ""

    @property
    def _left(self) -> bool:
        return not self._body.read_to_end

    @property
    def answers(self) -> Sequence[str]:
        return ("refuse", "tighten", *(["accept"] if self._powers else []))

    def action_choose_answer(self) -> None:
        """Give the answer at the cursor; no until it is moved."""
        if self.row.at_cursor:
            super().action_choose_answer()
        else:
            self.action_refuse()

    def action_refuse(self) -> None:
        """Answer no; the answer is kept until the settings change."""
        # Enter and escape give it, too.
        if self.guard.armed:
            self.dismiss("no")
        else:
            self.guard.explain(EARLY)

    def action_tighten(self) -> None:
        """Answer yes, without allow rules, tool servers and hooks."""
        self.dismiss("tightening")

    def action_accept(self) -> None:
        """Answer yes, with allow rules, tool servers and hooks."""
        self.dismiss("all")

    def action_leave(self) -> None:
        """Quit without an answer; nothing starts."""
        self.dismiss(None)

    @property
    def paged(self) -> RowsView:
        return self._body

    @on(RowsView.Moved, "#trust-body")
    def _moved(self) -> None:
        self.row.redraw()

    def _body_rows(self, width: int) -> Sequence[Line]:
        rows = labelled_rows("folder", (self._folder,), width)
        for heading, entries in self._sections:
            rows.append(Line())
            rows.extend(wrapped([(visible(heading), "muted")], width))
            for entry in entries:
                rows.extend(labelled_rows("", (entry,), width))
        return rows

    def _key_rows(self, width: int) -> Sequence[Line]:
        runs: list[Run] = []
        for name in self.answers:
            answer = command(f"trust.{name}")
            # "no" counts even if not everything was read.
            counts = self.guard.armed and (name == "refuse" or not self._left)
            text = answer.text.replace("allow rules", self._powers)
            text = text if self._powers or name == "refuse" else "yes"
            at_cursor = name == self.row.at_cursor
            runs += choice_runs(answer.key_text, text, "   ", counts=counts, is_at_cursor=at_cursor)
        more = self.guard.reason
        if not more and self._left:
            more = f"{self._body.rows_below} lines more: {hint('trust.page_down')}"
        return [Line(clipped(runs, width)), plain_line(more, "warning")]


Result = TypeVar("Result")

_KEYS = tuple(each for each in COMMANDS if each.id in ("app.quit", "app.suspend_process"))


class QuestionApp(BaseApp[Result]):
    """Shows a dialog and returns its answer; quits and suspends with the same keys as the main app."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("app", _KEYS)]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, theme: str) -> None:
        """Create the app with the theme of this name, or with the default one if there is none."""
        super().__init__(light=TerminalEnvironment.of_environment(os.environ).light)
        self._theme_name = theme
        self.show_background()

    @property
    def follows_terminal(self) -> bool:
        return self._theme_name == AUTO_THEME

    def show_background(self) -> None:
        catalogue = ThemeCatalogue((shipped_themes(),))
        chosen = catalogue.find(theme_for(self._theme_name, light=self.light)) or catalogue.find(DEFAULT_THEME)
        if chosen is not None:
            self.register_theme(chosen)
            self.theme = chosen.name


class TrustQuestion(QuestionApp[TrustChoice | None]):
    """The question whether the user trusts a folder. Returns the answer, or None if the user quits."""

    def __init__(
        self,
        folder: str,
        sections: TrustSections,
        powers: str = "",
        *,
        theme: str = DEFAULT_THEME,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(theme)
        self._question = TrustScreen(folder, sections, powers, clock=clock)

    def on_mount(self) -> None:
        """Show the question; the answer ends the app."""
        self.push_screen(self._question, self.exit)


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

    def __init__(self, catalogue: "SessionCatalogue", *, theme: str = DEFAULT_THEME) -> None:
        super().__init__(theme)
        # Imported here because the other questions do without the list.
        from .session_screen import SessionScreen

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
