"""Pages to read: what fills the model's window, and what a run came to."""

from collections.abc import Callable, Iterable

from textual.content import Content

from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.bridge.engine_types import ContextBreakdown, report_text
from tui_agent.ui.text.amounts import share_text, tokens_text
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible

MAX_LISTED_CALLS = 12
"""Calls that are named; they are the largest."""

_NAME = 26
_SIZE = 8
_BAR = 24
"""Cells of the columns, and of the longest bar."""

_Entry = tuple[str, int]


def context_text(
    breakdown: ContextBreakdown, window: int, number_of: Callable[[str], int | None], width: int
) -> Content:
    """Each part with its size, then the calls that take most.

    Args:
        breakdown: tokens by part; guessed from letters.
        window: tokens that the model takes; 0: not known.
        number_of: a call's number in the panel.
        width: cells of a row.
    """
    total = breakdown.total
    room = f" of {tokens_text(window)} ({share_text(total, window)})" if window else ""
    calls = sum(call.tokens for call in breakdown.calls)
    spoken = (("you", breakdown.user), ("the model", breakdown.assistant), ("condensed", breakdown.condensed))
    largest = [(_call_name(call.tool_name, number_of(call.call_id)), call.tokens) for call in breakdown.calls]
    parts = [
        _row("estimated tokens", total, max(window, total), f"{tokens_text(total)}{room}", width),
        *_section("System prompt", breakdown.layers, total, width),
        *_section("Tools", breakdown.tools, total, width),
        *_section("What was said", [entry for entry in spoken if entry[1]], total, width),
        *_section(f"Calls and results  {tokens_text(calls)}" if calls else "", breakdown.by_tool, total, width),
        *_section("Largest calls", largest[:MAX_LISTED_CALLS], total, width),
    ]
    return Content("\n").join(parts)


def run_text(report: AgentRunReport) -> Content:
    """A run's report, a line for each step and call."""
    return Content(sanitise(report_text(report)))


def _section(title: str, entries: Iterable[_Entry], total: int, width: int) -> Iterable[Content]:
    rows = [_row(name, tokens, total, tokens_text(tokens), width) for name, tokens in entries]
    return [Content(""), Content.styled(title, "$primary bold"), *rows] if rows else ()


def _row(name: str, tokens: int, whole: int, words: str, width: int) -> Content:
    """Name, size, and a bar where there is room for one."""
    bar = "█" * max(round(_BAR * tokens / whole), 1 if tokens else 0) if whole else ""
    head = f"  {one_line(visible(name), _NAME):<{_NAME}}  {words:>{_SIZE}}  "
    return Content.assemble((head, "$text"), (bar if width >= len(head) + _BAR else "", "$text-muted"))


def _call_name(tool: str, number: int | None) -> str:
    return f"#{number} {tool}" if number is not None else tool
