"""Stages 12 to 14 of a call that ran: what everybody sees of its result: model, screen and journal alike."""

from dataclasses import replace

from tui_agent.execution.execution_services import Engine, GuardrailTrip
from tui_agent.execution.hook_dispatch import ask_about_failure, ask_after_tool
from tui_agent.execution.json_coercion import coerce_metrics
from tui_agent.execution.outcomes import Outcome, failure, overridden
from tui_agent.execution.untrusted_calls import asked
from tui_agent.protocol.messages import TextBlock
from tui_agent.protocol.tool import ToolResult

from .admission import publish_trip, trip_from_answer, with_halt
from .call_state import CallState
from .truncate_result import fit, reads_archive


async def finish_result(engine: Engine, state: CallState, outcome: Outcome) -> Outcome:
    """Stages 12 and 13, and what comes before them where the call failed: for whatever a tool, a hook or a person gave,
    whatever way it came by. What the engine itself says of a call that did not run is nobody's secret."""
    outcome = await ask_failure_hooks(engine, state, outcome)
    if not state.started and not outcome.given:
        return outcome
    outcome = await apply_result_hooks(engine, state, outcome)
    outcome = await guard_output(engine, state, outcome)
    if state.channel is not None and outcome.status != "withheld":
        await state.channel.publish_held()
    return outcome


async def ask_failure_hooks(engine: Engine, state: CallState, outcome: Outcome) -> Outcome:
    """Before stage 12: a call that failed may get a result from a hook, or end the run (S4-64, C27)."""
    if outcome.status not in ("error", "timeout", "not_found") or not engine.hooks.has("on_tool_error"):
        return outcome
    answer = await ask_about_failure(engine.hooks, state.call, outcome.result.text, engine.publisher)
    if answer.fallback is not None:
        outcome = replace(overridden(answer.fallback), error_kind=outcome.error_kind)
    return outcome if answer.continue_on_error else replace(outcome, halts="error", why=outcome.result.text)


async def apply_result_hooks(engine: Engine, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 12: hooks may replace the result before anybody sees it (C39)."""
    if not engine.hooks.has("after_tool"):
        return outcome
    answer = await ask_after_tool(engine.hooks, state.call, state.arguments, outcome.result, engine.publisher)
    if isinstance(answer, str):
        ran = "did not run" if outcome.given and not state.started else "ran"
        text = f"The call {ran} (status {outcome.status}), and its result cannot be shown. {answer}."
        return replace(failure("error", text, "hook_failed"), halts=outcome.halts, why=outcome.why)
    return outcome if answer is outcome.result else outcome.with_result(answer)


async def guard_output(engine: Engine, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 13: a result that trips a guardrail is withheld everywhere, and with it all the call reported (P72)."""
    trip = await _output_trip(engine, state, outcome.result)
    if trip is None and state.channel is not None and engine.reporting == "held":
        # A copy: a tool that was given up may still measure.
        state.metrics = coerce_metrics(state.metrics)
        if state.channel.held or state.metrics:
            trip = await _output_trip(engine, state, state.channel.held_content(state.metrics))
        state.metrics_passed = True
    if trip is None:
        return outcome
    publish_trip(engine, trip, "tool_output")
    state.metrics = {}
    withheld = failure("withheld", f"The result was withheld by guardrail {trip.name}: {trip.reason}", "guardrail")
    return with_halt(withheld, trip) if trip.halts else replace(withheld, halts=outcome.halts)


async def add_notes_and_truncate(engine: Engine, state: CallState, outcome: Outcome) -> Outcome:
    """Stage 14: adds what the model must know beside the result, and makes it fit (S3-20, S3-21)."""
    options = engine.options
    told = notes_of(state)
    if told:
        notes = tuple(TextBlock(text=f"[{note}]") for note in told)
        result = outcome.result.model_copy(update={"content": (*notes, *outcome.result.content)})
        outcome = replace(outcome, result=result)
    limit, archive = options.result_limit, options.archive_dir
    if state.tool is not None and archive is not None and reads_archive(state.tool, state.arguments, archive):
        # Whoever fetches what was left out would get it cut again, for ever; such a tool reads in pages (P67).
        limit = None
    return await fit(outcome, call_id=state.call.id, limit=limit, archive_dir=archive, publisher=engine.publisher)


def notes_of(state: CallState) -> tuple[str, ...]:
    """Return the notes for the model beside the result, once it is known whether the call ran."""
    if not state.edited_names:
        return state.notes
    if not state.started:
        outcome = "The call did not run."
    elif state.arguments == state.edited:
        outcome = "The call ran with them."
    else:
        outcome = "They were changed again before it ran."
    changed = ", ".join(sorted(state.edited_names))
    return (*state.notes, f"The user changed the arguments before approving: {changed}. {outcome}")


async def _output_trip(engine: Engine, state: CallState, result: ToolResult) -> GuardrailTrip | None:
    if engine.guardrails is None or not engine.guardrails.looks_at_results:
        return None
    return trip_from_answer(await asked(engine.guardrails.check_output, state.call, result, timeout=None), quiet=True)
