"""Reasons of a request beyond its title, its input and its marks. Pure."""

import re

from tui_agent.protocol.permissions import ApprovalRequest, DecisionPart
from tui_agent.ui.text.argument_rows import beside
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import visible
from tui_agent.ui.text.styled_lines import clipped, wrapped

from .approval_marks import OUTSIDE, danger_marks

MAX_REASON_ROWS = 2
"""Rows of the reason; the list of all rules has the rest."""

_NO_RULE = re.compile(r"no rule allows `.*`(?=\Z|; asked again: )", re.DOTALL)
_NO_RULE_FOR_PART = re.compile(r"(?:; )?no rule allows .*\Z", re.DOTALL)


def why_rows(request: ApprovalRequest, width: int, *, with_reason: bool = True) -> list[Line]:
    """Return the dangers and, if wanted, the reason for the question."""
    marks: list[Run] = []
    for mark in _marks(request):
        marks += [("▲\u00a0", "error"), (visible(mark).replace(" ", "\u00a0"), "error strong"), ("   ", "")]
    reason = visible(short_reason(request)).replace("\n", " ")
    rows = beside("why", lambda room: _reason_rows(reason, room), width) if with_reason else []
    marked = [
        Line(tuple((text.replace("\u00a0", " "), style) for text, style in row.runs))
        for row in (wrapped(marks, width) if marks else [])
    ]
    return [*marked, *rows]


def short_reason(request: ApprovalRequest) -> str:
    """Return the reason without the words of the marks, the path in the title and the command itself."""
    consequences, _, rest = request.reason.partition("; ")
    marks = _marks(request)
    is_said = consequences in marks or set(consequences.split(", ")) <= set(marks)
    is_said = is_said or consequences == f"changes {request.args.get('path')}"
    reason = rest if rest and is_said else request.reason
    asking = sum(part.decision == "ask" for part in request.parts)
    whose = "it" if len(request.parts) < 2 else f"the part{'s' if asking > 1 else ''} marked ▲"
    shows_command = request.preview is not None and request.preview.kind == "command"
    return (_NO_RULE.sub(f"no rule allows {whose}", reason) if shows_command else reason) or "no rule decides this"


def part_note(part: DecisionPart) -> str:
    """Return the rule that allows or forbids a part, or its consequences or reason; empty if none needs a mention."""
    if part.decision == "allow" or part.rule is not None:
        return f"rule {part.rule}" if part.rule else ""
    return _NO_RULE_FOR_PART.sub("", part.reason)


def _marks(request: ApprovalRequest) -> tuple[str, ...]:
    """Return the dangers; the mark for a place outside the workspace names it if the reason does."""
    place = request.reason.partition("; ")[0]
    named = place if place.startswith(f"{OUTSIDE}: ") else OUTSIDE
    return tuple(named if mark == OUTSIDE else mark for mark in danger_marks(request))


def _reason_rows(reason: str, width: int) -> list[Line]:
    rows = wrapped([(reason, "")], width)
    if len(rows) <= MAX_REASON_ROWS:
        return rows
    return [*rows[: MAX_REASON_ROWS - 1], Line((*clipped(rows[MAX_REASON_ROWS - 1].runs, width - 2), (" …", "muted")))]
