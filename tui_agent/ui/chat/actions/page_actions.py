"""Actions that open a page or show a fact."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.content import Content

from tui_agent.protocol.amounts import count_text, money_text, tokens_text
from tui_agent.ui.base.command_type import Command
from tui_agent.ui.bridge.agent_bridge import NOT_READY
from tui_agent.ui.chat.screen_state import ScreenState
from tui_agent.ui.dialogs.help_page import help_text
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.sanitiser import sanitise

from .action_context import ActionContext, Handlers

if TYPE_CHECKING:
    from tui_agent.ui.dialogs.chooser_page import ChooserPage


class PageActions:
    """Open pages about the session."""

    def __init__(
        self, context: ActionContext, state: Callable[[], ScreenState], offers: Callable[[Command], bool]
    ) -> None:
        self._context = context
        self._state = state
        self._offers = offers
        self.handlers: Handlers = {
            "chat.help": lambda _: self.show_help(),
            "chat.context": self._show_context_page,
            "chat.report": self._report,
            "chat.permissions": lambda _: self.show_permissions(),
            "chat.files": self._show_files,
            "chat.diff": self._show_diff,
            "chat.findings": lambda _: self.show_findings(),
            "chat.tools": self._show_tools,
            "chat.skills": self._show_skills,
            "chat.open_newest": self._open_newest,
            "chat.timeline": lambda _: self.show_timeline(),
            "chat.btw": self._ask_aside,
            "chat.cost": lambda _: self._context.say(self._cost()),
            "chat.stats": lambda _: self._context.start("stats", self._show_statistics()),
            "chat.doctor": lambda _: self._context.start("doctor", self._examine()),
            "chat.hooks": self._show_hooks,
        }
        """Actions by id of their command."""

    def show_help(self) -> None:
        """Open the help page."""
        own = [entry for entry in self._context.bridge.status.commands if " " not in entry.slash]
        self._context.show_page("Help", lambda width: help_text(width, own, self._offers))

    async def _examine(self) -> None:
        if (bench := self._context.bench()) is None:
            return
        text = sanitise(await bench.commands.doctor())
        self._context.show_page("Doctor", lambda _: Content(text))

    def _ask_aside(self, question: str) -> bool:
        from tui_agent.ui.dialogs.side_question_page import SideQuestionPage

        if (bench := self._context.bench()) is None:
            return False
        if question:
            self._context.screen.app.push_screen(SideQuestionPage(question, bench.aside))
        else:
            self._context.say("Type a question: /btw QUESTION", wrong=True)
        return bool(question)

    async def _show_statistics(self) -> None:
        if (bench := self._context.bench()) is None:
            return
        found = await bench.commands.statistics()
        title = "Tokens and cost of all sessions"
        self._context.show_page(title, lambda width: Content(sanitise("\n".join(found.lines(width)))))

    def _show_context_page(self, _: str) -> None:
        agent, status = self._context.bridge.agent, self._state().status
        if agent is None:
            self._context.say(NOT_READY, wrong=True)
            return
        # Imports the whole agent, which a thread may still be importing as long as it is not ready.
        from tui_agent.ui.dialogs.info_pages import context_text
        from tui_agent.workbench.context_breakdown import context_breakdown

        parts = context_breakdown(agent.history, agent.tools).scaled_to(status.tokens)
        self._context.show_page("Context", lambda width: context_text(parts, status.window, self._number_of, width))

    def _report(self, _: str) -> None:
        # Pages are loaded on demand.
        from tui_agent.ui.dialogs.info_pages import ReportPage

        context, state = self._context, self._state()
        if state.status.report is None and not state.attention.questions:
            context.say("No run has ended yet.")
            return
        report, clock = state.status.report, context.options.surroundings.clock
        calls = (
            () if report is None else (*report.taken_up, *(call for step in report.steps for call in step.tool_calls))
        )
        found = (state.ledger.find(call.call_id) for call in calls)
        views = [call.view for call in found if call is not None and call.view.changes.trial.kept]
        kept = [(view.summary, view.changes.trial) for view in views]
        rules = context.bridge.bench.rules if context.bridge.bench is not None else None
        page = ReportPage(report, state.attention, rules, clock, self.show_permissions, kept, state.times.last)
        context.screen.app.push_screen(page)

    def show_permissions(self) -> None:
        """Open the page with all rules in force."""
        from tui_agent.ui.dialogs.permissions_screen import PermissionsScreen

        context = self._context
        if (bench := context.bench()) is None:
            return
        screen = PermissionsScreen(
            bench.rules,
            lambda: self._state().status,
            lambda: self._state().rule_hits,
            lambda: self._state().ledger,
        )
        context.screen.app.push_screen(screen)

    def _open_newest(self, _: str) -> None:
        """Open the page of the newest call of the conversation, of those that wait only if no other is there."""
        from tui_agent.ui.panel.call_list import CallList

        calls = [call for call in reversed(self._state().ledger.calls) if call.parent is None]
        ran = (call for call in calls if call.view.timing.started_at is not None)
        if (newest := next(ran, calls[0] if calls else None)) is None:
            self._context.say("There is no call yet.")
            return
        self._context.screen.query_one(CallList).post_message(CallList.Opened(newest.view))

    def show_timeline(self) -> None:
        """Open the timeline of the newest run."""
        from tui_agent.ui.dialogs.timeline_page import TimelineScreen
        from tui_agent.ui.panel.call_list import CallList

        context = self._context
        if self._state().times.started is None:
            context.say("No run has started yet.")
            return
        clock = context.options.surroundings.clock

        def open_call(view: CallViewState) -> None:
            context.screen.query_one(CallList).post_message(CallList.Opened(view))

        context.screen.app.push_screen(
            TimelineScreen(lambda: self._state().times, lambda: self._state().ledger, clock, open_call)
        )

    def _show_files(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import ChooserPage
        from tui_agent.ui.dialogs.fact_items import file_items

        if not self._state().files.files:
            self._context.say("This session has changed no files.")
            return
        state = f"{count_text(len(self._state().files.files), 'file')} changed, the newest first"
        items = lambda: file_items(self._state().files, self._state().ledger)  # noqa: E731
        self._push(ChooserPage("Changed files", items, state, opens=True))

    def _show_diff(self, _: str) -> None:
        from tui_agent.ui.dialogs.diff_screen import DiffScreen

        context = self._context
        if (bench := context.bench()) is not None:
            clock = context.options.surroundings.clock
            page = DiffScreen(bench.diff, lambda: context.bridge.status.running, clock, self._changes_so_far)
            context.screen.app.push_screen(page)

    def _changes_so_far(self) -> tuple[int, int]:
        """Return how many calls have ended, and how many changes of files are known."""
        state = self._state()
        places = state.ledger.places
        open_calls = sum(len(places[kind]) for kind in ("waiting", "running", "needs_you"))
        changes = sum(totals.changes for totals in state.files.files.values())
        return len(state.ledger.calls) - open_calls, changes

    def show_findings(self) -> None:
        """Open the page with the findings of the last review."""
        from tui_agent.ui.dialogs.findings_screen import FindingsScreen

        context, findings = self._context, self._state().findings.items
        if findings is None:
            context.say("No review has reported yet. /review starts one.")
        elif (bench := context.bench()) is not None:
            context.screen.app.push_screen(FindingsScreen(findings, bench.files))

    def review_ended(self) -> None:
        """Open the findings of a review that has ended, unless the user is busy elsewhere; then say where they are."""
        context = self._context
        if context.bridge.bench is None:
            return
        if context.screen.is_current and not context.composer.text:
            self.show_findings()
        else:
            context.say(f"{count_text(len(self._state().findings.items or ()), 'finding')}. /findings shows them.")

    def _show_tools(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import ChooserPage
        from tui_agent.ui.dialogs.fact_items import tool_items

        if (bench := self._context.bench()) is None:
            return
        tools = bench.rules.tools()
        state = f"The model can call {count_text(len(tools), 'tool')}."
        self._push(ChooserPage("Tools", lambda: tool_items(tools), state, opens=True))

    def _show_skills(self, _: str) -> None:
        from tui_agent.ui.dialogs.chooser_page import ChooserPage
        from tui_agent.ui.dialogs.fact_items import definition_items

        if (bench := self._context.bench()) is None:
            return
        facts = bench.definitions.facts()
        if not facts:
            where = "skills/, commands/ and agents/ of .tui-agent/ or .claude/, here or in your home directory"
            self._context.say(f"No file defines any. They are Markdown files in {where}.")
            return
        state = f"{count_text(sum(not fact.problem for fact in facts), 'definition')} in use"
        page = ChooserPage("Skills, commands, sub-agents", lambda: definition_items(facts), state, opens=True)
        self._push(page)

    def _push(self, page: "ChooserPage") -> None:
        self._context.screen.app.push_screen(page)

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

    def _show_hooks(self, _: str) -> bool:
        from tui_agent.ui.dialogs.chooser_page import ChooserPage
        from tui_agent.ui.dialogs.fact_items import hook_items

        context = self._context
        if (bench := context.bench()) is None:
            return False
        hooks = bench.hooks
        if not hooks.list():
            context.say("No hook is defined: neither [[hooks]] in your settings nor hooks in .claude/settings.json.")
            return True
        state = f"{count_text(sum(bool(fact.event) for fact in hooks.list()), 'hook')}"
        self._push(ChooserPage("Hooks", lambda: hook_items(hooks.list()), state, opens=True, follows=True))
        return True
