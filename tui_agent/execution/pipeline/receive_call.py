"""Stage 0: receive a call and publish it, with what is known about it so far."""

import asyncio
from functools import partial

from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.strategy import Auto
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolQueued
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.tool import Verdict

from .admission import judged_place, judgement, prepare
from .call_state import CallState, ConcurrencySlots, ReceivedCall, RefusedCall, Turn, accesses_of


def receive(
    services: ExecutionServices,
    call: ToolCall,
    *,
    index: int,
    step: int,
    token: CancellationToken,
    turns: ConcurrencySlots,
    attempt: int = 1,
) -> CallState:
    """Return the state of a new call. It is prepared at once; the pipeline reports a refusal when it runs the call."""
    return CallState(
        received=ReceivedCall(call, index, step, attempt, asyncio.get_running_loop().time()),
        prepared=prepare(services, call),
        turns=turns,
        token=token.child(),
        grace=services.options.grace,
        turn=Turn(judge_place=partial(judged_place, services)),
    )


def publish_queued(services: ExecutionServices, state: CallState, early: Verdict | None = None) -> None:
    """Publish that a call was received and, if its early verdict is known, whether the user will be asked."""
    call, prepared = state.received.call, state.prepared
    known = services.policy is None or early is not None
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
    services.publisher.publish(queued)


def early_verdict(services: ExecutionServices, state: CallState) -> Verdict | None:
    """Judge a call that could start while the model still streams: valid and, unless all may, harmless or in a trial.

    An allowed one starts at once. None: the call has to wait, and is judged at its turn by the rules, the mode and the
    files of that moment.
    """
    options, prepared = services.options, state.prepared
    if options.stream_tools == "off" or not isinstance(options.strategy, Auto):
        return None
    if isinstance(prepared, RefusedCall) or state.alone:
        return None
    may_change = options.stream_tools == "allowed" and not prepared.tool.ends_calls_of_its_own
    accesses = None if prepared.is_harmless or may_change else accesses_of(prepared.tool, prepared.arguments)
    if not prepared.is_harmless and not may_change and not (accesses is not None and accesses.keeps):
        return None
    if services.policy is None:
        return "allow" if prepared.is_harmless or may_change else None
    decision = judgement(services.policy, prepared.tool, prepared.arguments)
    state.turn.place = decision.place
    return decision.decision if prepared.is_harmless or may_change or decision.place == "trial" else None
