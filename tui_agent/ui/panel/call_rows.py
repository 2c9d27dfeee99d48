"""Signs and words for the state of a call, wherever it has a row. Pure; colour is never the only sign of a state."""

from collections.abc import Callable, Sequence
from functools import lru_cache

from rich.cells import cell_len

from tui_agent.protocol.amounts import bytes_text
from tui_agent.protocol.events import BlockedOn
from tui_agent.ui.state.call_records import END_KINDS, CallKind, FileChange, lines_text
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import ELLIPSIS, clip, one_line, sanitise, settle
from tui_agent.ui.text.styled_lines import text_of_runs
from tui_agent.ui.text.terminal_output import OutputReader

TAIL_ROWS = 3
"""Most rows of live output, unless a caller wants more, and of a sub-agent's words."""
_TAIL_READ = 4_096
"""Most characters of output read for these rows."""
_BLANKS = " \t\r"
_LONGEST_SUMMARY = 400
"""Most cells of a summary that are used."""

SPINNER = "◐◓◑◒"
"""Frames of a running call's spinner."""

_ENDINGS: dict[CallKind, tuple[str, str]] = {
    "done": ("✔", "ok"),
    "failed": ("✖", "failed"),
    "denied": ("⊘", "stopped"),
    "skipped": ("⤼", "stopped"),
    "cancelled": ("■", "stopped"),
    "unknown": ("?", "stopped"),
}

_WAITS: dict[BlockedOn, str] = {
    "permission": "is judged",
    "approval": "needs you",
    "slot": "waits for a slot",
    "group": "waits its turn",
    "hook": "waits for a hook",
}


def tail_lines(view: CallViewState, style: str = "", most: int = TAIL_ROWS) -> Sequence[Sequence[Run]]:
    """Return the newest lines of a running call's output with their colours, over `style`; at most `most`."""
    if view.phase != "running":
        return ()
    if view.live.text:
        return _newest_lines(view.live.text[-2 * _TAIL_READ :], style, most)
    if view.live.progress:
        return [[(sanitise(view.live.progress), style)]]
    said = sanitise(settle(view.subagent.words))
    return [[(line, style)] for line in said.split("\n") if line.strip()][-TAIL_ROWS:]


# Each step of the spinner asks again, mostly for the same output.
@lru_cache(maxsize=32)
def _newest_lines(text: str, style: str, most: int) -> Sequence[Sequence[Run]]:
    """Return the last lines that show something; colours set within `_TAIL_READ` characters before them count."""
    blank_from = text.find("\n", len(text.rstrip(_BLANKS + "\n")))
    text = text[:blank_from] if blank_from >= 0 else text
    lines = text[-_TAIL_READ:].split("\n")
    used = [place for place, line in enumerate(lines) if line.strip(_BLANKS)]
    count = most
    while True:
        newest = "\n".join(lines[used[-count] if count <= len(used) else 0 :])
        reader = OutputReader(style)
        reader.skip(text[: len(text) - len(newest)])
        found = [line for line in reader.lines(newest) if text_of_runs(line).strip()][-most:]
        if len(found) == most or count >= len(used):
            return found
        # Lines of control sequences alone show nothing.
        count *= 4


def sign_of(view: CallViewState, frame: int = 0) -> tuple[str, str]:
    """Return sign and style name of a call's state."""
    # A command that was left behind runs, although its call has ended.
    if view.outcome.job:
        return "»", "running"
    if view.is_discarded:
        return _ENDINGS["denied"]
    if view.status is not None:
        return ("⏱", "failed") if view.status == "timeout" else _ENDINGS[END_KINDS[view.status]]
    match view.phase:
        case "running" if view.agent_asks:
            return "▲", "asking"
        case "running":
            return SPINNER[frame % len(SPINNER)], "running"
        case "asking":
            return "▲", "asking"
        case _:
            return "◌", "waiting"


def fitted_summary(summary: str, width: int) -> str:
    """Return the summary cut to the width; keep the end of a long path, and a count such as `(+2 −1)` after it."""
    shown = one_line(summary, _LONGEST_SUMMARY)
    path, bracket, rest = shown.rpartition(" (")
    path, rest = (path, bracket + rest) if path and rest.endswith(")") else (shown, "")
    if cell_len(shown) <= width or " " in path or "/" not in path:
        return clip(shown, width)
    parts = path.split("/")
    ends = (f"{ELLIPSIS}/{'/'.join(parts[kept:])}{rest}" for kept in range(1, len(parts)))
    return next((end for end in ends if cell_len(end) <= width), clip(parts[-1] + rest, width))


def change_text(file: FileChange) -> str:
    """Return a changed file with its counts, such as `a.py +2 −1`."""
    counts = f" {counts}" if (counts := lines_text(file.added, file.removed)) else ""
    facts = change_facts(file)
    return f"{file.path}{counts}{f' {facts}' if facts else ''}"


def change_facts(file: FileChange) -> str:
    """Return what happened to a file beside added and removed lines; empty if nothing did."""
    sizes = " → ".join(bytes_text(size) for size in file.sizes)
    return ", ".join(filter(None, (file.fact, sizes)))


def wait_text(view: CallViewState, find: Callable[[str], LedgerCall | None]) -> str:
    """Return the reason for waiting. Of calls that are not over, name the first that needs the user, else the first.

    Args:
        find: returns a call by its id; None if it is unknown.
    """
    found = [find(call_id) for call_id in view.waits_on]
    # The event named the calls of its moment; some may be over by now.
    others = [call for call in found if call is not None and not call.view.ended]
    asking = [call for call in others if call.view.phase == "asking"]
    more = f" +{len(others) - 1}" if len(others) > 1 else ""
    if asking:
        return f"after #{asking[0].number}, which needs you{more}"
    if others:
        return f"waits for #{others[0].number} {one_line(others[0].view.name, 12)}{more}"
    return _WAITS[view.waits_for] if view.waits_for is not None else "queued"
