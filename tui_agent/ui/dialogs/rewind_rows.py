"""Rows of the rewind page: the points to go back to, then each file with what a rewind would do to it. Pure."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from pathlib import Path

from tui_agent.ui.base.commands import command
from tui_agent.ui.bridge.engine_types import FileStep, RewindOutcome, RewindPlan, RewindPoint, Scope, StepKind
from tui_agent.ui.text.amounts import count_text, names_text
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line, Run
from tui_agent.ui.text.sanitiser import one_line, visible
from tui_agent.ui.text.styled_lines import clipped, key_runs, wrapped

SCOPES: tuple[Scope, ...] = ("both", "files", "conversation")
"""Scopes of a rewind, in the order in which a key steps through them."""

_SCOPE_LABELS: dict[Scope, str] = {
    "both": "files and conversation",
    "files": "files only",
    "conversation": "conversation only",
}
_KIND_LABELS: dict[StepKind, tuple[str, str]] = {
    "restore": ("changed back", "warning"),
    "delete": ("deleted", "error"),
    "create": ("created again", "success"),
    "stuck": ("stays", "muted"),
}
_LEFT = ("left alone", "muted")
_LABEL = 15
_COUNTS = 14
_LONGEST = 200


def local_time_text(milliseconds: int) -> str:
    """Return a time in the local time zone."""
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%m-%d %H:%M")


def point_rows(points: Sequence[RewindPoint], cursor: int, width: int, when: Sequence[str]) -> list[Line]:
    """Return one row for each point: time, the user's message, and the changes of files since."""
    rows: list[Line] = []
    for place, (point, time) in enumerate(zip(points, when, strict=True)):
        changed = _counts(point.added, point.removed)
        files = count_text(point.files, "file") if point.files else "no files"
        right = f"{files:>9} {changed:>{_COUNTS}}"
        sign = "" if point.is_turn else "↶ undo: "
        room = max(8, width - len(right) - len(time) - 6)
        text = one_line(visible(point.text.strip()), room - len(sign))
        here = place == cursor
        runs: list[Run] = [("› " if here else "  ", "key"), (f"{time}  ", "muted")]
        runs += [(sign, "muted"), (f"{text:<{max(0, room - len(sign))}}", "strong" if here else ""), (right, "muted")]
        rows.append(Line(clipped(runs, width)))
    return rows


def plan_rows(
    plan: RewindPlan, scope: Scope, cursor: int, overwritten: AbstractSet[Path], width: int
) -> tuple[list[Line], list[int]]:
    """Return all that a rewind would do, and the row at which each file begins."""
    rows = _heading(plan, scope, width)
    starts: list[int] = []
    if scope == "conversation":
        if plan.steps:
            rows += _muted_rows(f"{count_text(len(plan.steps), 'file')} changed since; they stay as they are.", width)
        return rows, starts
    for place, step in enumerate(plan.steps):
        starts.append(len(rows))
        here = place == cursor
        rows.append(_step_row(step, width, here=here, taken=step.path in overwritten))
        if step.problem:
            rows += [row.prefixed(("     ", "")) for row in wrapped([(step.problem, "warning")], width - 5)]
        if step.diff and (here or step.is_conflict):
            diff = diff_rows(step.diff.files, width - 5, clean=visible)
            rows += [row.prefixed(("     ", "")) for row in diff]
    if not plan.steps:
        rows += _muted_rows("No file changed since.", width)
    return rows, starts


def state_row(plan: RewindPlan, scope: Scope, overwritten: AbstractSet[Path], width: int) -> Line:
    """Return the number of files that go back and that do not."""
    done = len(plan.chosen(scope, overwritten))
    left = 0 if scope == "conversation" else len(plan.steps) - done
    words = [count_text(done, "file goes back", "files go back") if done else "no file changes"]
    words += [count_text(left, "is left alone", "are left alone")] if left else []
    return Line(clipped([(" · ".join(words), "warning" if left else "muted")], width))


def key_row(names: Sequence[str], counting: AbstractSet[str], width: int, choice: str = "") -> Line:
    """Return the row of keys. Keys that do not work yet are dim; `choice` relabels the key that chooses."""
    entries = [(name, command(f"rewind.{name}")) for name in names]
    answers = [
        (entry.key_text, choice if choice and name == "choose" else entry.text, name in counting)
        for name, entry in entries
    ]
    return Line(clipped(key_runs(answers), width))


def rewind_outcome_text(outcome: RewindOutcome) -> str:
    """Return the result of a rewind in a sentence or two."""
    words = [f"{count_text(len(outcome.done), 'file')} changed back."] if outcome.done else []
    if outcome.left:
        words.append(f"Left as they are: {names_text(outcome.left)}.")
    if outcome.failed:
        words.append(f"Not changed: {names_text(outcome.failed, 5)}.")
    return " ".join(words)


def _heading(plan: RewindPlan, scope: Scope, width: int) -> list[Line]:
    """Return the point to go back to, the scope, and the effect on the conversation."""
    rows = wrapped([(one_line(visible(plan.text.strip()), _LONGEST), "strong")], width)
    if plan.call_id is None:
        runs: list[Run] = []
        for one in SCOPES:
            chosen = one == scope
            runs.append(
                (f"[{_SCOPE_LABELS[one]}]" if chosen else f" {_SCOPE_LABELS[one]} ", "key" if chosen else "muted")
            )
            runs.append(("  ", ""))
        rows.append(Line(clipped(runs, width)))
        if scope != "files":
            draft = "; your message goes into the composer" if plan.draft else ""
            gone = count_text(plan.messages, "message is", "messages are")
            rows += _muted_rows(f"{gone} no longer part of the conversation{draft}.", width)
        else:
            rows += _muted_rows("The conversation stays; the agent learns what changed.", width)
    else:
        rows += _muted_rows("Only the changes of this call are undone; the conversation stays.", width)
    for note in plan.notes:
        rows += wrapped([(note, "warning")], width)
    return [*rows, Line()]


def _step_row(step: FileStep, width: int, *, here: bool, taken: bool) -> Line:
    leaves = step.is_conflict and not taken
    words, style = _LEFT if leaves else _KIND_LABELS[step.kind]
    box = ("[x] " if taken else "[ ] ") if step.is_conflict else ""
    counts = "" if step.problem else _counts(step.diff.added, step.diff.removed)
    label = f"{box}{words}"
    room = max(8, width - _LABEL - len(counts) - 5)
    runs: list[Run] = [("› " if here else "  ", "key"), (f"{label:<{_LABEL}} ", style)]
    runs += [(f"{one_line(visible(step.shown), room):<{room}} ", "strong" if here else ""), (counts, "muted")]
    return Line(clipped(runs, width))


def _counts(added: int, removed: int) -> str:
    return f"+{added} −{removed}" if added or removed else ""


def _muted_rows(text: str, width: int) -> list[Line]:
    return wrapped([(text, "muted")], width)
