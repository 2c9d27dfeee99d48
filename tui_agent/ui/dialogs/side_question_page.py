"""The page of a question beside the conversation: the question, and the answer while it streams."""

from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import money_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.model_facts import SideAnswer
from tui_agent.ui.base.commands import COMMANDS, bindings_for, hint
from tui_agent.ui.text.clipboard import copy_text
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import RowsPage, RowsView
from tui_agent.ui.text.sanitiser import one_line, sanitise
from tui_agent.ui.text.styled_lines import wrapped
from tui_agent.ui.transcript.markdown.markdown_blocks import parse_markdown
from tui_agent.ui.transcript.markdown.markdown_layout import stacked

from .text_page import page_keys

POLL_SECONDS = 0.25
"""Seconds between two updates while the answer streams."""


class SideQuestionPage(RowsPage[None]):
    """The page over the lower part of the chat; closing it cancels an answer that is not complete."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings_for("detail", [*page_keys(), *(one for one in COMMANDS if one.id == "detail.copy")])
    ]
    DEFAULT_CSS = """
    SideQuestionPage {
        align: center bottom;
        background: $background 40%;
        & > Vertical { height: 60%; min-height: 12; }
    }
    """

    def __init__(self, question: str, ask: Callable[[str, Callable[[str], object]], Awaitable[SideAnswer]]) -> None:
        """Create the page.

        Args:
            question: the question.
            ask: answers it, and passes on each piece of the answer as it arrives.
        """
        super().__init__()
        self._question = question
        self._ask = ask
        self._answer = ""
        self._shown = ""
        self._state = "answering …"
        self._failed = ""
        self._page = RowsView(self._page_rows)

    def compose(self) -> ComposeResult:
        """Yield the page."""
        with Vertical():
            self._page.can_focus = False
            yield self._page

    def on_mount(self) -> None:
        """Ask."""
        self._show()
        self.set_interval(POLL_SECONDS, self._follow)
        self.run_worker(self._run(), name="side question", exit_on_error=False)

    @property
    def paged(self) -> RowsView:
        """View that the paging keys scroll."""
        return self._page

    def action_close(self) -> None:
        """Close the page."""
        self.dismiss(None)

    def action_copy(self) -> None:
        """Copy the answer."""
        copy_text(self.app, self._answer)

    async def _run(self) -> None:
        try:
            answer = await self._ask(self._question, self._take)
        except TuiAgentError as error:
            self._state, self._failed = "", f"No answer: {error}"
        else:
            cost = money_text(answer.cost) or "cost unknown"
            cut = " · cut at its longest" if answer.stop_reason == "max_tokens" else ""
            self._state = f"{answer.model} · {cost}{cut}"
        self._show()

    def _take(self, text: str) -> None:
        self._answer += text

    def _follow(self) -> None:
        if self._answer != self._shown:
            self._show()

    def _show(self) -> None:
        self._shown = self._answer
        frame = self.query_one(Vertical)
        frame.border_title = Content(" Side question, not part of the conversation ")
        parts = [one_line(self._state, 80), hint("detail.close"), hint("detail.copy")]
        frame.border_subtitle = Content(f" {' · '.join(filter(None, parts))} ")
        self._page.show(self._page_rows)

    def _page_rows(self, width: int) -> Sequence[Line]:
        rows = [*wrapped([(sanitise(self._question), "strong")], width), Line()]
        rows += stacked([unit.block for unit in parse_markdown(sanitise(self._shown))], width)
        return [*rows, *wrapped([(sanitise(self._failed), "warning")], width)] if self._failed else rows
