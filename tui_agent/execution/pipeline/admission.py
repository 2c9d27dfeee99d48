"""Stages 1 to 7: parse a call, find its tool, validate its arguments; then floor, input guardrails, hooks and judgement
decide whether it is allowed.

Each stage from 4 on returns the outcome that ends the call, or None if the call continues.
"""

from dataclasses import replace
from typing import TypeVar

from tui_agent.execution.contained_calls import Crash, asked, copy_of, kind_of, try_call
from tui_agent.execution.execution_services import ExecutionServices, GuardrailTrip
from tui_agent.execution.hook_dispatch import ask_before_tool
from tui_agent.execution.outcomes import (
    HOOK_SKIP_TEXT,
    Outcome,
    crashed,
    denied_by_hook,
    denied_by_policy,
    failure,
    invalid,
    not_found,
    output_limit,
    overridden,
    skipped_on_request,
)
from tui_agent.execution.validation import checked_arguments
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import GuardrailTripped, PermissionDecided, ToolBlockedOn, Warned
from tui_agent.protocol.hooks import ApproveCall, Continue, DenyCall, OverrideResult, RequireApproval, SkipCall
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import PermissionChecker, PermissionDecision
from tui_agent.protocol.tool import Tool
from tui_agent.protocol.trial import Place
from tui_agent.protocol.value_checks import is_duration

from .call_state import Admission, CallState, PreparedCall, RefusedCall

D = TypeVar("D")


def prepare(services: ExecutionServices, call: ToolCall) -> PreparedCall | RefusedCall:
    """Parse a call (stage 1), find its tool (stage 2) and validate its arguments (stage 3)."""
    # Its arguments may look whole and mean something else.
    if call.cut:
        return RefusedCall(output_limit(), call.arguments)
    # The other setting runs it with `{}`, as S4-51 has it.
    if call.malformed is not None and services.options.malformed_args == "error":
        return RefusedCall(invalid(f"Invalid arguments for {call.name}: {call.malformed}"), call.arguments)
    # The message keeps its own: tools, hooks and the user may change those of the call.
    return find_and_validate(services, call.name, copy_of(call.arguments))


def find_and_validate(services: ExecutionServices, name: str, arguments: JsonObject) -> PreparedCall | RefusedCall:
    """Find a tool (stage 2) and validate arguments for it (stage 3)."""
    tool = services.registry.find(name)
    if tool is not None:
        return validate(services, tool, arguments)
    explain = services.options.unknown_tool == "explain"
    nearest = services.registry.nearest(name) if explain else ()
    return RefusedCall(not_found(name, services.registry.names, nearest, explain=explain), arguments)


def validate(services: ExecutionServices, tool: Tool, arguments: JsonObject) -> PreparedCall | RefusedCall:
    """Validate arguments (stage 3) and only then ask the tool about the call: predicates may rely on valid ones."""
    prepared = try_call(_prepared, services, tool, arguments)
    if not isinstance(prepared, Crash):
        return prepared
    is_invalid = isinstance(prepared.error, InvalidArgumentsError)
    traceback = services.options.error_traceback
    outcome = invalid(prepared.text) if is_invalid else crashed(tool.name, prepared, traceback)
    # Only for the screen, so a failure here must not hide the one that counts.
    summary = try_call(tool.summarise, arguments)
    return RefusedCall(outcome, arguments, tool, "" if isinstance(summary, Crash) else summary)


def _prepared(services: ExecutionServices, tool: Tool, arguments: JsonObject) -> PreparedCall:
    if services.options.validate_arguments:
        # Checked arguments may differ from the model's: null for a default, a number in quotes.
        arguments = checked_arguments(tool, arguments)
    return PreparedCall(
        tool,
        arguments,
        read_only=tool.is_read_only(arguments),
        safe=tool.is_concurrency_safe(arguments),
        time_limit=time_limit(tool, arguments, services.options.tool_timeout),
        interruptible=tool.interruptible(arguments),
        summary=tool.summarise(arguments),
        question=tool.question(arguments),
    )


def time_limit(tool: Tool, arguments: JsonObject, configured: float | None) -> float | None:
    """Return how many seconds a call may execute; None: no limit.

    Raises:
        InvalidArgumentsError: the tool named something else; 0 means neither the configured time nor no limit.
    """
    # Compared as text first: a tool may answer anything, 0 and NaN included.
    own = tool.timeout(arguments)
    if own == "default":
        return configured
    if own is None or is_duration(own):
        return own
    must = "it must be more than 0 seconds, or None for no limit"
    raise InvalidArgumentsError(f"{tool.name} cannot run with a time limit of {own!r}: {must}")


async def check_call(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Return the refusal of stages 1 to 3, or that of the floor and the input guardrails (stages 4 and 5).

    The floor has protected directories, plan mode and explicit denials, which nothing overrides. The judgement starts
    with it, too; here it only keeps denied calls from guardrails and hooks.
    """
    # The floor comes before hooks, so that no hook sees or answers what nothing can allow.
    if not isinstance(state.prepared, RefusedCall):
        return refused_by_floor(services, state) or await guard_input(services, state)
    call, outcome = state.received.call, state.prepared.outcome
    if outcome.status == "not_found":
        text = f"The model called an unknown tool: {call.name}."
        services.publisher.publish(Warned(code="unknown_tool", text=text, context={"call_id": call.id}))
    return outcome


async def guard_input(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 5: input guardrails. A trip denies the call without asking the user."""
    if services.guardrails is None:
        return None
    prepared = state.accepted
    check = asked(services.guardrails.check_input, state.received.call, prepared.tool, prepared.arguments, timeout=None)
    # A guardrail may take its time, and files and rules may change meanwhile.
    trip = trip_from_answer(await state.unless_stopped(check))
    state.admission.stale = True
    if trip is None:
        return None
    publish_trip(services, trip, "tool_input")
    denied = failure("denied_guardrail", f"Denied by guardrail {trip.name}: {trip.reason}", "guardrail")
    return with_halt(denied, trip) if trip.halts else denied


async def ask_hooks(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 6: `before_tool` hooks may deny, skip, answer or rewrite the call, but never lift the floor."""
    if "before_tool" not in services.hooks.events:
        return None
    call, prepared = state.received.call, state.prepared
    # A hook may be a slow program, and the user should see who is thinking.
    services.publisher.publish(ToolBlockedOn(call_id=call.id, what="hook"))
    asking = ask_before_tool(services.hooks, call, prepared.tool, prepared.arguments, services.publisher)
    verdict = await state.unless_stopped(asking)
    state.admission.stale = True
    if verdict.rewritten:
        # Before the answer: it was given about the new arguments.
        refusal = await rewrite(services, state, verdict.arguments)
        if refusal is not None:
            return refusal
    match verdict.answer:
        case Continue():
            return None
        case ApproveCall(reason=reason):
            state.admission.hook_approval = reason or "approved by a hook"
            state.admission.hook_may_approve = verdict.may_approve
            return None
        case RequireApproval(reason=reason):
            state.admission.hook_question = reason or "a hook asks you to decide"
            return None
        case DenyCall(reason=reason):
            return denied_by_hook(reason, "hook_failed" if verdict.failed else "denied_hook")
        case SkipCall(result=result):
            is_error = services.options.skip_is_error
            skip = skipped_on_request("skipped_hook", HOOK_SKIP_TEXT, result, is_error=is_error)
            # A skip with a result of its own must not look like a success of something forbidden.
            return refused_by_floor(services, state) or skip
        case OverrideResult(result=result):
            return refused_by_floor(services, state) or overridden(result)


async def rewrite(services: ExecutionServices, state: CallState, arguments: JsonObject) -> Outcome | None:
    """Repeat stages 2 to 5 with a hook's arguments, which are judged as if the model had sent them."""
    prepared = state.prepared = find_and_validate(services, state.received.call.name, arguments)
    # The place belonged to the old arguments.
    state.turn.place = None
    state.turns.change(state)
    if prepared.tool is None:
        return None
    if isinstance(prepared, RefusedCall):
        text = f"A hook rewrote the arguments of this call, and they do not fit. {prepared.outcome.result.text}"
        return denied_by_hook(text, "invalid_rewrite")
    return refused_by_floor(services, state) or await guard_input(services, state)


async def settle(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Mark the arguments as final: from here on only the user can change them."""
    state.turns.settle(state)
    return None


async def judge(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 7: the whole judgement; a verdict `ask` is left to stage 8."""
    return judge_now(services, state)


async def settle_and_judge(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 7 after all hooks: nothing but the user changes the arguments any more."""
    state.turns.settle(state)
    return judge_now(services, state)


def recheck_decision(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 9: after a wait, judge the call again and make sure that its tool is still registered."""
    name = state.received.call.name
    if services.registry.find(name) is not state.prepared.tool:
        text = f"Tool {name} not found: it was removed or replaced while the call waited. Not run."
        return failure("not_found", text, "tool_removed")
    return judge_now(services, state)


def judge_now(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Judge the call by the rules and the mode of this moment."""
    admission, prepared = state.admission, state.prepared
    # A verdict from the stream holds only as long as nothing was awaited since.
    early = None if admission.stale else admission.early
    admission.stale, admission.early = False, None
    if services.policy is None or isinstance(prepared, RefusedCall):
        return None
    # The user may have changed the mode between the stream and this turn.
    if early is not None and early[1] == services.policy.mode:
        decision = early[0]
    else:
        decision = judgement(services.policy, prepared.tool, prepared.arguments)
    decision = with_hooks(services, admission, decision)
    _record_decision(services.policy, services, state, decision)
    if decision.decision == "deny":
        return denied_by_policy(decision)
    ordered_by, state.turn.place = state.turn.place, decision.place
    if ordered_by not in (None, decision.place):
        # In another place it meets other calls, so its turn has to be found again.
        state.turn.moved = True
        state.turns.change(state)
    return None


def with_hooks(services: ExecutionServices, admission: Admission, decision: PermissionDecision) -> PermissionDecision:
    """Return the decision as `before_tool` hooks change it; no hook lifts a denial."""
    changed: JsonObject = {}
    may_approve = services.options.hook_may_approve or (admission.hook_may_approve and decision.source == "mode")
    # A hook may ask for more care than the policy, never for less than a denial.
    if decision.decision == "allow" and admission.hook_question is not None:
        changed = {"decision": "ask", "source": "hook", "reason": admission.hook_question}
    elif decision.decision == "ask" and admission.hook_approval is not None and may_approve:
        changed = {"decision": "allow", "source": "hook", "reason": admission.hook_approval}
    return decision.model_copy(update=changed) if changed else decision


def refused_by_floor(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Return the floor's denial, if any; a call refused in stages 1 to 3 passes, because it never runs."""
    if services.policy is None or isinstance(state.prepared, RefusedCall):
        return None
    # A policy is foreign code; one that raises must not open the floor.
    decision = _denial_if_failed(try_call(services.policy.floor, state.prepared.tool, state.prepared.arguments))
    if decision is None:
        return None
    _record_decision(services.policy, services, state, decision)
    return denied_by_policy(decision)


def judgement(policy: PermissionChecker, tool: Tool, arguments: JsonObject) -> PermissionDecision:
    """Return the policy's decision about a call; a policy that fails allows nothing."""
    return _denial_if_failed(try_call(policy.check, tool, arguments))


def judged_place(services: ExecutionServices, state: CallState) -> Place:
    """Return the place in which the policy of this moment lets a call run."""
    if services.policy is None or isinstance(state.prepared, RefusedCall):
        # Where nothing judges, the place with the fewest conflicts is as good as any.
        return "trial"
    return judgement(services.policy, state.prepared.tool, state.prepared.arguments).place


def trip_from_answer(answer: object, *, quiet: bool = False) -> GuardrailTrip | None:
    """Return a guardrail's objection; None: it passed. One that failed or answered something else counts as tripped.

    Args:
        answer: what it returned.
        quiet: True if the text of its error may contain what it was to hide.
    """
    if answer is None or isinstance(answer, GuardrailTrip):
        return answer
    what = f"unexpected answer {answer!r}" if not quiet and not isinstance(answer, Crash) else type(answer).__name__
    if isinstance(answer, Crash):
        what = kind_of(answer) if quiet else answer.text
    return GuardrailTrip("guardrail", f"it failed, so nothing passes: {what}", "high")


def publish_trip(services: ExecutionServices, trip: GuardrailTrip, lane: str) -> None:
    """Publish that a guardrail tripped in one of the tool lanes."""
    services.publisher.publish(
        GuardrailTripped.model_validate(
            {"name": trip.name, "lane": lane, "severity": trip.severity, "reason": trip.reason, "halted": trip.halts}
        )
    )


def with_halt(outcome: Outcome, trip: GuardrailTrip) -> Outcome:
    """Return the outcome as one after which the run ends with the guardrail's reason (S4-69)."""
    return replace(outcome, halts="guardrail", why=trip.reason)


def _denial_if_failed(answer: D | Crash) -> D | PermissionDecision:
    if not isinstance(answer, Crash):
        return answer
    reason = f"the permission policy failed, so nothing is allowed ({kind_of(answer)}: {answer.text})"
    return PermissionDecision(decision="deny", source="invalid", reason=reason)


def _record_decision(
    policy: PermissionChecker, services: ExecutionServices, state: CallState, decision: PermissionDecision
) -> None:
    """Record a decision and publish it, unless it is the same as before."""
    before, state.admission.decision = state.admission.decision, decision
    # Judged again after each wait, and mostly with the same result: the journal needs it once.
    if decision == before:
        return
    decided = PermissionDecided(
        call_id=state.received.call.id,
        decision=decision.decision,
        source=decision.source,
        mode=policy.mode,
        rule=decision.rule,
        reason=decision.reason,
        parts=decision.parts,
    )
    services.publisher.publish(decided)
