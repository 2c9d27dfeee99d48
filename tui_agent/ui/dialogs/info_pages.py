"""Text of pages: what fills the model's context window, and the report of a run."""

from collections.abc import Callable, Iterable

from textual.content import Content

from tui_agent.protocol.reports import AgentRunReport
from tui_agent.ui.bridge.engine_types import ContextBreakdown
from tui_agent.ui.text.amounts import share_text, tokens_text
from tui_agent.ui.text.report_text import report_text
from tui_agent.ui.text.sanitiser import one_line, sanitise, visible

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
    breakdown: ContextBreakdown, window: int, number_of: Callable[[str], int | None], width: int
) -> Content:
    """Return each part of the context with its size, then the largest calls.

    Args:
        breakdown: tokens by part, estimated from characters.
        window: tokens of the context window; 0 if unknown.
        number_of: returns a call's number in the panel.
        width: cells of a row.
    """
    total = breakdown.total
    room = f" of {tokens_text(window)} ({share_text(total, window)})" if window else ""
    calls = sum(call.tokens for call in breakdown.calls)
    spoken = (("you", breakdown.user), ("the model", breakdown.assistant), ("condensed", breakdown.condensed))
    largest = [(_call_name(call.tool_name, number_of(call.call_id)), call.tokens) for call in breakdown.calls]
    parts = [
        _row("estimated tokens", total, max(window, total), f"{tokens_text(total)}{room}", width),
        *_section("System prompt", [(_LAYERS.get(name, name), size) for name, size in breakdown.layers], total, width),
        *_section("Tools", breakdown.tools, total, width),
        *_section("Messages", [entry for entry in spoken if entry[1]], total, width),
        *_section(f"Calls and results  {tokens_text(calls)}" if calls else "", breakdown.by_tool, total, width),
        *_section("Largest calls", largest[:MAX_LISTED_CALLS], total, width),
    ]
    return Content("\n").join(parts)


def run_text(report: AgentRunReport) -> Content:
    """Return a run's report with a line for each step and call."""
    return Content(sanitise(report_text(report)))


def _section(title: str, entries: Iterable[_Entry], total: int, width: int) -> Iterable[Content]:
    rows = [_row(name, tokens, total, tokens_text(tokens), width) for name, tokens in entries]
    return [Content(""), Content.styled(title, "$primary bold"), *rows] if rows else ()


def _row(name: str, tokens: int, whole: int, words: str, width: int) -> Content:
    """Return name, size, and a bar if there is room for it."""
    bar = "█" * max(round(_BAR * tokens / whole), 1 if tokens else 0) if whole else ""
    head = f"  {one_line(visible(name), _NAME):<{_NAME}}  {words:>{_SIZE}}  "
    return Content.assemble((head, "$text"), (bar if width >= len(head) + _BAR else "", "$text-muted"))


def _call_name(tool: str, number: int | None) -> str:
    return f"#{number} {tool}" if number is not None else tool
