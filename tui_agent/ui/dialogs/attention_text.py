"""Text of the attention figures on the report page. Pure."""

from textual.content import Content

from tui_agent.ui.base.commands import command
from tui_agent.ui.state.attention import Figures, Saving
from tui_agent.ui.text.amounts import count_text, seconds_text
from tui_agent.ui.text.sanitiser import visible

_LABEL = 14


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
