"""The page of a question beside the conversation: the question, and the answer while it streams."""

from collections.abc import Awaitable, Callable, Sequence

from textual.containers import Vertical
from textual.content import Content

from tui_agent.protocol.amounts import money_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.facts.page_facts import SideAnswer
from tui_agent.ui.base.commands import hint
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.rows_view import PartPage
from tui_agent.ui.text.sanitiser import one_line, sanitise
from tui_agent.ui.text.styled_lines import wrapped
from tui_agent.ui.transcript.markdown_blocks import parse_markdown
from tui_agent.ui.transcript.markdown_layout import stacked

POLL_SECONDS = 0.25
"""Seconds between two updates while the answer streams."""


class SideQuestionPage(PartPage):
    """The page over the lower part of the chat; closing it cancels an answer that is not complete."""

    DEFAULT_CSS = """
    SideQuestionPage {
        align: center bottom;
        background: $background 40%;
        & > Vertical { height: 60%; min-height: 12; }
    }
    """

    def __init__(self, question: str, ask: Callable[[str, Callable[[str], object]], Awaitable[SideAnswer]]) -> None:
        """Create the page; `ask` answers the question, and passes on each piece of the answer as it arrives."""
        super().__init__("Side question, not part of the conversation", "", self._page_rows)
        self._question = question
        self._ask = ask
        self._shown: str = ""
        self._state = "answering …"
        self._failed = ""

    def on_mount(self) -> None:
        self._show()
        self.set_interval(POLL_SECONDS, self._follow)
        self.run_worker(self._run(), name="side question", exit_on_error=False)

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
        self._text += text

    def _follow(self) -> None:
        # Comparing texts costs less than laying out Markdown.
        if self._text != self._shown:
            self._show()

    def _show(self) -> None:
        self._shown = self._text
        parts = [one_line(self._state, 80), hint("detail.close"), hint("detail.copy")]
        self.query_one(Vertical).border_subtitle = Content(f" {' · '.join(filter(None, parts))} ")
        self._page.redraw()

    def _page_rows(self, width: int) -> Sequence[Line]:
        rows = [*wrapped([(sanitise(self._question), "strong")], width), Line()]
        rows += stacked([unit.block for unit in parse_markdown(sanitise(self._shown))], width)
        return [*rows, *wrapped([(sanitise(self._failed), "warning")], width)] if self._failed else rows
