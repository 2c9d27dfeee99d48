"""Stage 11 of a call: the tool runs, its reports are told, and it ends in time even against its will (C24, P35)."""

import asyncio
import secrets
from functools import partial

from tui_agent.execution.execution_services import Engine
from tui_agent.execution.loop_clock import now
from tui_agent.execution.outcomes import Outcome, answered, failure, left_running, not_recorded, timed_out, with_partial
from tui_agent.execution.untrusted_calls import Crash, asked, call_or_default, copy_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.protocol.events import ProcessStarted, ToolStarted
from tui_agent.protocol.tool import StartedProcess, ToolContext, ToolResult

from .admission import judge_nested_call
from .call_state import CallState
from .early_executions import NO_LONGER_NEEDED
from .target_identity import identity_of
from .tool_execution import ToolExecution
from .update_channel import UpdateChannel


async def run_tool(engine: Engine, state: CallState) -> Outcome:
    """Runs the tool and gives how that went; the timeout begins here, so that no approval counts into it (P40).

    A call that is taken back sees its token first, is cancelled after the grace, and is given up after as much again.
    """
    limit = state.time_limit
    state.phase = "running"
    claimed = claim_early_execution(state)
    publish_start(engine, state, adopted_from=claimed.call_id if claimed else None)
    refusal = await prepare_for_effects(engine, state)
    if refusal is not None:
        return refusal
    state.channel = channel = UpdateChannel(state.call, engine.hooks, engine.publisher, engine.reporting)
    execution = state.execution = claimed or _new_execution(state, channel)
    execution.channel = channel
    state.metrics, state.started_at = execution.metrics, execution.began_at
    timer = None
    if limit is not None:
        rest = max(execution.began_at + limit - now(), 0.0)
        timer = asyncio.get_running_loop().call_later(rest, _stop_for_timeout, state, limit)
    try:
        await _until_it_ends(engine, state, execution, channel, begin=claimed is None)
    finally:
        if timer is not None:
            timer.cancel()
        channel.close()
    _record_own_files(engine, state)
    return _outcome(engine, state, execution)


def claim_early_execution(state: CallState) -> ToolExecution | None:
    """What was begun for this call by an earlier attempt at the same answer, if it is what would be begun now: the
    same tool and arguments, and nothing could change what it sees in between."""
    execution, state.claimed = state.claimed, None
    if execution is None:
        return None
    same = execution.tool is state.tool and execution.arguments == state.arguments
    if same and not state.had_to_wait and not execution.is_stopped:
        return execution
    execution.stop(NO_LONGER_NEEDED)
    return None


async def prepare_for_effects(engine: Engine, state: CallState) -> Outcome | None:
    """Waits until a call that may change something is on record as started (P82); why it does not run, or None."""
    if engine.before_effects is None or state.read_only:
        return None
    answer = None
    try:
        answer = await state.unless_stopped(asked(engine.before_effects, timeout=None))
    except TimeoutError:
        # Only the stop_timeout ends the wait, and only for a call that was taken back.
        if state.stopping is None:
            raise
    if isinstance(answer, Crash) and state.stopping is None:
        return not_recorded(answer.text)
    return state.stopping


def publish_start(engine: Engine, state: CallState, *, adopted_from: str | None = None) -> None:
    """Tells that a call begins, once."""
    if state.start_published:
        return
    state.start_published = True
    tool = state.tool
    state.mark = secrets.token_hex(16) if tool is not None and tool.starts_processes else ""
    summary = (
        "" if tool is None or state.invalid_outcome else call_or_default(tool.summarise, state.arguments, otherwise="")
    )
    engine.publisher.publish(
        ToolStarted(
            call_id=state.call.id,
            name=state.call.name,
            args=copy_of(state.arguments),
            read_only=state.read_only,
            timeout_s=state.time_limit,
            attempt=state.attempt,
            tool_kind=type(tool).__name__ if tool else "",
            summary=summary,
            preview=state.preview,
            adopted_from=adopted_from,
            mark=state.mark,
        )
    )


def _new_execution(state: CallState, channel: UpdateChannel) -> ToolExecution:
    return ToolExecution(
        call_id=state.call.id,
        tool=state.known_tool,
        asked=state.call.arguments,
        arguments=state.arguments,
        token=CancellationToken() if state.early else state.token,
        grace=state.grace,
        metrics=state.metrics,
        channel=channel,
    )


def _context(engine: Engine, state: CallState, execution: ToolExecution) -> ToolContext:
    return ToolContext(
        call_id=state.call.id,
        tool_name=execution.tool.name,
        step=state.step,
        cancellation=execution.token,
        report=execution.report,
        metrics=execution.metrics,
        targets=state.targets(),
        answer=state.answer,
        can_use=partial(judge_nested_call, engine),
        mark=state.mark,
        report_process=partial(_publish_process, engine, state),
    )


def _publish_process(engine: Engine, state: CallState, process: StartedProcess) -> None:
    engine.publisher.publish(ProcessStarted(call_id=state.call.id, **process.model_dump()))


def _record_own_files(engine: Engine, state: CallState) -> None:
    """Notes which files this call put where it wrote, so that nobody is asked again because of them."""
    # Paths are looked up on the disk: only for calls that may have changed something, and where somebody asks.
    accesses = None if state.read_only or engine.policy is None else state.accesses()
    for path in accesses.writes if accesses else ():
        found = identity_of(str(path))
        if found is not None:
            engine.own_files[str(path)] = found


async def _until_it_ends(
    engine: Engine, state: CallState, execution: ToolExecution, channel: UpdateChannel, *, begin: bool
) -> None:
    """Waits until the tool has ended, or the call has ended without it."""
    context = _context(engine, state, execution) if begin else None
    if not channel.hooked:
        await _run_or_join(state, execution, context)
        return
    async with asyncio.TaskGroup() as group:
        pump = group.create_task(channel.pump())
        await _run_or_join(state, execution, context)
        channel.finish()
        await state.in_time(channel.told.wait())
        pump.cancel()


async def _run_or_join(state: CallState, execution: ToolExecution, context: ToolContext | None) -> None:
    """Runs the tool here, or stays by where it runs already; without a `context` it was begun before."""
    try:
        if state.early is None and context is not None:
            await execution.run(context)
        else:
            await _join_execution(state, execution, context)
    finally:
        state.finished_at = execution.ended_at or now()
    state.phase = "ran"


async def _join_execution(state: CallState, execution: ToolExecution, context: ToolContext | None) -> None:
    try:
        if state.early is not None and context is not None:
            state.early.begin(execution, context)
        await state.unless_stopped(execution.over.wait())
    except TimeoutError:
        # The call was set aside: it ends, and its execution goes on without it.
        if state.stopping is None:
            raise
    except asyncio.CancelledError:
        execution.stop(NO_LONGER_NEEDED)
        raise


def _stop_for_timeout(state: CallState, seconds: float) -> None:
    state.stop(timed_out(state.call.name, seconds))


def _outcome(engine: Engine, state: CallState, execution: ToolExecution) -> Outcome:
    stopping = state.stopping
    match execution.answer:
        case Crash() as crash:
            return stopping or crashed(state.call.name, crash, engine.options.error_traceback)
        case ToolResult() as result:
            return answered(result) if stopping is None else with_partial(stopping, result)
        case None:
            assert stopping is not None
            # A call that was set aside or never began has no end, and no thread that works on.
            lives_on = execution.tool.runs_in_thread and execution.ended_at is not None
            return left_running(stopping) if lives_on else stopping


def crashed(name: str, crash: Crash, traceback: str) -> Outcome:
    """The outcome of a tool that raised: its message, and a traceback for whoever is to see it (C23, S0-37)."""
    error = crash.error
    if isinstance(error, asyncio.CancelledError):
        return failure("cancelled", f"Tool {name} cancelled itself.", "cancelled")
    if isinstance(error, OperationCancelledError):
        return failure("cancelled", crash.text, "cancelled")
    if isinstance(error, ToolError):
        return failure("error", crash.text, "tool_error")
    outcome = failure("error", crash.text, type(error).__name__)
    if traceback == "none":
        return outcome
    text = f"{crash.text}\n\n{crash.trace}" if traceback == "model" else crash.text
    result = ToolResult.of_text(text, is_error=True, details={"traceback": crash.trace})
    return Outcome("error", result, outcome.error_kind, crash.trace)
