"""Pages about the context window and about a run, with the time that questions waited for the user."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.content import Content

from tui_agent.protocol.amounts import count_text, seconds_text, share_text, tokens_text
from tui_agent.protocol.report_text import report_text
from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.text.sanitiser import clip, one_line, sanitise, visible

if TYPE_CHECKING:
    from tui_agent.workbench.context_breakdown import ContextBreakdown
    from tui_agent.workbench.session_rules import SessionRules
from tui_agent.ui.base.commands import bindings_for, command
from tui_agent.ui.state.approval_folds import Attention, Figures, Saving, best_saving, figures
from tui_agent.ui.state.call_records import CallTrial
from tui_agent.ui.state.run_times import LEAST_SAVED, Totals

from .text_page import PageBody, TextPage

MAX_LISTED_CALLS = 12
"""Calls that are listed, the largest first."""

_NAME = 26
_SIZE = 8
_BAR = 24
"""Cells of the columns, and of the longest bar."""

_LAYERS = {
    "agentloop.system": "instructions of the agent",
    "agentloop.context": "environment and task",
    "agentloop.output": "format of the answer",
    "_legacy_system": "system prompt",
    "user.append": "text you appended",
}
"""Names of the layers that the agent itself sets."""

_Entry = tuple[str, int]


def context_text(
    breakdown: "ContextBreakdown", window: int, number_of: Callable[[str], int | None], width: int
) -> Content:
    """Return each part of the context with its size, then the largest calls.

    Args:
        window: size of the context window in tokens; 0 if it is not known.
        number_of: returns the number of a call by its id; None if it has none.
    """
    total = breakdown.total
    room = f" of {tokens_text(window)} ({share_text(total, window)})" if window else ""
    calls = sum(call.tokens for call in breakdown.calls)
    spoken = (("you", breakdown.user), ("the model", breakdown.assistant), ("condensed", breakdown.condensed))
    largest = [(_call_name(call.tool_name, number_of(call.call_id)), call.tokens) for call in breakdown.calls]
    parts = [
        _size_row("tokens in the window", total, max(window, total), f"{tokens_text(total)}{room}", width),
        *_section("System prompt", [(_LAYERS.get(name, name), size) for name, size in breakdown.layers], total, width),
        *_section("Tools", breakdown.tools, total, width),
        *_section("Messages", [entry for entry in spoken if entry[1]], total, width),
        *_section(f"Calls and results  {tokens_text(calls)}" if calls else "", breakdown.by_tool, total, width),
        *_section("Largest calls", largest[:MAX_LISTED_CALLS], total, width),
    ]
    return Content("\n").join(parts)


def run_text(report: AgentRunReport, totals: Totals | None, width: int) -> Content:
    """Return a run's report with a row for each step and call."""
    saved = seconds_text(totals.saved) if totals is not None and totals.saved >= LEAST_SAVED else ""
    first, *rows = sanitise(report_text(report, saved)).split("\n")
    return Content("\n".join([first, *(clip(row, max(1, width)) for row in rows)]))


def _section(title: str, entries: Iterable[_Entry], total: int, width: int) -> Iterable[Content]:
    rows = [_size_row(name, tokens, total, tokens_text(tokens), width) for name, tokens in entries]
    return [Content(""), Content.styled(title, "$primary bold"), *rows] if rows else ()


def _size_row(name: str, tokens: int, whole: int, words: str, width: int) -> Content:
    """Return name, size, and a bar if there is room for it."""
    bar = "█" * max(round(_BAR * tokens / whole), 1 if tokens else 0) if whole else ""
    head = f"  {one_line(visible(name), _NAME):<{_NAME}}  {words:>{_SIZE}}  "
    return Content.assemble((head, "$text"), (bar if width >= len(head) + _BAR else "", "$text-muted"))


def _call_name(tool: str, number: int | None) -> str:
    return f"#{number} {tool}" if number is not None else tool


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
        totals: Totals | None = None,
    ) -> None:
        """Create the page; `kept` are commands whose changes were kept. Another program's agent has no `rules`."""
        super().__init__("Report", self._text)
        self._report, self._kept, self._totals = report, kept, totals
        self._rules = rules
        self._show_permissions = show_permissions
        # All figures are of this moment, so that they agree with one another while the page is open.
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
        # Some rules of the set may be in force already.
        for line in (line for line in self.saving.rule.splitlines() if line not in allowed):
            if refused := self._rules.add(f"allow {line}"):
                self.notify(refused, severity="warning", markup=False)
                return
        self._added = True
        self.notify(f"Added for this session: allow {rule_name(self.saving.rule)}", markup=False)
        self.query_one(PageBody).refresh(layout=True)

    def _allowed(self) -> set[str]:
        rules = self._rules.in_force().rules if self._rules is not None else ()
        return {rule.text for rule in rules if rule.verdict == "allow"}

    def _text(self, width: int) -> Content:
        parts = [] if self._report is None else [run_text(self._report, self._totals, width), Content("")]
        parts.append(attention_text(self._run, self._session, self.saving, added=self._added))
        if self._kept:
            parts += [Content(""), kept_text(self._kept)]
        return Content("\n").join(parts)


def attention_text(run: Figures, session: Figures, saving: Saving | None, *, added: bool) -> Content:
    """Return how long questions waited for the user, and the rule that would have saved most of it."""
    rows = [
        Content.styled("Waiting for you", "$primary bold"),
        _row("this run", run),
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
