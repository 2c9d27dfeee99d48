"""Stage 11: run a call's tool, publish its start and reports, and turn its end into an outcome.

`tool_execution` runs the tool function itself; this module decides when, for which call and with what result.
"""

import asyncio
import secrets
from collections.abc import Callable
from functools import partial

from tui_agent.execution.contained_calls import Crash, asked, try_call
from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.outcomes import Outcome, crashed, left_running, not_recorded, timed_out, with_partial
from tui_agent.execution.validation import checked_arguments
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import ProcessStarted, ToolData, ToolStarted
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import SearchFilter
from tui_agent.protocol.tool import TIME_LIMIT_DATA, DataUpdate, StartedProcess, Tool, ToolContext, ToolResult, Verdict
from tui_agent.protocol.trial import Place

from .admission import judgement
from .call_state import CallState, PreparedCall
from .tool_execution import NO_LONGER_NEEDED, ToolExecution
from .update_channel import UpdateChannel, data_event


async def run_tool(services: ExecutionServices, state: CallState) -> Outcome:
    """Run the tool and return the outcome. The timeout starts here, so that it does not count the user's time."""
    run, prepared = state.run, state.accepted
    # Before the first wait: a poll for steering looks at the phase.
    state.phase = "running"
    claimed = None if run.claimed is None else claim_early_execution(state)
    publish_start(services, state, adopted_from=claimed.call_id if claimed else None)
    changes_nothing = prepared.read_only or place_of(state) != "outside"
    # A crash between the effect and its record would leave a change that no session knows of.
    if services.before_effects is not None and not changes_nothing:
        refusal = await prepare_for_effects(services, state)
        if refusal is not None:
            if claimed is not None and run.early is not None:
                # Its effect is real although this call is refused; another one may still take it over.
                run.early.set_aside(claimed)
            return refusal
    holds = services.guardrails is not None and services.guardrails.check_output is not None
    run.channel = channel = UpdateChannel(state.received.call, services.hooks, services.publisher, holds=holds)
    execution = run.execution = claimed or _new_execution(state, prepared, channel)
    # From here on its reports belong to this call.
    execution.channel = channel
    run.metrics, run.started_at = execution.metrics, execution.began_at
    # Counted from the start of the execution, which an adopted one had long ago.
    _start_timer(state, execution)
    context = None if claimed else _context(services, state, execution)
    try:
        if channel.hooked:
            await _run_with_update_hooks(state, execution, channel, context)
        else:
            await _run_or_join(state, execution, context)
    finally:
        if run.timer is not None:
            run.timer.cancel()
            run.timer = None
        # A tool may report after its end, from a thread or a child, and those reports have no call.
        channel.close()
    # The paths are looked up on disk, so only for calls that may have written, and only if a policy compares them.
    if services.policy is not None and not changes_nothing:
        accesses = state.accesses()
        if accesses is not None and accesses.writes:
            services.record_own_files(map(str, accesses.writes))
    return _outcome(services, state, execution)


def extend_time_limit(services: ExecutionServices, state: CallState, seconds: float) -> float | None:
    """Give a running call more time, and publish its new limit as data of the call.

    Returns:
        The new limit in seconds from the start; None, and nothing happens, if the call has no limit or does not run.
    """
    run = state.run
    # More time for a call that is being stopped would promise what cannot be kept.
    if run.timer is None or run.execution is None or state.stopping is not None:
        return None
    run.timer.cancel()
    run.execution.extra_seconds += seconds
    limit = _start_timer(state, run.execution)
    services.publisher.publish(
        ToolData(call_id=state.received.call.id, kind=TIME_LIMIT_DATA, data={"timeout_s": limit})
    )
    return limit


def _start_timer(state: CallState, execution: ToolExecution) -> float | None:
    """Stop the call once its time is over; return the limit in seconds."""
    configured = state.prepared.time_limit
    if configured is None:
        return None
    limit = configured + execution.extra_seconds
    deadline = execution.began_at + limit
    state.run.timer = asyncio.get_running_loop().call_at(deadline, _stop_for_timeout, state, limit)
    return limit


def claim_early_execution(state: CallState) -> ToolExecution | None:
    """Return the execution that an earlier attempt started, if it does what this call would do now.

    Tool and arguments must be the same, and no call that could change what the tool sees may have come in between.
    """
    execution, state.run.claimed = state.run.claimed, None
    if execution is None:
        return None
    same = execution.tool is state.prepared.tool and execution.arguments == state.prepared.arguments
    # What a read found may be out of date after a wait; an effect has happened, and must not happen again.
    if same and not execution.is_stopped and (execution.has_effects or not state.turn.waited):
        return execution
    if execution.has_effects and state.run.early is not None:
        state.run.early.set_aside(execution)
    else:
        execution.stop(NO_LONGER_NEEDED)
    return None


async def prepare_for_effects(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Wait until the start of a call that may change something is on record; return why it does not run, or None."""
    if services.before_effects is None:
        return None
    answer = None
    try:
        answer = await state.unless_stopped(asked(services.before_effects, timeout=None))
    except TimeoutError:
        # Of a stopped call it means that the wait was ended; any other is a failure of ours.
        if state.stopping is None:
            raise
    if isinstance(answer, Crash) and state.stopping is None:
        return not_recorded(answer.text)
    return state.stopping


def publish_start(services: ExecutionServices, state: CallState, *, adopted_from: str | None = None) -> None:
    """Publish the start of a call, once.

    `adopted_from` is the call whose execution this one takes over; None: it has its own.
    """
    run, prepared = state.run, state.prepared
    # Also published up front in some presets.
    if run.start_published:
        return
    run.start_published = True
    tool = prepared.tool
    # Part of the event, so that a later process can find what this one left running.
    run.mark = secrets.token_hex(16) if tool is not None and tool.starts_processes else ""
    if run.resumed_from and run.resumed_from != state.received.call.id:
        adopted_from = run.resumed_from
    services.publisher.publish(
        ToolStarted(
            call_id=state.received.call.id,
            name=state.received.call.name,
            args=prepared.arguments,
            read_only=prepared.read_only,
            timeout_s=prepared.time_limit,
            attempt=state.received.attempt,
            tool_kind=type(tool).__name__ if tool else "",
            summary=prepared.summary,
            preview=state.approval.preview,
            adopted_from=adopted_from,
            mark=run.mark,
            place=place_of(state),
        )
    )


def _new_execution(state: CallState, prepared: PreparedCall, channel: UpdateChannel) -> ToolExecution:
    call = state.received.call
    return ToolExecution(
        call_id=call.id,
        tool=prepared.tool,
        raw_arguments=call.arguments,
        arguments=prepared.arguments,
        # An execution that may outlive its call must not see the token of the call.
        token=CancellationToken() if state.run.early else state.token,
        grace=state.grace,
        metrics=state.run.metrics,
        channel=channel,
        has_effects=not prepared.read_only and place_of(state) == "outside",
    )


def _context(services: ExecutionServices, state: CallState, execution: ToolExecution) -> ToolContext:
    # Hooks and guardrails have to see all effects of a call with its end.
    may_follow_end = services.waits_for_effects and services.guardrails is None and not services.hooks.needs_effects
    return ToolContext(
        call_id=state.received.call.id,
        tool_name=execution.tool.name,
        step=state.received.step,
        cancellation=execution.token,
        report=execution.report,
        metrics=execution.metrics,
        targets=state.targets(),
        answer=state.answer,
        can_use=partial(judge_nested_call, services),
        is_denied=_denied_below(services, execution.tool, execution.arguments),
        mark=state.run.mark,
        report_process=partial(_publish_process, services, state),
        report_effects=partial(_publish_effects, services, execution) if may_follow_end else None,
        agent=services.agent,
        place=place_of(state),
        resumed_from=state.run.resumed_from,
        propose=execution.propose,
        answers=state.approval.answers,
        extra_seconds=lambda: execution.extra_seconds,
        resources=services.resources,
    )


def judge_nested_call(services: ExecutionServices, name: str, arguments: JsonObject) -> Verdict:
    """Judge a call that a running tool considers, without starting it or asking the user (S3-15)."""
    tool = services.registry.find(name)
    if tool is None:
        # A tool that asks about an unknown one must not take silence for a yes.
        return "deny"
    try:
        checked = checked_arguments(tool, arguments)
    except InvalidArgumentsError:
        return "deny"
    return "allow" if services.policy is None else judgement(services.policy, tool, checked).decision


def _denied_below(services: ExecutionServices, tool: Tool, arguments: JsonObject) -> Callable[[str], bool]:
    """Return `ToolContext.is_denied` for a call; if the policy fails, everything is denied."""
    policy = services.policy
    found: Callable[[str], bool] | Crash | None = None

    def is_denied(path: str) -> bool:
        nonlocal found
        # Most calls never ask: neither the protocol's members nor the paths of the policy are looked up for them.
        if found is None and isinstance(policy, SearchFilter):
            found = try_call(policy.denied_below, tool, arguments)
        return isinstance(found, Crash) or (found is not None and found(path))

    return is_denied


def place_of(state: CallState) -> Place:
    """Return the place in which the call runs by the latest decision."""
    if state.run.resumed_from:
        return "trial"
    decision = state.admission.decision
    return "outside" if decision is None else decision.place


def _publish_process(services: ExecutionServices, state: CallState, process: StartedProcess) -> None:
    services.publisher.publish(ProcessStarted(call_id=state.received.call.id, **process.model_dump()))


def _publish_effects(services: ExecutionServices, execution: ToolExecution, update: DataUpdate) -> None:
    # The call that owns the execution by now.
    services.publisher.publish(data_event(execution.channel.call, update))


def _stop_for_timeout(state: CallState, seconds: float) -> None:
    state.stop(timed_out(state.received.call.name, seconds))


async def _run_with_update_hooks(
    state: CallState, execution: ToolExecution, channel: UpdateChannel, context: ToolContext | None
) -> None:
    """Run the tool, and wait until the update hooks saw every report."""
    async with asyncio.TaskGroup() as group:
        pump = group.create_task(channel.pump())
        await _run_or_join(state, execution, context)
        channel.finish()
        await state.in_time(channel.drained.wait())
        pump.cancel()


async def _run_or_join(state: CallState, execution: ToolExecution, context: ToolContext | None) -> None:
    """Run the tool in this task, or wait for it where it runs; without a `context` it was started before."""
    try:
        # In this task, so that the call's cancellation reaches the tool without a detour.
        if state.run.early is None and context is not None:
            await execution.run(context)
        else:
            await _join_execution(state, execution, context)
    finally:
        state.run.finished_at = execution.ended_at or asyncio.get_running_loop().time()
    state.phase = "ran"


async def _join_execution(state: CallState, execution: ToolExecution, context: ToolContext | None) -> None:
    try:
        if state.run.early is not None and context is not None:
            state.run.early.begin(execution, context)
        await state.unless_stopped(execution.over.wait())
    except TimeoutError:
        # The call was set aside: it ends, and its execution continues without it.
        if state.stopping is None:
            raise
    except asyncio.CancelledError:
        execution.stop(NO_LONGER_NEEDED)
        raise


def _outcome(services: ExecutionServices, state: CallState, execution: ToolExecution) -> Outcome:
    stopping = state.stopping
    match execution.answer:
        case Crash() as crash:
            return stopping or crashed(state.received.call.name, crash, services.options.error_traceback)
        case ToolResult() as result:
            # What the tool managed to say before it was stopped is still worth reading.
            if stopping is not None:
                return with_partial(stopping, result)
            return Outcome("error" if result.is_error else "ok", result, "tool_error" if result.is_error else None)
        case None:
            assert stopping is not None
            # An execution that was set aside, or never began, has no end and leaves no thread behind.
            lives_on = execution.tool.runs_in_thread and execution.ended_at is not None
            return left_running(stopping) if lives_on else stopping
