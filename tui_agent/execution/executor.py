"""The pipeline of one call, from received to finished; the scheduler decides when each call runs.

| stages | module |
|---|---|
| 0 receive | this module |
| 1–7 parse, find the tool, validate, floor, input guardrails, hooks, judgement | `pipeline/admission` |
| 8–9 approval, and a new judgement after every wait | `pipeline/approval_stage` |
| 10 turn and permit | `scheduling/concurrency_gate` |
| 11 run | `pipeline/run_tool`, `pipeline/tool_execution` |
| keep, ask about or discard what it changed in a trial | `pipeline/settle_changes` |
| 12–14 result hooks, output guardrails, truncation | `pipeline/finish_call` |
| 15 end | this module |

Every call passes the same stages, whatever path it came by.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import partial
from types import NoneType

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import MessageEnded, MessageStarted, ToolEnded, ToolQueued
from tui_agent.protocol.messages import ToolCall, ToolResultMessage
from tui_agent.protocol.permissions import POLICY_MEMBERS, PermissionChecker
from tui_agent.protocol.reports import ToolCallReport
from tui_agent.protocol.tool import ToolResources, Verdict
from tui_agent.protocol.value_checks import expect_function, expect_kind, expect_members

from .approval_gate import ApprovalGate
from .contained_calls import Crash, asked
from .execution_services import BeforeEffects, ExecutionServices, ToolGuardrails
from .hook_bus import HookBus
from .hook_dispatch import observe_end
from .json_coercion import coerce_metrics
from .options import Auto, ExecutionOptions, PreHookPosition
from .outcomes import Outcome, cancelled, crashed, interrupted, lost
from .pipeline.admission import (
    ask_hooks,
    check_call,
    judge,
    judged_place,
    judgement,
    prepare,
    recheck_decision,
    settle,
    settle_and_judge,
)
from .pipeline.approval_stage import ask_question, ask_user, needs_approval
from .pipeline.call_state import (
    CallState,
    ConcurrencySlots,
    FinishedCall,
    PreparedCall,
    ReceivedCall,
    RefusedCall,
    Turn,
    accesses_of,
)
from .pipeline.finish_call import finish_call
from .pipeline.run_tool import extend_time_limit, publish_start, run_tool
from .pipeline.settle_changes import settle_changes
from .tool_registry import ToolLike, ToolRegistry

Stage = Callable[[ExecutionServices, CallState], Awaitable[Outcome | None]]

ADMISSION: dict[PreHookPosition, tuple[Stage, ...]] = {
    "before_permission": (check_call, ask_hooks, settle_and_judge, ask_question, ask_user),
    "after_permission": (check_call, judge, ask_question, ask_user, ask_hooks, settle),
    "before_lookup": (ask_hooks, check_call, settle_and_judge, ask_question, ask_user),
}
"""Stages 4 to 8 in order, for each position of the `before_tool` hooks. A refusal of stages 1 to 3 counts as one."""

ON_EXPOSURE: frozenset[Stage] = frozenset({check_call, ask_hooks})
"""Stages that do nothing with a valid call unless a guardrail or hook sees it before it is judged."""


class ToolExecutor:
    """Runs calls, any number at the same time, and keeps no state of any."""

    def __init__(
        self,
        tools: ToolRegistry | Iterable[ToolLike] | None,
        *,
        bus: Publisher,
        options: ExecutionOptions | None = None,
        hooks: HookBus | None = None,
        policy: PermissionChecker | None = None,
        gate: ApprovalGate | None = None,
        guardrails: ToolGuardrails | None = None,
        agent: str = "main",
        before_effects: BeforeEffects | None = None,
        effects_published: Callable[[], Awaitable[None]] | None = None,
        resources: ToolResources | None = None,
    ) -> None:
        """
        Raises:
            ConfigurationError: an argument is of the wrong kind, two tools have one name, or tools and policy work in
                different directories.
        """
        expect_members("bus", bus, ("publish",), "an EventBus, or something else with `publish`")
        expect_kind("options", options, (ExecutionOptions, NoneType), "ExecutionOptions or None")
        expect_kind("hooks", hooks, (HookBus, NoneType), "a HookBus or None")
        expect_kind("gate", gate, (ApprovalGate, NoneType), "an ApprovalGate or None")
        expect_function("before_effects", before_effects, "a function or None", optional=True)
        if policy is not None:
            expect_members("policy", policy, POLICY_MEMBERS, "a permission policy or None")
        registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools)
        # Judged in one directory and run in another, a call would not be judged at all.
        registry.expect_directory(getattr(policy, "workspace", None), "the policy")
        self.services = ExecutionServices(
            registry=registry,
            publisher=bus,
            options=options or ExecutionOptions(),
            hooks=hooks or HookBus(),
            policy=policy,
            gate=gate or ApprovalGate(),
            guardrails=guardrails,
            agent=agent,
            before_effects=before_effects,
            effects_published=effects_published,
            waits_for_effects=effects_published is not None,
            resources=resources or ToolResources(None),
        )

    def set_options(self, options: ExecutionOptions) -> None:
        """Replace the options, for every stage that begins from now on."""
        # A new record: a stage that is running keeps the options it began with.
        self.services = replace(self.services, options=options)

    def publishing_to(self, bus: Publisher, *, agent: str, judges: bool = True) -> "ToolExecutor":
        """Return a copy for calls that the model did not make: with another bus, another agent name in its approval
        requests, and all effects of a call published before its end. With `judges=False`, no policy checks them."""
        other = copy(self)
        other.services = replace(self.services, publisher=bus, agent=agent, waits_for_effects=False)
        # What the user typed needs no permission; hooks and guardrails still see it.
        if not judges:
            other.services = replace(other.services, policy=None)
        return other

    def receive(
        self,
        call: ToolCall,
        *,
        index: int,
        step: int,
        token: CancellationToken,
        turns: ConcurrencySlots,
        attempt: int = 1,
    ) -> CallState:
        """Stage 0: return the state of a new call. It is prepared at once; a refusal is reported when it runs."""
        services = self.services
        return CallState(
            received=ReceivedCall(call, index, step, attempt, asyncio.get_running_loop().time()),
            prepared=prepare(services, call),
            turns=turns,
            token=token.child(),
            grace=services.options.grace,
            turn=Turn(judge_place=partial(judged_place, services)),
        )

    def publish_queued(self, state: CallState, early: Verdict | None = None) -> None:
        """Publish that a call was received and whether the user will be asked; None for `early`: that is not known."""
        call, prepared = state.received.call, state.prepared
        # A guess would be worse than silence: a front end shows a question that never comes.
        known = self.services.policy is None or early is not None
        queued = ToolQueued(
            call_id=call.id,
            name=call.name,
            args_raw=call.arguments,
            index=state.received.index,
            group=state.turn.wave,
            safe=prepared.safe,
            will_ask=early == "ask" if known else None,
            summary=prepared.summary,
        )
        self.services.publisher.publish(queued)

    def early_verdict(self, state: CallState) -> Verdict | None:
        """Return the verdict on a call while the model still streams; an allowed one starts at once.

        None: the call waits, and is judged at its turn by the rules, the mode and the files of that moment. It is
        invalid, must run alone, or may change something outside a trial although `stream_tools` is not `allowed`.
        """
        options, policy, prepared = self.services.options, self.services.policy, state.prepared
        # The other strategies order the whole message, which is not known yet.
        if options.stream_tools == "off" or not isinstance(options.strategy, Auto):
            return None
        if isinstance(prepared, RefusedCall) or state.alone:
            return None
        # A sub-agent whose answer breaks off could not be taken over as it is.
        may_change = options.stream_tools == "allowed" and not prepared.tool.ends_calls_of_its_own
        accesses = None if prepared.is_harmless or may_change else accesses_of(prepared.tool, prepared.arguments)
        if not prepared.is_harmless and not may_change and not (accesses is not None and accesses.keeps):
            return None
        if prepared.question is not None:
            # It waits for the user, and a response that breaks off would withdraw what was asked.
            return "ask" if policy is not None else None
        if policy is None:
            return "allow" if prepared.is_harmless or may_change else None
        decision = judgement(policy, prepared.tool, prepared.arguments)
        state.turn.place, state.admission.early = decision.place, (decision, policy.mode)
        return decision.decision if prepared.is_harmless or may_change or decision.place == "trial" else None

    def publish_start(self, state: CallState) -> None:
        """Publish the start of a call before it runs, unless it is over or may take over an earlier execution."""
        # An adopted execution has published its start already.
        if state.finished is None and state.run.claimed is None:
            publish_start(self.services, state)

    async def execute(self, state: CallState) -> None:
        """Take one call through the pipeline; it ends exactly once, and only a real cancellation is raised."""
        outcome = None
        try:
            outcome = await finish_call(self.services, state, await self._outcome(state))
        except Exception as error:
            # The tool, the policy or the engine failed outside of the tool's run: the other calls continue.
            # A result that says so is worth more than a run that ends: the model can work without this call.
            outcome = self._failed(state, error)
        finally:
            # Executions that survive their response discard what is left when the response is over.
            execution = state.run.execution
            if state.run.early is None and execution is not None and execution.proposal is not None:
                await execution.discard_proposal()
            # Also when the task is cancelled: a call without a result makes the conversation invalid.
            self.end(state, outcome or cut_off_outcome(state))

    async def admit(self, state: CallState) -> None:
        """Take a call through stages 4 to 8; `state.admission` then says whether and why it does not run.

        `execute` does this unless it was done before.
        """
        # Set first, so that `execute` never admits a call that is being admitted.
        state.admission.begun = True
        if state.stopping is not None:
            return
        if state.run.resumed_from and isinstance(state.prepared, PreparedCall):
            # It was admitted before it ran, and does not run again.
            return
        try:
            hooks, guardrails = self.services.hooks, self.services.guardrails
            for stage in ADMISSION[self.services.options.pre_hook_position]:
                # Hooks may be added while the user is asked, so this is looked up anew for each stage.
                exposed = guardrails is not None or "before_tool" in hooks.events
                if stage in ON_EXPOSURE and not exposed and not isinstance(state.prepared, RefusedCall):
                    continue
                if stage is ask_question and (isinstance(state.prepared, RefusedCall) or not state.prepared.question):
                    continue
                refusal = await stage(self.services, state)
                if state.stopping is not None:
                    return
                if refusal is not None:
                    state.admission.refusal = refusal
                    return
        except Exception as error:
            # Of a stopped call, a `TimeoutError` means that its wait was ended.
            if state.stopping is None:
                state.admission.refusal = self._failed(state, error)

    def _failed(self, state: CallState, error: Exception) -> Outcome:
        outcome = crashed(state.received.call.name, Crash(error), self.services.options.error_traceback)
        # Before its start nothing can have happened, so the plain error is the truth.
        if not state.started:
            return outcome
        what = f"The engine failed while it handled this call ({outcome.result.text})."
        unknown = interrupted(f"{what} Whether the call did its work is not known.")
        return replace(unknown, traceback=outcome.traceback)

    async def _outcome(self, state: CallState) -> Outcome:
        """Stages 4 to 11: admit, approve, wait for the turn and run."""
        if not state.admission.begun:
            await self.admit(state)
        refusal = state.admission.refusal or state.stopping or await take_turn(self.services, state)
        if refusal is not None:
            return refusal
        outcome, execution = await run_tool(self.services, state), state.run.execution
        if execution is None or execution.proposal is None:
            return outcome
        return await settle_changes(self.services, state, execution.proposal, outcome)

    def extend_time_limit(self, state: CallState, seconds: float) -> float | None:
        """Give a running call more seconds; return its new limit in seconds from its start.

        None if it has no limit or does not run.
        """
        return extend_time_limit(self.services, state, seconds)

    def end(self, state: CallState, outcome: Outcome) -> None:
        """Stage 15: record the end of a call, and publish it unless ends are published in call order."""
        options = self.services.options
        run = state.run
        if run.metrics and not run.metrics_passed and run.channel is not None and run.channel.reporting != "live":
            # Measured but never checked: a guardrail may have withheld exactly these.
            run.metrics = {}
        if options.balanced_start or (options.start_unknown and outcome.status == "not_found"):
            publish_start(self.services, state)
        state.end(_finished_call(state, outcome))
        if options.end_events == "completion":
            self.publish_end(state)

    def publish_end(self, state: CallState) -> None:
        """Publish the end of a call, once."""
        if state.finished is not None and not state.end_published:
            state.end_published = True
            self.services.publisher.publish(state.finished.event)

    async def observe(self, state: CallState) -> None:
        """After stage 15: notify the observers of a call that ran, or whose tool is unknown (S0-40)."""
        hooks, publisher = self.services.hooks, self.services.publisher
        if state.finished is None or "after_tool_observer" not in hooks.events:
            return
        event = state.finished.event
        if state.started or event.status == "not_found":
            await state.in_time(observe_end(hooks, event, state.prepared.arguments, publisher))

    def publish_message(self, state: CallState) -> None:
        """Part of stage 16: publish a call's result message, once, after its end (S0-42)."""
        if state.finished is not None and not state.message_published:
            state.message_published = True
            message, publisher = state.finished.message, self.services.publisher
            publisher.publish(MessageStarted(message_id=message.id, role="tool_result", call_id=message.call_id))
            publisher.publish(MessageEnded(message_id=message.id, message=message))


async def take_turn(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stages 9 and 10: wait for the call's turn, and decide again after every wait; return why it does not run."""
    try:
        refusal = await _take(services, state)
        while refusal is None and state.admission.stale and not state.run.resumed_from:
            refusal = recheck_decision(services, state)
            if refusal is None and (state.turn.moved or needs_approval(services, state)):
                state.turns.give_back(state)
                refusal = await ask_user(services, state) or await _take(services, state)
        return refusal or state.stopping
    except TimeoutError:
        # Nothing but a stop may end the wait, or a call that was never judged would run.
        if state.stopping is None:
            raise
        return state.stopping


async def _take(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Wait for the call's turn, and for all that its last judgement must follow."""
    state.turn.moved = False
    refusal = await state.turns.take(state)
    if refusal is None and services.effects_published is not None and not state.prepared.read_only:
        await _wait_for_effects(services.effects_published, state)
    return refusal


async def _wait_for_effects(effects_published: Callable[[], Awaitable[None]], state: CallState) -> None:
    """Wait until the effects of earlier calls are published, which must not be mixed up with those of this one."""
    took_time: list[bool] = []
    turned = asyncio.get_running_loop().call_soon(took_time.append, True)
    await state.unless_stopped(asked(effects_published, timeout=None))
    turned.cancel()
    # Rules, mode and tools may have changed meanwhile.
    state.admission.stale = state.admission.stale or bool(took_time)


def cut_off_outcome(state: CallState) -> Outcome:
    """Return the outcome of a call whose task was cancelled, so that it has no result to show."""
    if state.phase == "ran":
        return lost()
    return state.stopping or cancelled("", started=state.started)


def _finished_call(state: CallState, outcome: Outcome) -> FinishedCall:
    call, arguments, run, result = state.received.call, state.prepared.arguments, state.run, outcome.result
    metrics = coerce_metrics(run.metrics) if run.metrics else {}
    latency_ms = 0.0
    if run.started_at is not None and run.finished_at is not None:
        latency_ms = (run.finished_at - run.started_at) * 1000
    approval_ms = state.approval.seconds * 1000 if state.approval.asked else 0.0
    end_of_wait = run.started_at if run.started_at is not None else asyncio.get_running_loop().time()
    asked_before = sum(end - begin for begin, end in state.approval.asked if end <= end_of_wait) * 1000
    # A tool that truncated its own output says so in its details, with the file that has the whole.
    details, is_whole = result.details or {}, outcome.whole_size is None
    size = result.size_bytes if outcome.whole_size is None else outcome.whole_size
    event = ToolEnded(
        call_id=call.id,
        name=call.name,
        index=state.received.index,
        status=outcome.status,
        is_error=result.is_error,
        content=result.content,
        details=result.details,
        latency_ms=latency_ms,
        queued_ms=max((end_of_wait - state.received.queued_at) * 1000 - asked_before, 0.0),
        approval_ms=approval_ms,
        size_bytes=size,
        truncated=not is_whole or details.get("truncated") is True,
        persisted_path=outcome.persisted_path or details.get("persisted_path"),
        child_run_id=result.child_run_id,
        terminate=result.terminate,
        metrics=metrics,
        error_kind=outcome.error_kind,
        traceback=outcome.traceback,
    )
    message = ToolResultMessage(
        call_id=call.id,
        tool_name=call.name,
        content=result.content,
        is_error=result.is_error,
        details=result.details,
    )
    report = ToolCallReport(
        call_id=call.id,
        tool_name=call.name,
        arguments=arguments,
        status=outcome.status,
        result_size_bytes=size,
        latency_ms=latency_ms,
        skipped=outcome.status.startswith("skipped"),
        error=result.text if result.is_error else None,
        metrics=dict(metrics),
    )
    return FinishedCall(outcome, event, message, report)
