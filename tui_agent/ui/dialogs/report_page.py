"""The report of the last run, with the time that questions waited for the user and the rule that would save most."""

from collections.abc import Callable
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.base.commands import bindings_for
from tui_agent.ui.bridge.rule_queries import RuleQueries
from tui_agent.ui.state.attention import Attention, Saving, best_saving, figures

from .attention_text import attention_text, rule_name
from .info_pages import run_text
from .text_page import PageBody, TextPage


class ReportPage(TextPage):
    """The page; its keys add the rule and show all rules."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("report")]

    def __init__(
        self,
        report: AgentRunReport | None,
        attention: Attention,
        rules: RuleQueries,
        clock: Callable[[], float],
        show_permissions: Callable[[], object],
    ) -> None:
        """Create the page.

        Args:
            report: report of the last run; None if none has ended.
            attention: the questions of the session.
            rules: lists and adds rules.
            clock: monotonic seconds.
            show_permissions: opens the permissions page.
        """
        super().__init__("Report", self._text)
        self._report = report
        self._rules = rules
        self._show_permissions = show_permissions
        now = clock()
        self._run = figures(attention.of_run, now)
        self._session = figures(attention.questions, now)
        self.saving: Saving | None = best_saving(attention.questions, now, self._allowed())
        """The rule that would have saved most; None if none would have."""
        self._added = False

    def action_permissions(self) -> None:
        """Show all rules."""
        self._show_permissions()

    def action_add_rule(self) -> None:
        """Add the rule for the rest of the session."""
        if self.saving is None or self._added:
            return
        allowed = self._allowed()
        for line in (line for line in self.saving.rule.splitlines() if line not in allowed):
            if refused := self._rules.add(f"allow {line}"):
                self.notify(refused, severity="warning", markup=False)
                return
        self._added = True
        self.notify(f"Added for this session: allow {rule_name(self.saving.rule)}", markup=False)
        self.query_one(PageBody).refresh(layout=True)

    def _allowed(self) -> set[str]:
        """Return the allow rules in force."""
        return {rule.text for rule in self._rules.in_force().rules if rule.verdict == "allow"}

    def _text(self, _: int) -> Content:
        parts = [attention_text(self._run, self._session, self.saving, added=self._added)]
        if self._report is not None:
            parts += [Content(""), run_text(self._report)]
        return Content("\n").join(parts)
