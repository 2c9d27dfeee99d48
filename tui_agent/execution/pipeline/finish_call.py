"""Stages 12 to 14: hooks and guardrails review a call's result, which is then truncated to fit the model's window."""

import asyncio
import hashlib
import os
import re
import unicodedata
from dataclasses import replace
from pathlib import Path

from tui_agent.execution.contained_calls import asked
from tui_agent.execution.execution_services import ExecutionServices, GuardrailTrip
from tui_agent.execution.hook_dispatch import ask_about_failure, ask_after_tool
from tui_agent.execution.json_coercion import coerce_metrics, fit_for_journal
from tui_agent.execution.outcomes import Outcome, failure, lost, overridden
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.regular_file import make_private_directories
from tui_agent.protocol.tool import Tool, ToolResult
from tui_agent.protocol.visible_text import left_out_note

from .admission import publish_trip, trip_from_answer, with_halt
from .call_state import CallState, accesses_of

_HEAD_SHARE = 0.6
"""Share of the limit that the beginning gets; the end, which says more than the middle, gets the rest."""

_LINE_SLACK = 200
"""Characters by which a cut may move to fall between two lines."""

_LATER_CHANGES_SECONDS = 10.0
"""Most seconds for finding out what hooks changed in the files of a call."""

_JOINERS = "\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Characters, beside combining ones, that modify the one before: joiner, variation selectors, skin tones."""


async def finish_call(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Return the outcome as it is published: reviewed, with the user's notes, and short enough for the model."""
    events = services.hooks.events
    if services.guardrails is not None or "after_tool" in events or "on_tool_error" in events:
        # Of a stopped call without a result there is nothing to review.
        outcome = await state.in_time(finish_result(services, state, outcome)) or state.stopping or lost()
    return await add_notes_and_truncate(services, state, outcome)


async def finish_result(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Apply failure hooks and stages 12 and 13 to a result that a tool, a hook or the user supplied.

    The engine's own text about a call that did not run contains nothing to hide and skips stages 12 and 13.
    """
    # First, because a fallback is a result like any other and is reviewed as one.
    outcome = await ask_failure_hooks(services, state, outcome)
    # Hooks on results expect one that a tool, a hook or the user has made.
    if not state.started and not outcome.given:
        return outcome
    outcome = await apply_result_hooks(services, state, outcome)
    outcome = await guard_output(services, state, outcome)
    if state.run.channel is not None and outcome.status != "withheld":
        # Only now: the reports could contain what was withheld.
        await state.run.channel.publish_held()
    return outcome


async def ask_failure_hooks(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Let `on_tool_error` hooks supply a result for a failed call, or end the run (S4-64)."""
    if outcome.status not in ("error", "timeout", "not_found") or "on_tool_error" not in services.hooks.events:
        return outcome
    text = outcome.result.text
    answer = await ask_about_failure(services.hooks, state.received.call, text, services.publisher)
    if answer.fallback is not None:
        # The report still says what failed.
        outcome = replace(overridden(answer.fallback), error_kind=outcome.error_kind)
    return outcome if answer.continue_on_error else replace(outcome, halts="error", why=outcome.result.text)


async def apply_result_hooks(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 12: `after_tool` hooks may replace the result before it is published."""
    if "after_tool" not in services.hooks.events:
        return outcome
    call, arguments = state.received.call, state.prepared.arguments
    answer = await ask_after_tool(services.hooks, call, arguments, outcome.result, services.publisher)
    if isinstance(answer, str):
        ran = "did not run" if outcome.given and not state.started else "ran"
        # The hook was to hide something, so without its answer all of it stays hidden.
        text = f"The call {ran} (status {outcome.status}), and its result cannot be shown. {answer}."
        return replace(failure("error", text, "hook_failed"), halts=outcome.halts, why=outcome.why)
    outcome = outcome if answer is outcome.result else outcome.with_result(answer)
    return await _with_later_changes(state, outcome)


async def _with_later_changes(state: CallState, outcome: Outcome) -> Outcome:
    """Add to a result what hooks changed in the call's files: its tool knows the files as the call left them."""
    tool = state.prepared.tool
    if tool is None or not state.started or outcome.result.is_error:
        return outcome
    note = await asked(tool.later_changes, state.prepared.arguments, timeout=_LATER_CHANGES_SECONDS)
    if not isinstance(note, str) or not note:
        return outcome
    content = (*outcome.result.content, TextBlock(text=f"[{note}]"))
    return outcome.with_result(outcome.result.model_copy(update={"content": content}))


async def guard_output(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 13: withhold a result that trips a guardrail, and with it everything that the call reported."""
    run = state.run
    trip = await _output_trip(services, state, outcome.result)
    if trip is None and run.channel is not None and run.channel.reporting == "held":
        # A copy, because an abandoned tool may still add to its own.
        run.metrics = coerce_metrics(run.metrics)
        if run.channel.held or run.metrics:
            # Reports and metrics are a second way out for the same data.
            trip = await _output_trip(services, state, run.channel.held_content(run.metrics))
        run.metrics_passed = True
    if trip is None:
        return outcome
    publish_trip(services, trip, "tool_output")
    # Numbers can give a secret away, too.
    run.metrics = {}
    withheld = failure("withheld", f"The result was withheld by guardrail {trip.name}: {trip.reason}", "guardrail")
    return with_halt(withheld, trip) if trip.halts else replace(withheld, halts=outcome.halts)


async def _output_trip(services: ExecutionServices, state: CallState, result: ToolResult) -> GuardrailTrip | None:
    guardrails = services.guardrails
    if guardrails is None or guardrails.check_output is None:
        return None
    answer = await asked(guardrails.check_output, state.received.call, result, timeout=None)
    # Quiet: the text of its failure may quote the result.
    return trip_from_answer(answer, quiet=True)


async def add_notes_and_truncate(services: ExecutionServices, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 14: put the user's notes before the result, and truncate it (S3-20, S3-21)."""
    options, prepared = services.options, state.prepared
    fitting = fit_for_journal(outcome.result)
    if fitting is not outcome.result:
        outcome = replace(outcome, result=fitting)
    texts = notes_of(state) if state.approval.notes or state.approval.edited_names else ()
    if texts:
        # In front, where a cut in the middle cannot reach them.
        notes = tuple(TextBlock(text=f"[{note}]") for note in texts)
        result = outcome.result.model_copy(update={"content": (*notes, *outcome.result.content)})
        outcome = replace(outcome, result=result)
    limit, archive = options.result_limit, options.archive_dir
    if limit is None or len(outcome.result.text) <= limit:
        return outcome
    if prepared.tool is not None and archive is not None and reads_archive(prepared.tool, prepared.arguments, archive):
        # Truncated again, the archived text could never be read; the tools that read it do so in pages.
        return outcome
    call_id = state.received.call.id
    return await truncate(outcome, call_id=call_id, limit=limit, archive_dir=archive, publisher=services.publisher)


def notes_of(state: CallState) -> tuple[str, ...]:
    """Return the notes for the model beside the result, once it is known whether the call ran."""
    approval = state.approval
    if not approval.edited_names:
        return approval.notes
    if not state.started:
        outcome = "The call did not run."
    elif state.prepared.arguments == approval.edited:
        outcome = "The call ran with them."
    else:
        outcome = "They were changed again before it ran."
    # Names only: the values are in the call that the report shows.
    changed = ", ".join(sorted(approval.edited_names))
    return (*approval.notes, f"The user changed the arguments before approving: {changed}. {outcome}")


def reads_archive(tool: Tool, arguments: JsonObject, archive_dir: Path | None) -> bool:
    """Return True if a call reads an archived result."""
    accesses = accesses_of(tool, arguments)
    if accesses is None or archive_dir is None:
        return False
    return any(archive_dir.resolve() in path.parents for path in accesses.reads)


async def truncate(
    outcome: Outcome, *, call_id: str, limit: int | None, archive_dir: Path | None, publisher: Publisher
) -> Outcome:
    """Return the outcome with its size recorded and its text no longer than `limit`; twice is the same as once.

    Args:
        outcome: how the call ended.
        call_id: names the file.
        limit: characters of all text blocks together; None: no limit.
        archive_dir: directory that keeps the whole text of a truncated result; None: none does.
        publisher: publishes a warning if the file cannot be written.
    """
    content, whole = outcome.result.content, outcome.result.text
    if limit is None or len(whole) <= limit:
        return outcome
    path = await _archived(whole, call_id, archive_dir, publisher) if archive_dir else None
    where = f"the whole text is in {path}" if path else "the rest was not kept"
    truncated = TextBlock(text=cut_middle(whole, limit, where))
    attached = tuple(block for block in content if not isinstance(block, TextBlock))
    result = outcome.result.model_copy(update={"content": (truncated, *attached)})
    where_to = str(path) if path else None
    return replace(outcome, result=result, whole_size=outcome.result.size_bytes, persisted_path=where_to)


def cut_middle(text: str, limit: int, where: str) -> str:
    """Return the head and the tail of `text` around a note, together at most `limit` characters."""
    # The note of everything is the longest one.
    room = max(limit - len(_note(text, 0, len(text), where)), 0)
    head = _cut_position(text, int(room * _HEAD_SHARE), step=-1)
    tail = _cut_position(text, len(text) - (room - int(room * _HEAD_SHARE)), step=1)
    return text[:head] + _note(text, head, tail, where) + text[tail:]


def _note(text: str, head: int, tail: int, where: str) -> str:
    lines = text.count("\n", head, tail)
    if head > 0 and text[head - 1] != "\n":
        lines -= 1  # The head has the beginning of that line.
    return f"\n{left_out_note(f'{tail - head:,} of {len(text):,} characters', max(0, lines), where)}\n"


def _cut_position(text: str, position: int, step: int) -> int:
    """Return a position near `position` that makes the piece shorter: between two lines, or else two characters."""
    if step < 0:
        # Half a line reads like a whole one, so the cut moves to its border if that is near.
        line = text.rfind("\n", max(position - _LINE_SLACK, 0), position) + 1
    else:
        line = text.find("\n", position, position + _LINE_SLACK) + 1
    if line > 0:
        return line
    while 0 < position < len(text) and _is_joined(text[position - 1], text[position]):
        position += step
    return position


def _is_joined(before: str, after: str) -> bool:
    """Return True if the two code points are shown as parts of one character."""
    return bool(unicodedata.combining(after)) or after in _JOINERS or before == "\u200d"


async def _archived(text: str, call_id: str, archive_dir: Path, publisher: Publisher) -> Path | None:
    """Write the whole text to a file and return its path; None, after a warning, if that fails."""
    data = text.encode("utf-8")
    # The id is the provider's and may be a path.
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:64]
    path = archive_dir / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
    try:
        await asyncio.to_thread(_write, path, data)
    except OSError as error:
        text = f"Could not archive a long result ({error}). The model gets its beginning and end."
        publisher.publish(Warned(code="archive_failed", text=text, context={"call_id": call_id}))
        return None
    return path


def _write(path: Path, data: bytes) -> None:
    make_private_directories(path.parent)
    # Not through a link: the directory is known, and a command may have put one there.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
