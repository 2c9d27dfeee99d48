"""Stages 8 and 9 of a call: a person's answer, and whether what was decided still holds after every wait."""

import asyncio

from tui_agent.execution.approval_gate import AnsweredBy
from tui_agent.execution.execution_services import Engine
from tui_agent.execution.json_coercion import NOT_JSON_TEXT, is_json_value, with_json_details
from tui_agent.execution.loop_clock import now
from tui_agent.execution.outcomes import Outcome, failure, invalid, overridden, skipped_on_request
from tui_agent.execution.untrusted_calls import Crash, asked, call_or_default, copy_of, try_call
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import Noticed, ToolBlockedOn, Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionChecker, PermissionDecision
from tui_agent.protocol.tool import Preview

from .admission import guard_input, judge_now, judgement, prepare
from .approval_binding import approval_mismatch, show
from .call_state import CallState

MAX_QUESTIONS = 5
"""Times a person is asked about one call whose targets keep changing; then the answer is no."""

PREVIEW_SECONDS = 5.0
"""How long a tool may take to say what a call would do."""


async def ask_user(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 8: asks a person where the judgement says so, unless exactly this was approved already (C43–C46)."""
    if not needs_approval(engine, state):
        return None
    if state.questions >= MAX_QUESTIONS:
        return failure("denied_policy", "Permission denied: what this call would touch kept changing.", "unstable")
    state.questions += 1
    return await state.unless_stopped(_ask(engine, state))


def needs_approval(engine: Engine, state: CallState) -> bool:
    """Whether a person must be asked about the call as it is now: an approval counts for what was shown, no more."""
    decision = state.decision
    if engine.policy is None or decision is None or decision.decision != "ask":
        return False
    return approval_mismatch(engine, state) is not None


def recheck_decision(engine: Engine, state: CallState) -> Outcome | None:
    """Stage 9: after a wait the call is judged anew, and the tool must still be the one that was judged (P51, P53)."""
    if engine.registry.find(state.call.name) is not state.tool:
        text = f"Tool {state.call.name} not found: it was removed or replaced while the call waited. Not run."
        return failure("not_found", text, "tool_removed")
    return judge_now(engine, state)


async def _ask(engine: Engine, state: CallState) -> Outcome | None:
    async with engine.gate.preparing:
        request = await _request(engine, state)
    engine.publisher.publish(ToolBlockedOn(call_id=state.call.id, what="approval"))
    began = now()
    try:
        answer = await engine.gate.ask(request, engine.publisher, lambda: _judged(engine, state))
    finally:
        state.asked += ((began, now()),)
        state.stale = True
    return await _take_answer(engine, state, request, answer.decision, answer.by)


async def _take_answer(
    engine: Engine, state: CallState, request: ApprovalRequest, decision: ApprovalDecision, by: AnsweredBy
) -> Outcome | None:
    match decision.decision:
        case "deny":
            return _denied(engine, decision, by)
        case "skip":
            text = f"Skipped by the user.{_said(decision)}"
            is_error = engine.options.skip_is_error
            answer = decision.override_result
            result = None if answer is None else with_json_details(answer)
            return skipped_on_request("skipped_user", text, result, is_error=is_error)
        case "approve":
            if decision.note and by != "policy":
                state.notes += (f"The user said: {decision.note}",)
            if decision.override_result is not None:
                return overridden(with_json_details(decision.override_result))
            if by == "policy":
                return None
            return await _take_approval(engine, state, request, decision)


async def _take_approval(
    engine: Engine, state: CallState, request: ApprovalRequest, decision: ApprovalDecision
) -> Outcome | None:
    edited = decision.input is not None and decision.input != state.arguments
    if decision.input is not None and edited:
        refusal = await _edit(engine, state, decision.input)
        if refusal is not None:
            return refusal
    state.approved = request.digest
    if edited:
        state.approved = show(state)
    if decision.scope != "once":
        await _grant(engine, state, request, decision, edited=edited)
    return None


async def _edit(engine: Engine, state: CallState, arguments: JsonObject) -> Outcome | None:
    """Takes a person's arguments: validated, guarded and judged as if the model had sent them."""
    if not is_json_value(arguments):
        return invalid(f"The user changed the arguments before approving: {NOT_JSON_TEXT}")
    before = state.arguments
    state.arguments = copy_of(arguments)
    refusal = prepare(engine, state)
    if refusal is not None:
        return invalid(f"The user changed the arguments before approving, and they do not fit. {refusal.result.text}")
    state.turns.change(state)
    changed = {name for name in {*before, *state.arguments} if before.get(name) != state.arguments.get(name)}
    state.edited, state.edited_names = state.arguments, state.edited_names | changed
    return await guard_input(engine, state) or judge_now(engine, state)


def _denied(engine: Engine, decision: ApprovalDecision, by: AnsweredBy) -> Outcome:
    if by == "user" or by == "resume":
        outcome = failure("denied_user", f"The user denied this call.{_said(decision)}", "denied_user")
        if engine.options.on_reject == "stop_turn" and not decision.note:
            return Outcome(outcome.status, outcome.result, outcome.error_kind, halts="stopped")
        return outcome
    return failure("denied_policy", f"Permission denied: {decision.note or by}", f"denied_by_{by}")


def _said(decision: ApprovalDecision) -> str:
    return f" The user said: {decision.note}" if decision.note else ""


async def _grant(
    engine: Engine, state: CallState, request: ApprovalRequest, decision: ApprovalDecision, *, edited: bool
) -> None:
    """Stores the rule that was offered, and lets every other waiting question profit from it at once (P55)."""
    assert engine.policy is not None
    context: JsonObject = {"call_id": state.call.id}
    rule = _rule_for(engine.policy, state) if edited else request.session_rule
    if not edited and decision.rule is not None:
        rule = decision.rule if decision.rule in request.rules else None
    where: object = Crash(ConfigurationError("no rule is narrow enough to be stored for this call"))
    if rule is not None and decision.scope == "session":
        where = try_call(engine.policy.grant, rule, decision.scope)
    elif rule is not None:
        # It is written to a settings file.
        where = await asyncio.to_thread(try_call, engine.policy.grant, rule, decision.scope)
    if isinstance(where, Crash) or rule is None:
        why = where.text if isinstance(where, Crash) else "no rule"
        text = f"The call was approved, once only: {why}."
        engine.publisher.publish(Warned(code="grant_failed", text=text, context=context))
    else:
        if where is not None:
            text = f"From now on allowed: {', '.join(rule.splitlines())}. To take it back, delete that from {where}."
            engine.publisher.publish(Noticed(code="rule_stored", text=text, context=context))
        engine.gate.reconsider()


def _rule_for(policy: PermissionChecker, state: CallState) -> str | None:
    return call_or_default(policy.grant_rule, state.known_tool, state.arguments, otherwise=None, kind=str)


def _choices_for(policy: PermissionChecker, state: CallState) -> tuple[str, ...]:
    choices = call_or_default(policy.grant_choices, state.known_tool, state.arguments, otherwise=(), kind=tuple)
    return tuple(rule for rule in choices if isinstance(rule, str))  # pyright: ignore[reportUnnecessaryIsInstance] — foreign


async def _request(engine: Engine, state: CallState) -> ApprovalRequest:
    tool, decision = state.known_tool, state.decision
    assert decision is not None
    assert engine.policy is not None
    why_again = approval_mismatch(engine, state)
    digest = show(state)
    preview = await asked(tool.preview, state.arguments, timeout=PREVIEW_SECONDS)
    state.preview = preview if isinstance(preview, Preview) else None
    return ApprovalRequest(
        call_id=state.call.id,
        digest=digest,
        tool=tool.name,
        args=copy_of(state.arguments),
        summary=call_or_default(tool.summarise, state.arguments, otherwise=""),
        reason=f"{decision.reason}; asked again: {why_again}" if why_again else decision.reason,
        preview=state.preview,
        parts=decision.parts,
        trace=decision.trace,
        targets=decision.targets,
        session_rule=_rule_for(engine.policy, state),
        rules=_choices_for(engine.policy, state),
        agent=engine.agent,
    )


def _judged(engine: Engine, state: CallState) -> PermissionDecision:
    assert engine.policy is not None
    return judgement(engine.policy, state.known_tool, state.arguments)
