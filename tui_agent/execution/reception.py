"""Stage 0 of a call: it is received, and everybody hears of it before anything else happens to it."""

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolQueued
from tui_agent.protocol.messages import ToolCall, nests_deeper

from .admission import judgement, look_up, parse, prepare
from .call_state import CallState, Turns
from .engine import Engine
from .foreign_code import careful
from .loop_clock import now
from .strategy import Auto


def receive(
    engine: Engine, call: ToolCall, *, index: int, step: int, token: CancellationToken, turns: Turns
) -> CallState:
    """Takes a call in hand. Stages 1 to 3 are looked through at once, to know what may be said of the call; what they
    find wrong is kept for the pipeline, which tells it."""
    state = CallState(
        call=call,
        index=index,
        step=step,
        token=token.child(),
        turns=turns,
        queued_at=now(),
        grace=engine.options.grace,
    )
    state.unfit = parse(engine, state) or look_up(engine, state) or prepare(engine, state)
    return state


def tell_queued(engine: Engine, state: CallState) -> None:
    """Tells that a call was received."""
    tool, call = state.tool, state.call
    queued = ToolQueued(
        call_id=call.id,
        name=call.name,
        args_raw={} if state.unfit and nests_deeper(call.arguments) else call.arguments,
        index=state.index,
        group=state.group,
        safe=state.safe,
        summary=careful(tool.summarise, call.arguments, otherwise="") if tool else "",
    )
    engine.tell.publish(queued)


def may_start_early(engine: Engine, state: CallState) -> bool:
    """Whether a call may begin while the model still talks: valid, without effects, safe beside others, and allowed
    without a question. Everything else might still turn out to be cut off or refused (C28)."""
    options = engine.options
    if options.stream_tools == "off" or not isinstance(options.strategy, Auto):
        return False
    if state.unfit is not None or not (state.read_only and state.safe) or state.alone:
        return False
    return engine.policy is None or judgement(engine.policy, state.known_tool, state.arguments).decision == "allow"
