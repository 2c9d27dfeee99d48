"""Stages 1 to 7 of a call: what it is, whether it fits, and whether it is allowed (engine §2).

Each stage takes the engine and the call's state, notes what it found in the state, and gives either the outcome that
ends the call or None: go on.
"""

from dataclasses import replace

from tui_agent.execution.execution_services import Engine, GuardrailTrip
from tui_agent.execution.hook_dispatch import ask_before_tool
from tui_agent.execution.json_coercion import NOT_JSON_TEXT, is_json_value
from tui_agent.execution.outcomes import (
    HOOK_SKIP_TEXT,
    Outcome,
    denied_by_hook,
    denied_by_policy,
    failure,
    invalid,
    not_found,
    output_limit,
    overridden,
    skipped_on_request,
)
from tui_agent.execution.untrusted_calls import Crash, asked, call_or_default, copy_of, kind_of, try_call
from tui_agent.execution.validation import checked_arguments
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import GuardrailTripped, PermissionDecided, ToolBlockedOn, Warned
from tui_agent.protocol.hooks import ApproveCall, Continue, DenyCall, OverrideResult, SkipCall
from tui_agent.protocol.messages import TOO_DEEP, JsonObject, nests_deeper
from tui_agent.protocol.permissions import PermissionChecker, PermissionDecision, PermissionMode, Verdict
from tui_agent.protocol.tool import Tool

from .call_state import CallState
from .time_limits import time_limit


def parse(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 1: the arguments could be read, and the message was not cut off (C20, C29)."""
    call = state.call
    readable = is_json_value(call.arguments)
    state.arguments = copy_of(call.arguments) if readable else {}
    if call.cut:
        return output_limit()
    if call.malformed is not None and engine.options.malformed_args == "error":
        return invalid(f"Invalid arguments for {call.name}: {call.malformed}")
    if not readable:
        why = TOO_DEEP if nests_deeper(call.arguments) else NOT_JSON_TEXT
        return invalid(f"Invalid arguments for {call.name}: {why}")
    return None


def resolve_tool(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 2: the tool exists (C21)."""
    name = state.call.name
    state.tool = engine.registry.find(name)
    if state.tool is not None:
        return None
    explain = engine.options.unknown_tool == "explain"
    return not_found(name, engine.registry.names, engine.registry.nearest(name) if explain else (), explain=explain)


def prepare(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 3: the arguments fit the tool; from here on its predicates may be asked (C3, C15)."""
    tool = state.known_tool
    if engine.options.validate_arguments:
        try:
            state.arguments = checked_arguments(tool, state.arguments)
        except InvalidArgumentsError as error:
            return invalid(str(error))
    try:
        state.time_limit = time_limit(tool, state.arguments, engine.options.tool_timeout)
    except InvalidArgumentsError as error:
        return invalid(str(error))
    state.read_only = call_or_default(tool.is_read_only, state.arguments, otherwise=False)
    state.safe = call_or_default(tool.is_concurrency_safe, state.arguments, otherwise=False)
    return None


async def refuse_invalid(engine: Engine, state: CallState) -> Outcome | None:
    """What stages 1 to 3 found."""
    if state.invalid_outcome is not None and state.invalid_outcome.status == "not_found":
        text = f"The model called {state.call.name}, and there is no such tool."
        engine.publisher.publish(Warned(code="unknown_tool", text=text, context={"call_id": state.call.id}))
    return state.invalid_outcome


async def check_floor(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 4: protected directories, plan mode, explicit denials; nothing can override them (C14, C16).

    The whole judgement begins with the floor, so where nobody sees the call before that, it is not asked twice.
    """
    return refused_by_floor(engine, state) if engine.looks_before_judging else None


async def guard_input(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 5: guardrails over the call; a trip is a denial, and no person is asked."""
    if engine.guardrails is None:
        return None
    check = asked(engine.guardrails.check_input, state.call, state.known_tool, state.arguments, timeout=None)
    trip = trip_from_answer(await state.unless_stopped(check))
    state.stale = True
    if trip is None:
        return None
    publish_trip(engine, trip, "tool_input")
    denied = failure("denied_guardrail", f"Denied by guardrail {trip.name}: {trip.reason}", "guardrail")
    return with_halt(denied, trip) if trip.halts else denied


async def ask_hooks(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 6: hooks may deny, skip, answer or rewrite the call, but never lift the floor (C13, C14)."""
    if not engine.hooks.has("before_tool"):
        return None
    engine.publisher.publish(ToolBlockedOn(call_id=state.call.id, what="hook"))
    asking = ask_before_tool(engine.hooks, state.call, state.tool, state.arguments, engine.publisher)
    verdict = await state.unless_stopped(asking)
    state.stale = True
    if verdict.rewritten:
        refusal = await rewrite(engine, state, verdict.arguments)
        if refusal is not None:
            return refusal
    match verdict.answer:
        case Continue():
            return None
        case ApproveCall(reason=reason):
            state.hook_approved = reason or "approved by a hook"
            return None
        case DenyCall(reason=reason):
            return denied_by_hook(reason, "hook_failed" if verdict.failed else "denied_hook")
        case SkipCall(result=result):
            is_error = engine.options.skip_is_error
            skip = skipped_on_request("skipped_hook", HOOK_SKIP_TEXT, result, is_error=is_error)
            return refused_by_floor(engine, state) or skip
        case OverrideResult(result=result):
            return refused_by_floor(engine, state) or overridden(result)


async def rewrite(engine: Engine, state: CallState, arguments: JsonObject) -> Outcome | None:
    """Back to stages 2 to 5 with a hook's arguments; they are judged as if the model had sent them (P48)."""
    state.arguments = arguments
    state.invalid_outcome = resolve_tool(engine, state) or prepare(engine, state)
    if state.tool is None:
        return None
    if state.invalid_outcome is not None:
        words = f"A hook rewrote the arguments of this call, and they do not fit. {state.invalid_outcome.result.text}"
        return denied_by_hook(words, "invalid_rewrite")
    return refused_by_floor(engine, state) or await guard_input(engine, state)


async def settle(engine: Engine, state: CallState) -> Outcome | None:
    """From here on the arguments are those that will run, unless a person changes them."""
    state.turns.settle(state)
    return None


async def judge(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 7: the whole judgement (C18); a question is left to stage 8."""
    return judge_now(engine, state)


def judge_now(engine: Engine, state: CallState) -> Outcome | None:
    """The same without waiting: reads the rules and the mode as they are at this moment (P56)."""
    state.stale = False
    if engine.policy is None:
        return None
    decision = judgement(engine.policy, state.known_tool, state.arguments)
    if decision.decision == "ask" and state.hook_approved is not None and engine.options.hook_may_approve:
        words = {"decision": "allow", "source": "hook", "reason": state.hook_approved}
        decision = decision.model_copy(update=words)
    _note_decision(engine, state, decision)
    return denied_by_policy(decision) if decision.decision == "deny" else None


def refused_by_floor(engine: Engine, state: CallState) -> Outcome | None:
    """The floor's denial, if it denies; a call that is not fit to be judged passes, because it will never run."""
    if engine.policy is None or state.tool is None or state.invalid_outcome is not None:
        return None
    answer = try_call(engine.policy.floor, state.tool, state.arguments)
    if answer is None:
        return None
    decision = _decision_of(answer)
    _note_decision(engine, state, decision)
    return denied_by_policy(decision)


def judgement(policy: PermissionChecker, tool: Tool, arguments: JsonObject) -> PermissionDecision:
    """What the policy says of a call; one that fails allows nothing."""
    return _decision_of(try_call(policy.check, tool, arguments))


def judge_nested_call(engine: Engine, name: str, arguments: JsonObject) -> Verdict:
    """How a call that a running tool thinks of would be judged now; starts nothing and asks nobody (S3-15)."""
    tool = engine.registry.find(name)
    try:
        checked = {} if tool is None else checked_arguments(tool, arguments)
    except InvalidArgumentsError:
        return "deny"
    if tool is None:
        return "deny"
    return "allow" if engine.policy is None else judgement(engine.policy, tool, checked).decision


def trip_from_answer(answer: object, *, quiet: bool = False) -> GuardrailTrip | None:
    """What a guardrail said; one that failed, or said what it cannot say, counts as tripped.

    Args:
        answer: what it gave.
        quiet: whether its error's own words may hold what it was to keep from everybody.
    """
    if answer is None or isinstance(answer, GuardrailTrip):
        return answer
    what = f"{answer!r} is no answer" if not quiet and not isinstance(answer, Crash) else type(answer).__name__
    if isinstance(answer, Crash):
        what = kind_of(answer) if quiet else answer.text
    return GuardrailTrip("guardrail", f"it failed and nothing passes unchecked: {what}", "high")


def publish_trip(engine: Engine, trip: GuardrailTrip, lane: str) -> None:
    """Tells that a guardrail tripped in one of the tool lanes."""
    engine.publisher.publish(
        GuardrailTripped.model_validate(
            {"name": trip.name, "lane": lane, "severity": trip.severity, "reason": trip.reason, "halted": trip.halts}
        )
    )


def with_halt(outcome: Outcome, trip: GuardrailTrip) -> Outcome:
    """The same outcome, after which the run ends with what the guardrail said (S4-69)."""
    return replace(outcome, halts="guardrail", why=trip.reason)


def _decision_of(answer: object) -> PermissionDecision:
    if isinstance(answer, PermissionDecision):
        return answer
    what = f"{kind_of(answer)}: {answer.text}" if isinstance(answer, Crash) else f"it answered {answer!r}"
    reason = f"the permission policy failed, and nothing runs unjudged ({what})"
    return PermissionDecision(decision="deny", source="invalid", reason=reason)


def _note_decision(engine: Engine, state: CallState, decision: PermissionDecision) -> None:
    """Keeps a decision and tells it, once for as long as it stays the same."""
    before, state.decision = state.decision, decision
    if engine.policy is None or decision == before:
        return
    told = PermissionDecided(
        call_id=state.call.id,
        decision=decision.decision,
        source=decision.source,
        mode=call_or_default(getattr, engine.policy, "mode", otherwise=PermissionMode.ASK),
        rule=decision.rule,
        reason=decision.reason,
        parts=decision.parts,
    )
    engine.publisher.publish(told)
