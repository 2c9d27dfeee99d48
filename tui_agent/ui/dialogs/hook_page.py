"""Text of the page with all hooks."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from textual.content import Content

from tui_agent.protocol.facts.hook_facts import HookFact
from tui_agent.ui.text.sanitiser import visible


def hooks_text(facts: Sequence[HookFact], width: int) -> Content:
    """Return each hook with its command, its file and its last answer, then the entries that are not used."""
    rows: list[Content] = []
    event = ""
    for fact in facts:
        if not fact.event:
            continue
        if fact.event != event:
            event = fact.event
            rows += [Content(""), Content.styled(visible(event), "$primary bold")]
        rows += _wrapped(fact.command, width, "$text bold")
        matcher = f"for {fact.matcher} · " if fact.matcher else ""
        rows += _wrapped(f"{matcher}{fact.origin}", width, "$text-muted", 4)
        if fact.problem:
            rows += _wrapped(f"does not run: {fact.problem}", width, "$warning", 4)
        else:
            style = "$error" if fact.has_failed else "$text-muted"
            rows += _wrapped(f"last: {fact.last}" if fact.last else "has not run yet", width, style, 4)
    if problems := [fact.problem for fact in facts if not fact.event]:
        rows += [Content(""), Content.styled("Not used", "$warning bold")]
        rows += [row for problem in problems for row in _wrapped(problem, width, "$text")]
    return Content("\n").join(rows[1:])


def _wrapped(text: str, width: int, style: str, margin: int = 2) -> Iterable[Content]:
    rows = wrap(visible(text), max(20, width - margin))
    return [Content.styled(" " * margin + row, style) for row in rows]
