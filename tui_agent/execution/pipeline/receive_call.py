"""Stage 0 of a call: it is received, and everybody hears of it before anything else happens to it."""

from tui_agent.execution.execution_services import Engine
from tui_agent.execution.json_coercion import is_json_value
from tui_agent.execution.loop_clock import now
from tui_agent.execution.strategy import Auto
from tui_agent.execution.untrusted_calls import call_or_default, copy_of
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolQueued
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Verdict

from .admission import judgement, parse, prepare, resolve_tool
from .call_state import CallState, ConcurrencySlots


def receive(
    engine: Engine, call: ToolCall, *, index: int, step: int, token: CancellationToken, turns: ConcurrencySlots
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
    state.invalid_outcome = parse(engine, state) or resolve_tool(engine, state) or prepare(engine, state)
    return state


def publishable_arguments(call: ToolCall) -> JsonObject:
    """The arguments of a call that nobody checked as events may hold them: a copy; none where they are no JSON."""
    return copy_of(call.arguments) if is_json_value(call.arguments) else {}


def publish_queued(engine: Engine, state: CallState, early: Verdict | None = None) -> None:
    """Tells that a call was received, and with its `early_verdict` whether a person will be asked."""
    tool, call = state.tool, state.call
    known = engine.policy is None or early is not None
    queued = ToolQueued(
        call_id=call.id,
        name=call.name,
        args_raw=publishable_arguments(call) if state.invalid_outcome else copy_of(call.arguments),
        index=state.index,
        group=state.group,
        safe=state.safe,
        will_ask=early == "ask" if known else None,
        summary=call_or_default(tool.summarise, call.arguments, otherwise="") if tool else "",
    )
    engine.publisher.publish(queued)


def early_verdict(engine: Engine, state: CallState) -> Verdict | None:
    """How a call is judged that could begin while the model still talks: valid, without effects, and safe beside
    others; allowed, it begins at once (C28). None: it could not, and is judged when it is its turn, by the rules, the
    mode and the files of that moment (stage 9)."""
    options = engine.options
    if options.stream_tools == "off" or not isinstance(options.strategy, Auto):
        return None
    if state.invalid_outcome is not None or not (state.read_only and state.safe) or state.alone:
        return None
    return "allow" if engine.policy is None else judgement(engine.policy, state.known_tool, state.arguments).decision
