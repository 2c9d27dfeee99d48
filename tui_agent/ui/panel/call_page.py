"""Rows of the detail page: input, output, changes, decision and timing of a call. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tui_agent.protocol.amounts import bytes_text, count_text, seconds_text
from tui_agent.protocol.report_text import REFUSED_BY, status_words, via_words
from tui_agent.protocol.trial import REPOSITORY, ProposedChanges
from tui_agent.protocol.visible_text import whole_count
from tui_agent.ui.state.call_records import CallTrial, question_text, repository_text
from tui_agent.ui.state.call_view_state import PLACE_MARKS, CallViewState
from tui_agent.ui.text.decision_rows import (
    argument_rows,
    argument_texts,
    beside,
    change_blocks,
    file_rows,
    labelled_rows,
    tree_runs,
    verdict_rows,
)
from tui_agent.ui.text.diff_rows import diff_rows
from tui_agent.ui.text.line import Line
from tui_agent.ui.text.sanitiser import ends_of, sanitise, shown_path, shown_summary, visible
from tui_agent.ui.text.styled_lines import hard_wrapped, prefixed_lines, wrapped
from tui_agent.ui.text.terminal_output import output_lines

from .call_rows import change_text

MAX_OUTPUT_LINES = 5_000
"""Most lines shown of an output, half from its head and half from its tail."""
MAX_OUTPUT_CHARACTERS = 100_000
"""Most characters shown of an output, and of a diff."""
MAX_INPUT_CHARACTERS = 20_000
"""Most characters shown of all arguments together."""

TAKEOVER_NOTE = "result of the same call in the interrupted response"
"""Note on a call whose result comes from the same call in an interrupted response."""

NOT_COMPARED = "Some changes may be missing: the workspace has too many files to compare, or the disk was slow."

_LEAST_OF_ARGUMENT = 200
_LEAST_WAIT = 0.05
"""Seconds of waiting that are worth a row."""
_PLAIN_NAMES = {
    "old_string": "old text",
    "new_string": "new text",
    "replace_all": "everywhere",
    "run_in_background": "in background",
}
_UNITS: Mapping[str, Callable[[float], str]] = {
    "_bytes": lambda value: bytes_text(int(value)),
    "_ms": lambda value: seconds_text(value / 1000),
    "_s": seconds_text,
    "_seconds": seconds_text,
}
_LABEL = 13
"""Cells of most labels."""
_STATES = {"queued": "queued", "waiting": "waits", "asking": "needs you", "running": "runs", "ended": "ended"}


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page."""

    title: str
    rows: Sequence[Line]


def call_sections(
    view: CallViewState, width: int, now: float, whole: str | None = None, root: str = ""
) -> list[Section]:
    """Return the sections that have content.

    Args:
        now: monotonic seconds, as in the events of the call.
        whole: the whole output, read from its file; None: as in the result.
        root: the workspace, to which paths are shown relative; empty for none.
    """
    makers: tuple[tuple[str, Callable[[], list[Line]]], ...] = (
        ("Output", lambda: _output_rows(view, width, whole)),
        ("Changes" if view.changes.trial.proposed else "Change", lambda: _change_rows(view, width)),
        ("Input", lambda: _input_rows(view, width, root)),
        ("Decision", lambda: _decision_rows(view, width, root)),
        ("Timing", lambda: _timing_rows(view, width, now)),
    )
    return [Section(title, rows) for title, make in makers if (rows := make())]


def state_text(view: CallViewState) -> str:
    """Return the state of the call, or its result status."""
    if view.status is None:
        return question_text(view.approval.request) if view.phase == "asking" else _STATES[view.phase]
    resolution = view.approval.resolution
    return status_words(view.status, resolution.by if resolution is not None else "user")


def page_rows(sections: Sequence[Section]) -> tuple[list[Line], list[int]]:
    """Return all rows with a heading for each section, and the first row of each section."""
    rows: list[Line] = []
    starts: list[int] = []
    for section in sections:
        if rows:
            rows.append(Line())
        starts.append(len(rows))
        rows.append(Line(((section.title, "heading-2"),)))
        rows.extend(section.rows)
    return rows, starts


def _input_rows(view: CallViewState, width: int, root: str) -> list[Line]:
    rows = _argument_rows(argument_texts(view.arguments.effective), width, root)
    if view.arguments.asked is not None:
        rows.append(Line((("the model asked for:", "muted"),)))
        rows.extend(_argument_rows(argument_texts(view.arguments.asked), width, root))
    return rows or [Line((("no input", "muted"),))]


def _argument_rows(arguments: Iterable[tuple[str, str]], width: int, root: str) -> list[Line]:
    """Return the rows of names and values, cut to the room on the page."""
    rows: list[Line] = []
    room = MAX_INPUT_CHARACTERS
    for name, value in arguments:
        text = shown_summary(value, {name: value}, root)
        rows.extend(argument_rows(plain_name(name), ends_of(text, room), width))
        # The arguments behind a huge one stay readable.
        room = max(_LEAST_OF_ARGUMENT, room - len(text))
    return rows


def _output_rows(view: CallViewState, width: int, whole: str | None) -> list[Line]:
    """Return the output so far or the result, then a traceback."""
    rows: list[Line] = []
    live, outcome = view.live, view.outcome
    if live.is_cut and not view.ended:
        rows.append(Line((("… earlier output is not shown …", "muted"),)))
    # The result has this output already, cut as the model reads it.
    so_far = "" if view.ended and outcome.result else live.text
    for text in filter(None, (whole or outcome.result, so_far, live.partial)):
        rows.extend(_text_rows(text, width))
    if live.progress and not view.ended:
        rows.extend(wrapped([(sanitise(live.progress), "muted")], width))
    if outcome.persisted_path is not None and whole is None:
        rows.extend(labelled_rows("all of it in", [outcome.persisted_path], width))
    if outcome.traceback:
        error = Line(((sanitise(plain_name(outcome.error_kind or "error")), "error"),))
        rows.extend([Line(), error, *_text_rows(outcome.traceback, width)])
    if rows or (view.timing.started_at is None and not view.ended):
        return rows
    return [Line((("nothing yet" if not view.ended else "nothing", "muted"),))]


def _text_rows(text: str, width: int) -> list[Line]:
    """Return the output line by line with its colours; of very many lines the first and the last."""
    text = text.rstrip("\n\r")
    total = whole_count(text)
    if len(text) <= MAX_OUTPUT_CHARACTERS:
        lines = output_lines(text)
    else:
        half = MAX_OUTPUT_CHARACTERS // 2
        left = f"… {len(text) - 2 * half:,} more characters …"
        # The end begins without the colours of the beginning, so that the note between them has none.
        lines = [*output_lines(text[:half]), ((left, "muted"),), *output_lines(text[-half:])]
    half = MAX_OUTPUT_LINES // 2
    if len(lines) > MAX_OUTPUT_LINES:
        hidden = f"… {count_text(total - 2 * half, 'more line')} not shown …"
        lines = [*lines[:half], ((hidden, "muted"),), *lines[-half:]]
    return [row for runs in lines for row in hard_wrapped(runs, width)]


def _change_rows(view: CallViewState, width: int) -> list[Line]:
    """Return the changes made or proposed; a list of files comes first if the diffs do not show them all."""
    changes = view.changes
    if changes.trial.proposed is not None:
        return _trial_rows(view, changes.trial.proposed, width)
    rows = diff_rows(view.diff.files, width, clean=visible)
    unknown = (view.outcome.details or {}).get("files_changed", 0) is None
    # One file with its differences needs no list above it.
    if all(file.diff for file in changes.files) and changes.count < 2 and not unknown:
        return rows
    listed = wrapped([(NOT_COMPARED, "muted")], width) if unknown else []
    listed += [row for file in changes.files for row in hard_wrapped([(sanitise(change_text(file)), "strong")], width)]
    if (left := changes.count - len(changes.files)) > 0:
        listed.append(Line(((f"… {count_text(left, 'more file')}", "muted"),)))
    return [*listed, *([Line(), *rows] if rows else [])]


def _trial_rows(view: CallViewState, proposed: ProposedChanges, width: int) -> list[Line]:
    """Return what a command changed in its trial: kept files with their diffs, discarded ones, or all that waits."""
    trial = view.changes.trial
    if not trial.is_settled:
        return [row for rows in change_blocks(proposed, width) for row in rows]
    blocks: list[list[Line]] = []
    if trial.kept or trial.kept_count:
        by = "by a rule or the mode" if trial.by_policy else ""
        blocks.append([_heading("kept", trial.kept_count, by), *_repository_row(trial, trial.kept, width)])
        for change in view.changes.files:
            name = hard_wrapped([(sanitise(change_text(change)), "strong")], width)
            blocks.append([*name, *diff_rows(change.diff.files, width, clean=visible)])
    if trial.discarded:
        blocks.append([_heading("discarded", trial.discarded_count, trial.reason)])
        blocks[-1] += _repository_row(trial, trial.discarded, width)
        blocks.extend(file_rows(file, width) for file in proposed.files if file.path in trial.discarded)
        blocks.extend(wrapped(tree_runs(tree), width) for tree in proposed.trees if tree.path in trial.discarded)
    return [row for number, rows in enumerate(blocks) for row in ([Line(), *rows] if number else rows)]


def _heading(word: str, count: int, reason: str) -> Line:
    facts = " · ".join(filter(None, (count_text(count, "file") if count else "", visible(reason))))
    return Line(((word, "heading-2"), (f"  {facts}", "muted")))


def _repository_row(trial: CallTrial, paths: Sequence[str], width: int) -> list[Line]:
    return wrapped([(visible(repository_text(trial)), "strong")], width) if REPOSITORY in paths else []


def _decision_rows(view: CallViewState, width: int, root: str) -> list[Line]:
    """Return the permission decision, the user's answer and the hooks; each reason once."""
    rows: list[Line] = []
    approval = view.approval
    decision, request, resolution = approval.decision, approval.request, approval.resolution
    # The rule, the question and its only part often have the same reason.
    told: set[str] = set()
    if decision is not None:
        verb = {"allow": "allowed", "ask": "asked", "deny": "denied"}[decision.decision]
        source = decision.source.replace("_", " ")
        rows.extend(_labelled(f"{verb} by {source}", decision.rule or decision.reason, width))
        told |= {decision.rule or decision.reason}
        rows.extend(_labelled("mode", decision.mode.words, width))
        place = PLACE_MARKS.get(view.changes.trial.place, "")
        rows.extend(_labelled("place", place, width) if place else [])
    if request is not None and request.reason not in told:
        rows.extend(_labelled("asked because", request.reason, width))
        told |= {request.reason}
    for part in decision.parts if decision is not None else ():
        rule, reason = (None if part.rule in told else part.rule), ("" if part.reason in told else part.reason)
        rows.extend(verdict_rows(part.model_copy(update={"rule": rule, "reason": reason}), width))
    if request is not None:
        rows.extend(labelled_rows("touches", [shown_path(path, root) for path in request.targets], width))
        for line in request.trace:
            rows.extend(
                prefixed_lines(wrapped([(visible(line), "muted")], width - 2), (("· ", "muted"),), (("  ", ""),))
            )
    if resolution is not None:
        scope = f" for the {resolution.scope}" if resolution.scope != "once" else ""
        rows.extend(_labelled("answer", _answer_text(view) + scope, width))
        if resolution.note:
            rows.extend(_labelled("with the note", resolution.note, width))
    for hook in approval.hooks:
        answer = " · ".join(filter(None, (hook.action, hook.reason, seconds_text(hook.ms / 1000) if hook.ms else "")))
        rows.extend(_labelled(f"hook {hook.name} ({plain_name(hook.event)})", answer, width))
    return rows


def _answer_text(view: CallViewState) -> str:
    resolution = view.approval.resolution
    if resolution is None:
        return ""
    decision, by = resolution.decision, resolution.by
    if resolution.via:
        return via_words(decision, resolution.via)
    verb = {"approve": "approved", "deny": "denied", "skip": "skipped"}.get(decision, decision)
    if decision == "deny" and by in REFUSED_BY:
        return REFUSED_BY[by]
    return f"{verb} by {'you' if by == 'user' else 'a rule' if by == 'policy' else by}"


def _timing_rows(view: CallViewState, width: int, now: float) -> list[Line]:
    """Return the durations and what the tool measured; waiting for the user is separate, the title has the state."""
    timing, outcome = view.timing, view.outcome
    waited = (timing.queued_ms if view.ended else view.waited_ms(now)) / 1000
    values = [
        ("attempt", str(timing.attempt) if timing.attempt > 1 else ""),
        ("taken over", TAKEOVER_NOTE if outcome.took_over else ""),
        ("waited", seconds_text(waited) if waited >= _LEAST_WAIT else ""),
        ("for you", seconds_text(timing.approval_ms / 1000) if timing.approval_ms else ""),
        ("ran", seconds_text(view.elapsed_ms(now) / 1000) if timing.started_at is not None else ""),
        ("limit", seconds_text(timing.timeout_s) if timing.timeout_s is not None else ""),
        ("size", bytes_text(outcome.size_bytes) if outcome.size_bytes else ""),
        ("written", bytes_text(view.live.bytes_total) if view.live.bytes_total and not view.ended else ""),
        # Many tools measure the size that is shown above.
        *(metric_text(name, value) for name, value in outcome.metrics if value != outcome.size_bytes),
    ]
    return [row for name, value in values if value for row in _labelled(name, value, width)]


def plain_name(name: str) -> str:
    """Return the name of an argument, a mode or a metric in plain words."""
    return _PLAIN_NAMES.get(name, name.replace("_", " "))


def metric_text(name: str, value: float | str | bool) -> tuple[str, str]:
    """Return name and value of a metric: sizes as sizes, times as times, whole numbers as integers."""
    if isinstance(value, bool):
        return plain_name(name), "yes" if value else "no"
    if isinstance(value, str):
        return plain_name(name), value
    for unit, text in _UNITS.items():
        if name.endswith(unit):
            return plain_name(name.removesuffix(unit)), text(value)
    return plain_name(name), f"{int(value):,}" if value == int(value) else f"{value:,.2f}"


def _labelled(label: str, value: str, width: int) -> list[Line]:
    return beside(label, lambda room: wrapped([(visible(value), "")], room), width, least=_LABEL)
