"""Actions that open a page or show a fact."""

from collections.abc import Callable
from functools import partial

from textual.content import Content

from tui_agent.protocol.amounts import count_text, money_text, tokens_text
from tui_agent.protocol.errors import TuiAgentError
from tui_agent.ui.base.command_type import Command
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.dialogs.text_page import help_text
from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, ActionGroup, Handlers


class PageActions(ActionGroup):
    """Open pages about the session."""

    def __init__(
        self, context: ActionContext, state: Callable[[], ScreenState], offers: Callable[[Command], bool]
    ) -> None:
        super().__init__(context)
        self._state = state
        self._offers = offers
        self.handlers: Handlers = {
            "chat.help": self._show_help,
            "chat.context": self._show_context_page,
            "chat.report": self._report,
            "chat.permissions": self._show_permissions,
            "chat.files": self._show_files,
            "chat.diff": self._show_diff,
            "chat.findings": lambda _: self.show_findings(),
            "chat.btw": self._ask_aside,
            "chat.cost": lambda _: self._say(self._cost()),
            "chat.stats": lambda _: self._start("stats", self._show_statistics()),
            "chat.doctor": lambda _: self._start("doctor", self._examine()),
        }

    def _show_help(self, _: str) -> None:
        own = [entry for entry in self._bridge.status.commands if " " not in entry.slash]
        self._show_page("Help", lambda width: help_text(width, own, self._offers))

    async def _examine(self) -> None:
        text = sanitise(await self._bench.commands.doctor())
        self._show_page("Doctor", lambda _: Content(text))

    def _ask_aside(self, question: str) -> None:
        from tui_agent.ui.dialogs.side_question_page import SideQuestionPage

        if not question:
            raise TuiAgentError("Type a question: /btw QUESTION")
        self._push(SideQuestionPage(question, self._bench.aside))

    async def _show_statistics(self) -> None:
        found = await self._bench.commands.statistics()
        title = "Tokens and cost of all sessions"
        self._show_page(title, lambda width: Content(sanitise("\n".join(found.lines(width)))))

    def _show_context_page(self, _: str) -> None:
        agent, status = self._bridge.agent, self._state().status
        if agent is None:
            raise TuiAgentError(NOT_READY)
        # Imports the whole agent, which a thread may still be importing as long as it is not ready.
        from tui_agent.ui.dialogs.info_pages import context_text
        from tui_agent.workbench.context_breakdown import context_breakdown

        parts = context_breakdown(agent.history, agent.tools).scaled_to(status.tokens)
        self._show_page("Context", lambda width: context_text(parts, status.window, self._number_of, width))

    def _report(self, _: str) -> None:
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.info_pages import ReportPage

        state = self._state()
        if state.status.report is None and not state.attention.questions:
            self._say("No run has ended yet.")
            return
        report = state.status.report
        calls = (
            () if report is None else (*report.taken_up, *(call for step in report.steps for call in step.tool_calls))
        )
        found = (state.ledger.find(call.call_id) for call in calls)
        views = [call.view for call in found if call is not None and call.view.changes.trial.kept]
        kept = [(view.summary, view.changes.trial) for view in views]
        show = partial(self._screen.call_later, self._screen.run_action, "perform('chat.permissions')")
        rules = self._bridge.bench.rules if self._bridge.bench is not None else None
        self._push(ReportPage(report, state.attention, rules, self._clock, show, kept, state.times.last))

    def _show_permissions(self, _: str) -> None:
        from tui_agent.ui.dialogs.permissions_screen import PermissionsScreen

        self._push(
            PermissionsScreen(
                self._bench.rules,
                lambda: self._state().status,
                lambda: self._state().rule_hits,
                lambda: self._state().ledger,
            )
        )

    def _show_files(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import file_items

        if not self._state().files.files:
            self._say("This session has changed no files.")
            return
        state = f"{count_text(len(self._state().files.files), 'file')} changed, the newest first"
        self._list_facts("Changed files", lambda: file_items(self._state().files, self._state().ledger), state)

    def _show_diff(self, _: str) -> None:
        from tui_agent.ui.dialogs.diff_screen import DiffScreen

        # A function, because a run may begin or end while the page is open.
        busy = lambda: self._bridge.status.running  # noqa: E731
        self._push(DiffScreen(self._bench.diff, busy, self._clock, self._changes_so_far))

    def _changes_so_far(self) -> tuple[int, int]:
        """Return how many calls have ended, and how many changes of files are known."""
        state = self._state()
        places = state.ledger.places
        open_calls = sum(len(places[kind]) for kind in ("waiting", "running", "needs_you"))
        changes = sum(totals.changes for totals in state.files.files.values())
        return len(state.ledger.calls) - open_calls, changes

    def show_findings(self) -> None:
        """Open the page with the findings of the last review."""
        from tui_agent.ui.dialogs.review_findings_screen import FindingsScreen

        findings = self._state().findings.items
        if findings is None:
            self._say("No review has reported yet. /review starts one.")
        else:
            self._push(FindingsScreen(findings, self._bench.files))

    def review_ended(self) -> None:
        """Open the findings of a review that has ended, unless the user is busy elsewhere; then say where they are."""
        if self._bridge.bench is None:
            return
        # A page that opens by itself must not come between a user and what is being read or typed.
        if self._screen.is_current and not self._composer.text:
            self.show_findings()
        else:
            self._say(f"{count_text(len(self._state().findings.items or ()), 'finding')}. /findings shows them.")

    def _cost(self) -> str:
        status = self._state().status
        usage = status.usage
        cached = f", {tokens_text(usage.cache_read_tokens)} of them from the cache" if usage.cache_read_tokens else ""
        read = (
            f"{tokens_text(usage.context_tokens)} {count_text(usage.context_tokens, 'token').split()[1]} read{cached}"
        )
        cost = money_text(status.cost) or "cost unknown"
        return f"{read} · {tokens_text(usage.output_tokens)} written · {cost}"

    def _number_of(self, call_id: str) -> int | None:
        """Return a call's number in the panel; None if it has no row."""
        found = self._state().ledger.find(call_id)
        return found.number if found is not None else None
