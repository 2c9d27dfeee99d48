"""HOW one call runs: its whole life, from received to ended, one function a stage (engine §2).

The same for every path a call may come by. WHEN it runs is the scheduler's, which the pipeline meets in stage 10.
"""

from collections.abc import Awaitable, Callable, Iterable
from copy import copy
from dataclasses import replace
from types import NoneType

from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.events import MessageEnded, MessageStarted, ToolEnded
from tui_agent.protocol.messages import ToolResultMessage
from tui_agent.protocol.permissions import POLICY_MEMBERS, PermissionChecker
from tui_agent.protocol.reports import ToolCallReport
from tui_agent.protocol.value_checks import expect_function, expect_kind, expect_members

from .approval_gate import ApprovalGate
from .execution_services import BeforeEffects, Engine, ToolGuardrails
from .hook_bus import HookBus
from .hook_dispatch import observe_end
from .json_coercion import coerce_metrics
from .loop_clock import now
from .options import ExecutionOptions, PreHookPosition
from .outcomes import Outcome, cancelled, interrupted, lost
from .pipeline.admission import ask_hooks, check_floor, guard_input, judge, refuse_invalid, settle
from .pipeline.approval_stage import ask_user, needs_approval, recheck_decision
from .pipeline.call_state import CallState
from .pipeline.finish_call import add_notes_and_truncate, finish_result
from .pipeline.run_tool import publish_start, run_tool
from .tool_adapters import ToolLike
from .tool_registry import ToolRegistry
from .untrusted_calls import copy_of, is_being_cancelled

Stage = Callable[[Engine, CallState], Awaitable[Outcome | None]]

ADMISSION: dict[PreHookPosition, tuple[Stage, ...]] = {
    "before_permission": (refuse_invalid, check_floor, guard_input, ask_hooks, settle, judge, ask_user),
    "after_permission": (refuse_invalid, check_floor, guard_input, judge, ask_user, ask_hooks, settle),
    "before_lookup": (ask_hooks, refuse_invalid, check_floor, guard_input, settle, judge, ask_user),
}
"""Stages 1 to 8 in their order, for each place where hooks may be asked (C13)."""


class ToolExecutor:
    """Runs calls one at a time or many at once; holds nothing of any of them."""

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
    ) -> None:
        """
        Raises:
            ConfigurationError: an argument is of the wrong kind, or two tools have one name.
        """
        expect_members("bus", bus, ("publish",), "an EventBus, or something else with `publish`")
        expect_kind("options", options, (ExecutionOptions, NoneType), "ExecutionOptions or None")
        expect_kind("hooks", hooks, (HookBus, NoneType), "a HookBus or None")
        expect_kind("gate", gate, (ApprovalGate, NoneType), "an ApprovalGate or None")
        expect_function("before_effects", before_effects, "a function or None", optional=True)
        if policy is not None:
            expect_members("policy", policy, POLICY_MEMBERS, "a permission policy or None")
        self.engine = Engine(
            registry=tools if isinstance(tools, ToolRegistry) else ToolRegistry(tools),
            publisher=bus,
            options=options or ExecutionOptions(),
            hooks=hooks or HookBus(),
            policy=policy,
            gate=gate or ApprovalGate(),
            guardrails=guardrails,
            agent=agent,
            before_effects=before_effects,
        )

    def set_options(self, options: ExecutionOptions) -> None:
        """Takes other options, for every stage of a call that begins from now on."""
        self.engine = replace(self.engine, options=options)

    def publishing_to(self, bus: Publisher, *, agent: str) -> "ToolExecutor":
        """The same with another listener, and with another name in what it asks."""
        other = copy(self)
        other.engine = replace(self.engine, publisher=bus, agent=agent)
        return other

    async def execute(self, state: CallState) -> None:
        """Takes one call to its end: whatever happens, exactly once; only a real cancellation passes through."""
        fitted = None
        try:
            outcome = await self._admit(state) or await self._run(state)
            fitted = await add_notes_and_truncate(self.engine, state, outcome)
        finally:
            self.end(state, fitted or cut_off_outcome(state))

    async def admit(self, state: CallState) -> None:
        """Stages 1 to 8, noting in `state.refusal` why the call will not run. Part of `execute`, which leaves them out
        where they were gone through before."""
        state.admitted = True
        if state.stopping is not None:
            return
        try:
            for stage in ADMISSION[self.engine.options.pre_hook_position]:
                refusal = await stage(self.engine, state)
                if state.stopping is not None:
                    return
                if refusal is not None:
                    state.refusal = await state.unless_stopped(finish_result(self.engine, state, refusal))
                    return
        except TimeoutError:
            # The same stop_timeout; what it ended is told by `stopping`.
            if state.stopping is None:
                raise

    async def _admit(self, state: CallState) -> Outcome | None:
        """Stages 1 to 10: why the call will not run; None: it runs now. A call that is taken back stops waiting."""
        if not state.admitted:
            await self.admit(state)
        if state.refusal is not None or state.stopping is not None:
            return state.refusal or state.stopping
        try:
            return await take_slot(self.engine, state) or state.stopping
        except TimeoutError:
            # Nothing but the stop_timeout may end the wait, or a call that was never judged would go on.
            if state.stopping is None:
                raise
            return state.stopping

    async def _run(self, state: CallState) -> Outcome:
        """Stages 11 to 13."""
        outcome = await run_tool(self.engine, state)
        if not self.engine.finishes_results:
            return outcome
        return await state.in_time(finish_result(self.engine, state, outcome)) or lost()

    def end(self, state: CallState, outcome: Outcome) -> None:
        """Stage 15: the call is over. Its end is told now, or at the commit where ends come in call order (C5)."""
        options = self.engine.options
        state.end(outcome)
        if state.metrics and not state.metrics_passed and self.engine.reporting != "live":
            state.metrics = {}
        if options.balanced_start or (options.start_unknown and outcome.status == "not_found"):
            publish_start(self.engine, state)
        state.ended = _ended_event(state, outcome)
        state.message = ToolResultMessage(
            call_id=state.call.id,
            tool_name=state.call.name,
            content=outcome.result.content,
            is_error=outcome.result.is_error,
            details=copy_of(outcome.result.details),
        )
        state.report = _report(state, outcome)
        if options.end_events == "completion":
            self.publish_end(state)

    def publish_end(self, state: CallState) -> None:
        """Tells the end of a call, once."""
        if state.ended is not None and not state.end_published:
            state.end_published = True
            self.engine.publisher.publish(state.ended)

    async def observe(self, state: CallState) -> None:
        """After stage 15: observers hear of every call that ran, and of unknown tools (S0-40)."""
        if state.ended is None or not self.engine.hooks.has("after_tool_observer"):
            return
        if state.started or state.ended.status == "not_found":
            await state.in_time(observe_end(self.engine.hooks, state.ended, state.arguments, self.engine.publisher))

    def publish_message(self, state: CallState) -> None:
        """Part of stage 16: tells a call's result message, once, after its end (S0-42)."""
        if state.message is not None and not state.message_published:
            state.message_published = True
            message = state.message
            publisher = self.engine.publisher
            publisher.publish(MessageStarted(message_id=message.id, role="tool_result", call_id=message.call_id))
            publisher.publish(MessageEnded(message_id=message.id, message=message))


async def take_slot(engine: Engine, state: CallState) -> Outcome | None:
    """Stages 9 and 10: waits for the call's turn; what was decided before any wait is decided again after it."""
    refusal = await state.turns.take(state)
    while refusal is None and state.stale:
        refusal = recheck_decision(engine, state)
        if refusal is None and needs_approval(engine, state):
            state.turns.give_back(state)
            refusal = await ask_user(engine, state) or await state.turns.take(state)
    return refusal


def cut_off_outcome(state: CallState) -> Outcome:
    """The end of a call whose own task is cancelled or broke: nothing of its result can be shown any more."""
    if not is_being_cancelled():
        return interrupted("The engine failed while it handled this call. Whether the call did its work is not known.")
    if state.phase == "ran":
        return lost()
    return state.stopping or cancelled("", started=state.started)


def _ended_event(state: CallState, outcome: Outcome) -> ToolEnded:
    end = state.started_at if state.started_at is not None else now()
    approval_s = state.approval_s
    result = outcome.result
    # A tool that shortened its own output says so, and where the whole is, in its details.
    kept = result.details or {}
    return ToolEnded(
        call_id=state.call.id,
        name=state.call.name,
        index=state.index,
        status=outcome.status,
        is_error=result.is_error,
        content=result.content,
        details=result.details,
        latency_ms=state.latency_s * 1000,
        queued_ms=max(end - state.queued_at - approval_s, 0.0) * 1000,
        approval_ms=approval_s * 1000,
        size_bytes=outcome.size_bytes,
        truncated=outcome.truncated or kept.get("truncated") is True,
        persisted_path=outcome.persisted_path or kept.get("persisted_path"),
        child_run_id=result.child_run_id,
        terminate=result.terminate,
        metrics=coerce_metrics(state.metrics),
        error_kind=outcome.error_kind,
        traceback=outcome.traceback,
    )


def _report(state: CallState, outcome: Outcome) -> ToolCallReport:
    return ToolCallReport(
        call_id=state.call.id,
        tool_name=state.call.name,
        arguments=copy_of(state.arguments),
        status=outcome.status,
        result_size_bytes=outcome.size_bytes,
        latency_ms=state.latency_s * 1000,
        skipped=outcome.status.startswith("skipped"),
        error=outcome.result.text if outcome.result.is_error else None,
        metrics=coerce_metrics(state.metrics),
    )
