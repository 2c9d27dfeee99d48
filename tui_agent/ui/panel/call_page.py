"""Rows of the detail page: input, output, changes, decision and timing of a call. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.state.call_view_state import CallViewState
from tui_agent.ui.text.amounts import bytes_text, count_text, seconds_text
from tui_agent.ui.text.argument_rows import argument_rows, argument_texts, beside, labelled_rows, verdict_rows
from tui_agent.ui.text.diff_layout import layout_diff
from tui_agent.ui.text.diff_parser import read_diff
from tui_agent.ui.text.sanitiser import ends_of, sanitise, settle, visible
from tui_agent.ui.text.styled_lines import Line, folded, prefixed_lines, wrapped

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
_LABEL = 13
"""Cells of most labels."""
_STATES = {"queued": "queued", "waiting": "waits", "asking": "needs you", "running": "runs", "ended": "ended"}


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page."""

    title: str
    rows: Sequence[Line]


def call_sections(view: CallViewState, width: int, now: float, whole: str | None = None) -> list[Section]:
    """Return the sections that have content.

    Args:
        view: the call.
        width: cells of a row.
        now: monotonic seconds, for running clocks.
        whole: the whole output, if it was read from its file.
    """
    makers: tuple[tuple[str, Callable[[], list[Line]]], ...] = (
        ("Input", lambda: _input_rows(view, width)),
        ("Output", lambda: _output_rows(view, width, whole)),
        ("Change", lambda: _change_rows(view, width)),
        ("Decision", lambda: _decision_rows(view, width)),
        ("Timing", lambda: _timing_rows(view, width, now)),
    )
    return [Section(title, rows) for title, make in makers if (rows := make())]


def state_text(view: CallViewState) -> str:
    """Return the state of the call, or its result status."""
    return view.status.replace("_", " ") if view.status is not None else _STATES[view.phase]


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


def _input_rows(view: CallViewState, width: int) -> list[Line]:
    rows = _arguments(view.args, width)
    if view.args_asked is not None:
        rows.append(Line((("the model asked for:", "muted"),)))
        rows.extend(_arguments(view.args_asked, width))
    return rows or [Line((("no input", "muted"),))]


def _arguments(args: JsonObject, width: int) -> list[Line]:
    """Return the rows of the arguments, cut to the room on the page."""
    rows: list[Line] = []
    room = MAX_INPUT_CHARACTERS
    for name, text in argument_texts(args):
        rows.extend(argument_rows(name, ends_of(text, room), width))
        room = max(_LEAST_OF_ARGUMENT, room - len(text))
    return rows


def _output_rows(view: CallViewState, width: int, whole: str | None) -> list[Line]:
    """Return the output so far or the result, then a traceback."""
    rows: list[Line] = []
    if view.output_cut and not view.ended:
        rows.append(Line((("… earlier output is not shown …", "muted"),)))
    for text in filter(None, (whole or view.result, "" if view.ended and view.result else view.output, view.partial)):
        rows.extend(_text_rows(text, width))
    if view.progress and not view.ended:
        rows.extend(wrapped([(sanitise(view.progress), "muted")], width))
    if view.persisted_path is not None and whole is None:
        rows.extend(labelled_rows("all of it in", [view.persisted_path], width))
    if view.traceback:
        rows.extend(
            [Line(), Line(((sanitise(view.error_kind or "error"), "error"),)), *_text_rows(view.traceback, width)]
        )
    return rows or [Line((("nothing yet" if not view.ended else "nothing", "muted"),))]


def _text_rows(text: str, width: int) -> list[Line]:
    """Return the output line by line; of very many lines the first and the last."""
    lines = sanitise(settle(ends_of(text, MAX_OUTPUT_CHARACTERS))).rstrip("\n").split("\n")
    half = MAX_OUTPUT_LINES // 2
    if len(lines) > MAX_OUTPUT_LINES:
        left = len(lines) - 2 * half
        lines = [*lines[:half], f"… {count_text(left, 'more line')} not shown …", *lines[-half:]]
    return [row for line in lines for row in folded([(line, "")], width)]


def _change_rows(view: CallViewState, width: int) -> list[Line]:
    """Return the changes made or proposed; a list of files comes first if the diffs do not show them all."""
    diff = ends_of(view.diff, MAX_OUTPUT_CHARACTERS)
    rows = layout_diff(read_diff(diff, visible), width) if diff else []
    unknown = (view.details or {}).get("files_changed", 0) is None
    if all(file.diff for file in view.changes) and view.changed_files < 2 and not unknown:
        return rows
    listed = wrapped([(NOT_COMPARED, "muted")], width) if unknown else []
    listed += [row for file in view.changes for row in folded([(sanitise(file.words), "strong")], width)]
    if (left := view.changed_files - len(view.changes)) > 0:
        listed.append(Line(((f"… {count_text(left, 'more file')}", "muted"),)))
    return [*listed, *([Line(), *rows] if rows else [])]


def _decision_rows(view: CallViewState, width: int) -> list[Line]:
    """Return the permission decision, the user's answer and the hooks."""
    rows: list[Line] = []
    decision, request, resolution = view.decision, view.request, view.resolution
    if decision is not None:
        verb = {"allow": "allowed", "ask": "asked", "deny": "denied"}[decision.decision]
        source = decision.source.replace("_", " ")
        rows.extend(_labelled(f"{verb} by {source}", decision.rule or decision.reason, width))
        rows.extend(_labelled("mode", PermissionMode(decision.mode).value, width))
        rows.extend(row for part in decision.parts for row in verdict_rows(part, width))
    if request is not None:
        rows.extend(_labelled("asked because", request.reason, width))
        rows.extend(labelled_rows("touches", request.targets, width))
        for line in request.trace:
            rows.extend(
                prefixed_lines(wrapped([(visible(line), "muted")], width - 2), (("· ", "muted"),), (("  ", ""),))
            )
    if resolution is not None:
        scope = f" for the {resolution.scope}" if resolution.scope != "once" else ""
        rows.extend(_labelled(f"{resolution.decision}{scope} by", resolution.by, width))
        if resolution.note:
            rows.extend(_labelled("with the note", resolution.note, width))
    for hook in view.hooks:
        answer = " · ".join(filter(None, (hook.action, hook.reason, seconds_text(hook.ms / 1000) if hook.ms else "")))
        rows.extend(_labelled(f"hook {hook.name} ({hook.event})", answer, width))
    return rows


def _timing_rows(view: CallViewState, width: int, now: float) -> list[Line]:
    """Return the durations; waiting for the user is separate."""
    state = state_text(view)
    values = [
        ("state", state + (f", attempt {view.attempt}" if view.attempt > 1 else "")),
        ("taken over", TAKEOVER_NOTE if view.took_over else ""),
        ("waited", seconds_text((view.queued_ms if view.ended else view.waited_ms(now)) / 1000)),
        ("for you", seconds_text(view.approval_ms / 1000) if view.approval_ms else ""),
        ("ran", seconds_text(view.elapsed_ms(now) / 1000) if view.started_at is not None else ""),
        ("limit", seconds_text(view.timeout_s) if view.timeout_s is not None else ""),
        ("size", bytes_text(view.size_bytes) if view.size_bytes else ""),
        ("written", bytes_text(view.output_bytes) if view.output_bytes and not view.ended else ""),
        *((name, str(value)) for name, value in view.metrics),
    ]
    return [row for name, value in values if value for row in _labelled(name, value, width)]


def _labelled(label: str, value: str, width: int) -> list[Line]:
    """Return a value beside its label."""
    return beside(label, lambda room: wrapped([(visible(value), "")], room), width, least=_LABEL)
