"""Actions that open a page or show a fact."""

from textual.content import Content

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.dialogs.help_page import help_text
from tui_agent.ui.text.amounts import count_text, money_text, tokens_text
from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, Handlers


class PageActions:
    """Open pages about the session."""

    def __init__(self, context: ActionContext) -> None:
        self._context = context
        self.handlers: Handlers = {
            "chat.help": lambda _: self.show_help(),
            "chat.context": self._show_context_page,
            "chat.report": self._report,
            "chat.cost": self._show_cost,
            "chat.doctor": self._doctor,
        }
        """Actions by id of their command."""

    def show_help(self) -> None:
        """Open the help page."""
        self._context.show_page("Help", help_text)

    def _doctor(self, _: str) -> None:
        self._context.start("doctor", self._examine())

    async def _examine(self) -> None:
        try:
            text = sanitise(await self._context.bridge.doctor())
        except TuiAgentError as error:
            self._context.say(str(error), wrong=True)
        else:
            self._context.show_page("Doctor", lambda _: Content(text))

    def _show_context_page(self, _: str) -> None:
        # Imports the whole agent, which must not delay the first screen.
        from tui_agent.ui.dialogs.info_pages import context_text

        breakdown, window = self._context.bridge.context_breakdown(), self._context.state().status.window
        if breakdown is None:
            self._context.say(NOT_READY, wrong=True)
        else:
            self._context.show_page("Context", lambda width: context_text(breakdown, window, self._number_of, width))

    def _report(self, _: str) -> None:
        from tui_agent.ui.dialogs.info_pages import run_text

        report = self._context.state().status.report
        if report is None:
            self._context.say("No run has ended yet.")
        else:
            self._context.show_page("Report", lambda _: run_text(report))

    def _show_cost(self, _: str) -> None:
        self._context.say(self._cost())

    def _cost(self) -> str:
        status = self._context.state().status
        usage = status.usage
        cached = f", {tokens_text(usage.cache_read_tokens)} of them from the cache" if usage.cache_read_tokens else ""
        read = (
            f"{tokens_text(usage.context_tokens)} {count_text(usage.context_tokens, 'token').split()[1]} read{cached}"
        )
        cost = money_text(status.cost) or "cost unknown"
        return f"{read} · {tokens_text(usage.output_tokens)} written · {cost}"

    def _number_of(self, call_id: str) -> int | None:
        """Return a call's number in the panel; None if it has no row."""
        found = self._context.state().ledger.find(call_id)
        return found.number if found is not None else None
