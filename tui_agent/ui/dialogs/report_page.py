"""The report of the last run, with the time that questions waited for the user and the rule that would save most."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.protocol.amounts import count_text, seconds_text
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.state.attention import Attention, Figures, Saving, best_saving, figures
from tui_agent.ui.state.call_records import CallTrial
from tui_agent.ui.text.sanitiser import one_line, visible

from .info_pages import run_text
from .text_page import PageBody, TextPage

if TYPE_CHECKING:
    from tui_agent.workbench.session_rules import SessionRules

_LABEL = 14
_LONGEST = 70
_MOST_KEPT = 20
"""Most names of one command."""


class ReportPage(TextPage):
    """The page; its keys add the rule and show all rules."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_for("report")]

    def __init__(
        self,
        report: AgentRunReport | None,
        attention: Attention,
        rules: "SessionRules | None",
        clock: Callable[[], float],
        show_permissions: Callable[[], object],
        kept: Sequence[tuple[str, CallTrial]] = (),
    ) -> None:
        """Create the page.

        Args:
            report: report of the last run; None if none has ended.
            attention: the questions of the session.
            rules: lists and adds rules; None where another program made the agent.
            clock: monotonic seconds.
            show_permissions: opens the permissions page.
            kept: commands of the last run whose changes were kept, each with its trial.
        """
        super().__init__("Report", self._text)
        self._report, self._kept = report, kept
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
        if self.saving is None or self._added or self._rules is None:
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
        rules = self._rules.in_force().rules if self._rules is not None else ()
        return {rule.text for rule in rules if rule.verdict == "allow"}

    def _text(self, _: int) -> Content:
        parts = [attention_text(self._run, self._session, self.saving, added=self._added)]
        if self._kept:
            parts += [Content(""), kept_text(self._kept)]
        if self._report is not None:
            parts += [Content(""), run_text(self._report)]
        return Content("\n").join(parts)


def attention_text(run: Figures, session: Figures, saving: Saving | None, *, added: bool) -> Content:
    """Return how long questions waited for the user, and the rule that would have saved most of it.

    Args:
        run: figures of the last run.
        session: figures of the whole session.
        saving: the rule; None if no rule would have saved anything.
        added: True if the rule was just added.
    """
    rows = [
        Content.styled("Waiting for you", "$primary bold"),
        _row("last run", run),
        _row("session", session),
    ]
    keys = [("report.permissions", "shows all rules")]
    if saving is not None:
        rows.append(_saving_row(saving, added=added))
        if not added:
            keys.insert(0, ("report.add_rule", "adds it for this session"))
    words = " · ".join(f"{command(name).key_text} {text}" for name, text in keys)
    return Content("\n").join([*rows, Content.styled(f"  {words}", "$text-muted")])


def kept_text(kept: Sequence[tuple[str, CallTrial]]) -> Content:
    """Return the files that commands changed in trials and that were kept."""
    rows = [Content.styled("Kept from trials", "$primary bold")]
    for command_text, trial in kept:
        more = len(trial.kept) - _MOST_KEPT
        names = [*map(visible, trial.kept[:_MOST_KEPT]), *([f"{more} more"] if more > 0 else [])]
        rows.append(Content.assemble((f"  {one_line(command_text, _LONGEST)}", "$text-muted")))
        rows += [Content.assemble((f"    {name}", "$text")) for name in names]
    return Content("\n").join(rows)


def rule_name(rule: str) -> str:
    """Return one or more rules on one line."""
    return " and ".join(visible(line) for line in rule.splitlines())


def _row(label: str, figures: Figures) -> Content:
    if not figures.questions:
        return Content.assemble((f"  {label:<{_LABEL}}", "$text-muted"), ("no questions", "$text"))
    parts = [seconds_text(figures.waited, tenths=False), count_text(figures.questions, "question")]
    if figures.median is not None:
        parts.append(f"median answer after {seconds_text(figures.median, tenths=False)}")
    return Content.assemble((f"  {label:<{_LABEL}}", "$text-muted"), (" · ".join(parts), "$text"))


def _saving_row(saving: Saving, *, added: bool) -> Content:
    if added:
        words = " now applies for this session."
    else:
        asked = count_text(saving.questions, "question")
        words = f" would have answered {asked} and saved {seconds_text(saving.seconds, tenths=False)}."
    return Content.assemble(("  allow ", "$text"), (rule_name(saving.rule), "$text bold"), (words, "$text"))
