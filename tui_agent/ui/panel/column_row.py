"""A call in one row of the right column, with its state in a column of its own. Pure: text and style names."""

from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len

from tui_agent.protocol.amounts import seconds_text
from tui_agent.protocol.events import ToolStatus
from tui_agent.ui.state.call_records import tool_kind
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import one_line

from .call_rows import fitted_summary, sign_of

STATE_ROOM = 9
"""Cells of the states at the right end of all rows."""
_GAP = 2
"""Least cells between the summary and the state."""

_ENDED: dict[ToolStatus, str] = {
    "overridden": "replaced",
    "error": "failed",
    "timeout": "timed out",
    "invalid": "bad input",
    "not_found": "no tool",
    "output_limit": "cut off",
    "denied_policy": "denied",
    "denied_user": "denied",
    "denied_hook": "denied",
    "denied_guardrail": "denied",
    "withheld": "withheld",
    "skipped_steering": "skipped",
    "skipped_hook": "skipped",
    "skipped_user": "skipped",
    "cancelled": "cancelled",
    "interrupted": "unknown",
}
"""State of an ended call. Who denied or skipped it is on its page."""


@dataclass(frozen=True, slots=True)
class RowContext:
    """Context of a row beside its call."""

    width: int
    now: float
    """Monotonic seconds."""
    frame: int = 0
    """Number of the spinner's frame."""
    tenths: bool = True
    """True if clocks show tenths of a second."""
    digits: int = 1
    """Digits of the highest number, so that all rows align."""
    find: Callable[[str], LedgerCall | None] = lambda _: None
    """Finds another call by id."""
    unfolded: bool = False
    """True if the calls of its sub-agent are shown."""


def row_of(call: LedgerCall, context: RowContext) -> tuple[Run, ...]:
    """Return a call in one row: sign, number, tool, summary, and right-aligned in its own column the state."""
    view = call.view
    sign, style = sign_of(view, context.frame)
    indent = "  " * min(view.origin.depth, 4)
    fold = " " if not call.children else "▾" if context.unfolded else "▸"
    head = f"{indent}{fold}{sign} "
    # Of two digits at least, so that the rows do not move when the tenth call comes.
    number = f"{f'#{call.number}':<{max(2, context.digits) + 1}} "
    name = f"{one_line(view.name, 16):<5} "
    state, state_style = _state(view, context)
    room = max(0, context.width - cell_len(head) - cell_len(number) - cell_len(name) - STATE_ROOM - _GAP - 1)
    summary = _fitted(_named_summary(view), room)
    return (
        (head, style),
        (number, "number"),
        (name, f"tool-{tool_kind(view.name)}"),
        (summary, "summary"),
        (" " * (room - cell_len(summary) + _GAP), ""),
        (f"{state:>{STATE_ROOM}}", state_style),
    )


def done_row(number: int, *, unfolded: bool) -> tuple[Run, ...]:
    """Return the row that stands for all calls that ended well, and shows or hides them."""
    return (("▾" if unfolded else "▸", "number"), ("✔ ", "ok"), (f"{number:,} done", "amount"))


def _state(view: CallViewState, context: RowContext) -> tuple[str, str]:
    """Return the state in words and its style; for a call that runs or ended well its seconds."""
    if view.outcome.job:
        return view.outcome.job, "amount"
    if view.is_discarded:
        return "discarded", "amount"
    if view.status is not None:
        seconds = seconds_text(view.timing.latency_ms / 1000) if view.timing.started_at is not None else ""
        return _ENDED.get(view.status, seconds), "failed" if sign_of(view)[1] == "failed" else "amount"
    match view.phase:
        case "running" if view.agent_asks:
            return "needs you", "asking"
        case "running":
            return seconds_text(view.elapsed_ms(context.now) / 1000, tenths=context.tenths), "running"
        case "asking":
            return "needs you", "asking"
        case _:
            found = [call for call in map(context.find, view.waits_on) if call is not None and not call.view.ended]
            found.sort(key=lambda call: call.view.phase != "asking")
            return f"after #{found[0].number}" if found else "queued", "waiting"


def _named_summary(view: CallViewState) -> str:
    """Return the summary of a call, and before it the name of its sub-agent if the tool's name does not say it."""
    label = view.subagent.label or ""
    name = label.rpartition("-")[0] or label  # The last part of an agent's id only tells agents of one name apart.
    return f"{one_line(name, 20)} · {view.summary}" if name not in ("", view.name) else view.summary


def _fitted(summary: str, width: int) -> str:
    """Return the summary cut to the width: of a long path the end, of a path with counts only the path."""
    path, bracket, rest = summary.rpartition(" (")
    return fitted_summary(path if bracket and rest.endswith(")") and " " not in path else summary, width)
