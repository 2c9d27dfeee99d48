"""Stage 11 of a call: the tool runs, its reports are told, and it ends in time even against its will (C24, P35)."""

import asyncio

from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.protocol.events import ToolStarted
from tui_agent.protocol.function_tool import as_tool_result
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult

from .call_state import CallState, now
from .engine import BeforeEffects, Engine
from .foreign_code import Crash, Killable, careful, contained, copy_of
from .options import is_duration
from .outcomes import Outcome, answered, failure, not_recorded, timed_out, with_partial
from .updates import UpdateChannel


async def run_tool(engine: Engine, state: CallState) -> Outcome:
    """Runs the tool and gives how that went; the timeout begins here, so that no approval counts into it (P40).

    A call that is taken back sees its token first, is cancelled after the grace, and is given up after as much again.
    """
    tool = state.known_tool
    limit = time_limit(tool, state.arguments, engine.options.tool_timeout)
    state.channel = channel = UpdateChannel(state.call, engine.hooks, engine.tell)
    context = ToolContext(state.call.id, tool.name, state.step, state.token, channel.report, state.metrics)
    state.phase = "running"
    tell_start(engine, state, limit)
    refusal = await prepare_for_effects(engine, state)
    if refusal is not None:
        return refusal
    state.started_at = now()
    timer = None
    if limit is not None:
        timer = asyncio.get_running_loop().call_later(limit, _time_is_up, state, limit)
    try:
        answer = await _until_it_ends(state, tool, context, channel)
    finally:
        if timer is not None:
            timer.cancel()
        channel.close()
    return _outcome(engine, state, answer)


async def prepare_for_effects(engine: Engine, state: CallState) -> Outcome | None:
    """Waits until a call that may change something is on record as started (P82); why it does not run, or None."""
    if engine.before_effects is None or state.read_only:
        return None
    answer = None
    try:
        async with asyncio.timeout(None) as state.leash:
            answer = await contained(_called(engine.before_effects))
    except TimeoutError:
        # Only the leash ends the wait, and only for a call that was taken back.
        if state.stopping is None:
            raise
    finally:
        state.leash = None
    if isinstance(answer, Crash) and state.stopping is None:
        return not_recorded(answer.text)
    return state.stopping


def time_limit(tool: Tool, arguments: JsonObject, default: float | None) -> float | None:
    """Seconds a call may run: what the tool says of this call, else the configured time; None: no limit (C24)."""
    own = careful(tool.timeout, arguments, otherwise="default")
    if own == "none":
        return None
    return own if isinstance(own, int | float) and is_duration(own) else default


def tell_start(engine: Engine, state: CallState, limit: float | None = None) -> None:
    """Tells that a call begins, once."""
    if state.start_told:
        return
    state.start_told = True
    tool = state.tool
    summary = "" if tool is None or state.unfit else careful(tool.summarise, state.arguments, otherwise="")
    engine.tell.publish(
        ToolStarted(
            call_id=state.call.id,
            name=state.call.name,
            args=state.arguments,
            read_only=state.read_only,
            timeout_s=limit,
            tool_kind=type(tool).__name__ if tool else "",
            summary=summary,
            preview=state.preview,
        )
    )


async def _until_it_ends(
    state: CallState, tool: Tool, context: ToolContext, channel: UpdateChannel
) -> ToolResult | Crash | None:
    """What the tool gave, or how it failed; None: it was cancelled because the call was taken back."""
    if not channel.hooked:
        return await _execute(state, tool, context)
    async with asyncio.TaskGroup() as group:
        group.create_task(channel.pump())
        answer = await _execute(state, tool, context)
        channel.finish()
    return answer


async def _execute(state: CallState, tool: Tool, context: ToolContext) -> ToolResult | Crash | None:
    state.kill = asyncio.timeout(None)
    try:
        async with asyncio.timeout(None) as state.leash, state.kill:
            answer = await contained(Killable(_result_of(state, tool, context), state.kill.expired))
    except TimeoutError:
        answer = None
    finally:
        state.leash = state.kill = None
        state.finished_at = now()
    state.phase = "ran"
    return answer


async def _result_of(state: CallState, tool: Tool, context: ToolContext) -> ToolResult:
    return as_tool_result(await tool.execute(copy_of(state.arguments), context))


async def _called(function: BeforeEffects) -> None:
    await function()


def _time_is_up(state: CallState, seconds: float) -> None:
    state.stop(timed_out(state.call.name, seconds))


def _outcome(engine: Engine, state: CallState, answer: ToolResult | Crash | None) -> Outcome:
    stopping = state.stopping
    match answer:
        case Crash():
            return stopping or crashed(state.call.name, answer, engine.options.error_traceback)
        case ToolResult():
            return answered(answer) if stopping is None else with_partial(stopping, answer)
        case None:
            assert stopping is not None
            return stopping


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
