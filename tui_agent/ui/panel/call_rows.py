"""Row of a call in the panel. Pure: text and style names; colour is never the only sign of a state."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from rich.cells import cell_len

from tui_agent.protocol.amounts import bytes_text, count_text, seconds_text, tokens_text
from tui_agent.protocol.events import BlockedOn, ToolStatus
from tui_agent.ui.state.call_records import FileChange, question_text, settled_text, tool_kind
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import ELLIPSIS, clip, one_line, sanitise, settle
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.text.terminal_output import OutputReader

TAIL_ROWS = 3
"""Most rows of live output under a running call."""
_TAIL_READ = 4_096
"""Most characters of output read for these rows."""
_BLANKS = " \t\r"

_LONGEST_SUMMARY = 400
"""Most cells of a summary that are used."""

SPINNER = "◐◓◑◒"
"""Frames of a running call's spinner."""

CLOCK_ROOM = 14
"""Cells at the right end of a row that change with the clock."""

_ENDINGS: dict[ToolStatus, tuple[str, str, str]] = {
    "ok": ("✔", "ok", ""),
    "overridden": ("✔", "ok", "replaced"),
    "error": ("✖", "failed", "failed"),
    "timeout": ("⏱", "failed", "timed out"),
    "invalid": ("✖", "failed", "bad input"),
    "not_found": ("✖", "failed", "no such tool"),
    "output_limit": ("✖", "failed", "cut off"),
    "denied_policy": ("⊘", "stopped", "denied"),
    "denied_user": ("⊘", "stopped", "you denied"),
    "denied_hook": ("⊘", "stopped", "denied by hook"),
    "denied_guardrail": ("⊘", "stopped", "guardrail"),
    "withheld": ("⊘", "stopped", "withheld"),
    "skipped_steering": ("⤼", "stopped", "skipped, steered"),
    "skipped_hook": ("⤼", "stopped", "skipped by hook"),
    "skipped_user": ("⤼", "stopped", "you skipped"),
    "cancelled": ("■", "stopped", "cancelled"),
    "interrupted": ("?", "stopped", "outcome unknown"),
}
"""Sign, style and text of each result status."""

_WAITS: dict[BlockedOn, str] = {
    "permission": "is judged",
    "approval": "needs you",
    "slot": "waits for a slot",
    "group": "waits its turn",
    "hook": "waits for a hook",
}


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
    """Return a call in one row: sign, number, tool, summary, and at the right its state or result.

    The summary has at least half of the row if it needs that much; the right end drops its least important parts first.
    """
    view = call.view
    sign, style = sign_of(view, context.frame)
    indent = "  " * min(view.origin.depth, 4)
    fold = " " if not call.children else "▾" if context.unfolded else "▸"
    head = f"{indent}{fold}{sign} "
    number = f"{f'#{call.number}':<{context.digits + 1}} "
    name = f"{one_line(view.name, 16):<5} "
    room = max(0, context.width - cell_len(head) - cell_len(number) - cell_len(name) - 1)
    text = _named_summary(view)
    kept = min(cell_len(one_line(text, _LONGEST_SUMMARY)), context.width // 2)
    forms, right_style = _right(view, context)
    if facts := _agent_facts(call):
        forms = (*(f"{fact}  {forms[0]}" for fact in facts), *forms)
    right = next((form for form in forms if cell_len(form) + 2 + kept <= room), "")
    if not right and view.status != "ok" and (path := _fitted_summary(text, kept)).startswith(f"{ELLIPSIS}/"):
        # Cut at a slash, the path leaves some of its half to the state.
        right = next((form for form in forms if cell_len(form) + 2 + cell_len(path) <= room), "")
    if (words := _trial_words(view)) and words not in right and cell_len(words) + 2 + context.width // 4 <= room:
        right = words  # What the command did to files is worth more than the end of its text.
    summary = _fitted_summary(text, max(0, room - (cell_len(right) + 2 if right else 0)))
    gap = " " * max(0, room - cell_len(summary) - cell_len(right))
    return (
        (head, style),
        (number, "number"),
        (name, f"tool-{tool_kind(view.name)}"),
        (summary, "summary"),
        (gap, ""),
        (right, right_style),
    )


def step_row(view: CallViewState, width: int) -> tuple[Run, ...]:
    """Return the line between two steps, with the name of a sub-agent."""
    label = f" {one_line(view.origin.agent_id, 20)} " if view.origin.depth else ""
    return ((" ─", "rule"), (label, "step"), ("─" * max(0, width - len(label) - 3), "rule"))


def tail_rows(view: CallViewState, width: int) -> tuple[tuple[Run, ...], ...]:
    """Return the newest lines of a running call's output, at most `TAIL_ROWS`."""
    indent = " " * (5 + 2 * min(view.origin.depth, 4))
    texts = [text_of_runs(line) for line in tail_lines(view)]
    return tuple(((indent, ""), (one_line(text, max(0, width - len(indent) - 1)), "tail")) for text in texts)


def tail_lines(view: CallViewState, style: str = "") -> Sequence[Sequence[Run]]:
    """Return the newest lines of a running call's output with their colours, over `style`; at most `TAIL_ROWS`."""
    if view.phase != "running":
        return ()
    if view.live.text:
        return _newest_lines(view.live.text[-2 * _TAIL_READ :], style)
    if view.live.progress:
        return [[(sanitise(view.live.progress), style)]]
    said = sanitise(settle(view.subagent.words))
    return [[(line, style)] for line in said.split("\n") if line.strip()][-TAIL_ROWS:]


@lru_cache(maxsize=32)
def _newest_lines(text: str, style: str) -> Sequence[Sequence[Run]]:
    """Return the last lines that show something; colours set within `_TAIL_READ` characters before them count."""
    blank_from = text.find("\n", len(text.rstrip(_BLANKS + "\n")))
    text = text[:blank_from] if blank_from >= 0 else text
    lines = text[-_TAIL_READ:].split("\n")
    used = [place for place, line in enumerate(lines) if line.strip(_BLANKS)]
    count = TAIL_ROWS
    while True:
        newest = "\n".join(lines[used[-count] if count <= len(used) else 0 :])
        reader = OutputReader(style)
        reader.skip(text[: len(text) - len(newest)])
        found = [line for line in reader.lines(newest) if text_of_runs(line).strip()][-TAIL_ROWS:]
        if len(found) == TAIL_ROWS or count >= len(used):
            return found
        # Lines of control sequences alone show nothing.
        count *= 4


def sign_of(view: CallViewState, frame: int = 0) -> tuple[str, str]:
    """Return sign and style name of a call's state."""
    if view.status is not None:
        sign, style, _ = _ENDINGS[view.status]
        return sign, style
    match view.phase:
        case "running" if view.agent_asks:
            return "▲", "asking"
        case "running":
            return SPINNER[frame % len(SPINNER)], "running"
        case "asking":
            return "▲", "asking"
        case _:
            return "◌", "waiting"


def _right(view: CallViewState, context: RowContext) -> tuple[Sequence[str], str]:
    """Return the forms of a row's right end, the longest first, and its style: clock, reason for waiting, or result."""
    if view.status is not None:
        return _endings(view), "failed" if _ENDINGS[view.status][1] == "failed" else "amount"
    match view.phase:
        case "running" if view.agent_asks:
            return ("needs you",), "asking"
        case "running":
            clock = seconds_text(view.elapsed_ms(context.now) / 1000, tenths=context.tenths)
            share = view.live.fraction
            return ((clock,) if share is None else (f"{round(share * 100)} %  {clock}", clock)), "running"
        case "asking":
            waited = seconds_text(view.waited_ms(context.now) / 1000, tenths=False)
            words = question_text(view.approval.request)
            return (f"{words}  {waited}", words, "needs you"), "asking"
        case "waiting":
            text = wait_text(view, context.find)
            after, _, _ = text.partition(",")
            call, _, _ = text.rpartition(" ") if text.startswith("waits for #") else (after, "", "")
            return (text, after, call), "waiting"
        case _:
            return ("queued",), "waiting"


def _trial_words(view: CallViewState) -> str:
    """Return in short what waits of a command's changes, or what became of them; empty if there are none."""
    request = view.approval.request
    if view.phase == "asking":
        return question_text(request) if request is not None and request.changes is not None else ""
    return settled_text(view.changes, in_short=True)


def _named_summary(view: CallViewState) -> str:
    """Return the summary of a call, and before it the name of its sub-agent if the tool's name does not say it."""
    label = view.subagent.label or ""
    name = label.rpartition("-")[0] or label  # The last part of an agent's id only tells agents of one name apart.
    summary = view.marked_summary
    return f"{one_line(name, 20)} · {summary}" if name not in ("", view.name) else summary


def _agent_facts(call: LedgerCall) -> Sequence[str]:
    """Return the forms of calls and tokens of a call's sub-agent, the longest first; none without one."""
    tokens = call.view.subagent.tokens
    if call.view.subagent.label is None and not call.children:
        return ()
    calls, used = count_text(len(call.children), "call"), tokens_text(tokens)
    return (f"{calls} · {used} tokens", f"{calls} · {used}", calls) if tokens else (calls,)


def _fitted_summary(summary: str, width: int) -> str:
    """Return the summary cut to the width; keep the end of a long path, and a count such as `(+2 −1)` after it."""
    shown = one_line(summary, _LONGEST_SUMMARY)
    path, bracket, rest = shown.rpartition(" (")
    path, rest = (path, bracket + rest) if path and rest.endswith(")") else (shown, "")
    if cell_len(shown) <= width or " " in path or "/" not in path:
        return clip(shown, width)
    parts = path.split("/")
    for kept in range(1, len(parts)):
        end = ELLIPSIS + "/" + "/".join(parts[kept:]) + rest
        if cell_len(end) <= width:
            return end
    return clip(parts[-1] + rest, width)


def change_text(file: FileChange) -> str:
    """Return a changed file with its counts, such as `a.py +2 −1`."""
    counts = f" +{file.added} −{file.removed}" if file.added or file.removed else ""
    facts = change_facts(file)
    return f"{file.path}{counts}{f' {facts}' if facts else ''}"


def change_facts(file: FileChange) -> str:
    """Return what happened to a file beside added and removed lines; empty if nothing did."""
    sizes = " → ".join(bytes_text(size) for size in file.sizes)
    return ", ".join(filter(None, (file.fact, sizes)))


def wait_text(view: CallViewState, find: Callable[[str], LedgerCall | None]) -> str:
    """Return the reason for waiting. Of calls that are not over, name the first that needs the user, else the first."""
    found = [find(call_id) for call_id in view.waits_on]
    others = [call for call in found if call is not None and not call.view.ended]
    asking = [call for call in others if call.view.phase == "asking"]
    more = f" +{len(others) - 1}" if len(others) > 1 else ""
    if asking:
        return f"after #{asking[0].number}, which needs you{more}"
    if others:
        return f"waits for #{others[0].number} {one_line(others[0].view.name, 12)}{more}"
    return _WAITS[view.waits_for] if view.waits_for is not None else "queued"


def _endings(view: CallViewState) -> list[str]:
    """Return the forms of a call's result: status unless it is ok, time, changed files, the user's time, size.

    Each form lacks one part of the form before it: first the size, then the time in the queue, at last the time, or for
    a failed call the status, which its sign shows too.
    """
    _, style, outcome = _ENDINGS[view.status] if view.status is not None else ("", "", "")
    timing, changes = view.timing, view.changes
    executed = timing.started_at is not None
    status = "  ".join(filter(None, (outcome, "taken over" if view.outcome.took_over else "")))
    files = count_text(changes.count, "file") if changes.count and changes.is_compared else ""
    files, settled = settled_text(changes) or files, settled_text(changes, in_short=True)
    waited = f"you {seconds_text(timing.approval_ms / 1000, tenths=False)}" if timing.approval_ms >= 1000 else ""
    queued = f"queued {seconds_text(timing.queued_ms / 1000, tenths=False)}" if timing.queued_ms >= 1000 else ""
    size = bytes_text(view.outcome.size_bytes) if executed and view.outcome.size_bytes >= 1000 else ""
    # Of a call whose process has ended no one knows how long it ran.
    is_timed = executed and not (view.status == "interrupted" and not timing.latency_ms)
    clock = seconds_text(timing.latency_ms / 1000) if is_timed else ""
    forms = (
        (status, files, waited, queued, size, clock),
        (status, files, waited, queued, clock),
        (status, files, waited, clock),
        (status, files, clock),
        (status, settled, clock),
        (status, settled or clock),
        (status, clock),
        (clock if style == "failed" and clock else status.partition(",")[0] or clock,),
    )
    return ["  ".join(filter(None, form)) for form in forms]
