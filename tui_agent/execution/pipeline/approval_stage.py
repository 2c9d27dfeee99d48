"""Stages 8 and 9: ask the user, bind the answer to what was shown, and judge again after every wait.

Before them, the question of a call to the user, such as that of `ask_user`, waits in the gate in place of an approval:
a message withdraws it, and a resumed session asks it again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from tui_agent.execution.approval_gate import (
    AnsweredBy,
    ApprovalAnswer,
    Judge,
    call_digest,
    replaced_paths,
    rule_to_store,
    with_identities,
    without_paths,
)
from tui_agent.execution.contained_calls import Crash, asked, try_call
from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.outcomes import Outcome, failure, invalid, overridden, skipped_on_request
from tui_agent.protocol.errors import ConfigurationError, InvalidArgumentsError, ToolError
from tui_agent.protocol.events import Noticed, ToolBlockedOn, Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import (
    ApprovalDecision,
    ApprovalRequest,
    GrantScope,
    PermissionDecision,
    TypedRuleChecker,
)
from tui_agent.protocol.server_question import ServerQuestion
from tui_agent.protocol.tool import PathSubject, Preview, PreviewError
from tui_agent.protocol.trial import Place

from .admission import guard_input, judge_now, judgement, validate, with_hooks
from .call_state import CallState, RefusedCall

MAX_QUESTIONS = 5
"""Number of questions about one call whose targets keep changing; after that the call is denied."""

PREVIEW_SECONDS = 5.0
"""Seconds that a tool may take to preview a call."""


async def ask_user(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Stage 8: ask the user if the judgement requires it, unless exactly this call was already approved."""
    if not needs_approval(services, state):
        return None
    # Someone keeps changing the target; asking on would wear the user down to a yes.
    if state.approval.questions >= MAX_QUESTIONS:
        return failure("denied_policy", "Permission denied: what this call would touch kept changing.", "unstable")
    # Counted before the question, so that a cancelled one counts, too.
    state.approval.questions += 1
    # A hook that runs after the permission may still rewrite the call, but no other call waits here for the user.
    state.turns.settle(state)
    return await state.unless_stopped(_ask(services, state))


def needs_approval(services: ExecutionServices, state: CallState) -> bool:
    """Return True if the user must approve the call as it is now."""
    decision = state.admission.decision
    if services.policy is None or decision is None or decision.decision != "ask":
        return False
    if state.approval.is_answered:
        # The user has seen the whole call as a question, and answered it.
        return False
    return approval_mismatch(services, state) is not None


def approval_mismatch(services: ExecutionServices, state: CallState) -> str | None:
    """Return why the approval does not cover the call as it is now; empty if there is none; None: it does.

    It covers the call as shown and the files that were at its targets. A file that one of this executor's calls put
    there counts as shown, and so does one whose change the tool itself detects and refuses.
    """
    approval = state.approval
    if approval.digest is None:
        return ""
    # The cheap comparison first; it also covers arguments and place, not only files.
    if approval.digest != _digest(state):
        return "what it would touch or run changed since"
    replaced = replaced_paths(approval.shown)
    if not replaced:
        return None
    prepared, targets = state.accepted, _targets(state)
    # Such a tool refuses on its own what it did not read, so the question would come twice.
    notices = prepared.tool.notices_changes(prepared.arguments)
    known = [path for path in replaced if path in targets and (notices or services.is_own_file(path))]
    approval.shown = without_paths(approval.shown, known)
    others = [path for path in replaced if path not in known]
    return f"{others[0]} was replaced since" if others else None


def record_shown(state: CallState) -> str:
    """Record what is at the call's targets as the user is about to see it; return the digest of the call."""
    # Before the preview: what is shown is then never newer than what was recorded.
    state.approval.shown = with_identities(_targets(state))
    return _digest(state)


def _targets(state: CallState) -> tuple[str, ...]:
    decision = state.admission.decision
    return decision.targets if decision is not None else ()


def _digest(state: CallState) -> str:
    prepared = state.accepted
    schema, decision = prepared.tool.spec.input_schema, state.admission.decision
    scripts = decision.scripts if decision is not None else ()
    name = state.received.call.name
    return call_digest(name, prepared.arguments, _targets(state), schema, scripts, _place(state))


def _place(state: CallState) -> Place:
    """Return the place in which the call runs by the latest decision."""
    decision = state.admission.decision
    return "outside" if decision is None else decision.place


async def _ask(services: ExecutionServices, state: CallState) -> Outcome | None:
    judge, may_store = partial(_judged, services, state), partial(_may_store, services, state)
    opened = await _open(services, state, _request, judge, may_store)
    if isinstance(opened, Outcome):
        return opened
    request, answer = opened
    return await _apply_answer(services, state, request, answer.decision, answer.by)


async def _open(
    services: ExecutionServices,
    state: CallState,
    prepare: Callable[[ExecutionServices, CallState], Awaitable[ApprovalRequest | Outcome]],
    judge: Judge | None = None,
    may_store: Callable[[str], bool] = lambda _: False,
) -> tuple[ApprovalRequest, ApprovalAnswer] | Outcome:
    """Put a question about the call to the user once no earlier one is being prepared, and return the answer.

    Returns:
        The outcome if the call ends without a question.
    """
    state.approval.is_open = True
    try:
        async with services.gate.preparing:
            refusal = await state.turns.before_question(state)
            if refusal is not None:
                return refusal
            request = await prepare(services, state)
            if isinstance(request, Outcome):
                return request
        services.publisher.publish(ToolBlockedOn(call_id=state.received.call.id, what="approval"))
        try:
            return request, await timed_answer(services, state, request, judge, may_store)
        finally:
            state.admission.stale = True
    finally:
        state.approval.is_open = False


async def timed_answer(
    services: ExecutionServices,
    state: CallState,
    request: ApprovalRequest,
    judge: Judge | None,
    may_store: Callable[[str], bool],
) -> ApprovalAnswer:
    """Ask at the gate and note the time, which is the user's and not the call's."""
    began = asyncio.get_running_loop().time()
    try:
        return await services.gate.ask(request, services.publisher, judge, may_store)
    finally:
        state.approval.asked += ((began, asyncio.get_running_loop().time()),)


async def _request(services: ExecutionServices, state: CallState) -> ApprovalRequest | Outcome:
    """Return the question, or the failure of a call that cannot succeed."""
    prepared, decision = state.accepted, state.admission.decision
    assert decision is not None
    assert services.policy is not None
    tool, arguments = prepared.tool, prepared.arguments
    # Asked before the new state is recorded, which would make it match.
    why_again = approval_mismatch(services, state)
    digest = record_shown(state)
    # Asked before the preview: a call that ends meanwhile may have made this one possible.
    is_next = state.turns.is_next(state)
    preview = await asked(tool.preview, arguments, timeout=PREVIEW_SECONDS)
    if isinstance(preview, Crash) and isinstance(preview.error, InvalidArgumentsError):
        return invalid(preview.text)
    if isinstance(preview, Crash) and isinstance(preview.error, ToolError):
        # An earlier call may still make it succeed, and the error may quote what the model may not read.
        if is_next and _may_read_target(services, state):
            if isinstance(preview.error, PreviewError) and preview.error.reported is not None:
                preview.error.reported()
            return failure("error", preview.text, "tool_error")
        known = preview.error.preview if isinstance(preview.error, PreviewError) else None
        preview = known or Preview(kind="text", text=f"This call would currently fail: {preview.text}")
    state.approval.preview = preview if isinstance(preview, Preview) else None
    return ApprovalRequest(
        call_id=state.received.call.id,
        digest=digest,
        tool=tool.name,
        args=arguments,
        summary=prepared.summary,
        reason=f"{decision.reason}; asked again: {why_again}" if why_again else decision.reason,
        preview=state.approval.preview,
        parts=decision.parts,
        trace=decision.trace,
        targets=decision.targets,
        session_rule=services.policy.grant_rule(tool, arguments),
        rules=services.policy.grant_choices(tool, arguments),
        agent=services.agent,
    )


def _may_read_target(services: ExecutionServices, state: CallState) -> bool:
    """Return True if the model may read the call's file without an answer; the error of a preview may quote the file.

    Asks the policy about the tool that is named `read`, because rules on reading are rules for it.
    """
    prepared, read = state.accepted, services.registry.find("read")
    subject = prepared.tool.subject(prepared.arguments)
    if services.policy is None or read is None or not isinstance(subject, PathSubject):
        return False
    return services.policy.check(read, {"path": subject.path}).decision == "allow"


def _judged(services: ExecutionServices, state: CallState) -> PermissionDecision:
    assert services.policy is not None
    prepared = state.accepted
    return with_hooks(services, state.admission, judgement(services.policy, prepared.tool, prepared.arguments))


async def _apply_answer(
    services: ExecutionServices, state: CallState, request: ApprovalRequest, decision: ApprovalDecision, by: AnsweredBy
) -> Outcome | None:
    match decision.decision:
        case "deny":
            # A denial needs no validation: whatever was edited does not run.
            return _denied(services, decision, by)
        case "skip":
            text = f"Skipped by the user.{_quoted_note(decision)}"
            is_error = services.options.skip_is_error
            return skipped_on_request("skipped_user", text, decision.override_result, is_error=is_error)
        case "approve":
            if decision.note and by != "policy":
                state.approval.notes += (f"The user said: {decision.note}",)
            if decision.override_result is not None:
                return overridden(decision.override_result)
            # A rule has no words for the model.
            if by == "policy":
                return None
            return await _apply_approval(services, state, request, decision)


def _denied(services: ExecutionServices, decision: ApprovalDecision, by: AnsweredBy) -> Outcome:
    if by == "user" or by == "resume":
        outcome = failure("denied_user", f"The user denied this call.{_quoted_note(decision)}", "denied_user")
        if services.options.on_reject == "stop_turn" and not decision.note:
            # A bare no usually means "stop"; with a reason the model can do better.
            return Outcome(outcome.status, outcome.result, outcome.error_kind, halts="stopped")
        return outcome
    return failure("denied_policy", f"Permission denied: {decision.note or by}", f"denied_by_{by}")


def _quoted_note(decision: ApprovalDecision) -> str:
    return f" The user said: {decision.note}" if decision.note else ""


async def _apply_approval(
    services: ExecutionServices, state: CallState, request: ApprovalRequest, decision: ApprovalDecision
) -> Outcome | None:
    edited = decision.input is not None and decision.input != state.prepared.arguments
    shown = _place(state)
    if decision.input is not None and edited:
        refusal = await _edit(services, state, decision.input)
        if refusal is not None:
            return refusal
    if _place(state) != shown:
        # The question named the place of another command: the edited one needs a question of its own.
        state.approval.digest, state.admission.stale = request.digest, True
        return None
    # The user saw the edited call, but not what is at its new targets: that is recorded now.
    state.approval.digest = record_shown(state) if edited else request.digest
    if decision.scope != "once":
        await _grant(services, state, request, decision, edited=edited)
    return None


async def _edit(services: ExecutionServices, state: CallState, arguments: JsonObject) -> Outcome | None:
    """Replace the arguments by the user's, which are validated, guarded and judged as if the model had sent them."""
    before, approval = state.accepted, state.approval
    prepared = state.prepared = validate(services, before.tool, arguments)
    if isinstance(prepared, RefusedCall):
        reason = prepared.outcome.result.text
        # Not asked again: the user sees the error with the result and can say it in words.
        return invalid(f"The user changed the arguments before approving, and they do not fit. {reason}")
    state.turn.place = None
    state.turns.change(state)
    old, new = before.arguments, prepared.arguments
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    approval.edited, approval.edited_names = new, approval.edited_names | changed
    return await guard_input(services, state) or judge_now(services, state)


async def _grant(
    services: ExecutionServices,
    state: CallState,
    request: ApprovalRequest,
    decision: ApprovalDecision,
    *,
    edited: bool,
) -> None:
    """Store the rule that the user chose, and judge the other waiting questions by it."""
    assert services.policy is not None
    if edited:
        # The offered rules were made for the arguments before the edit.
        rule = services.policy.grant_rule(state.accepted.tool, state.accepted.arguments)
    else:
        chosen = decision.model_copy(update={"input": None})
        rule = rule_to_store(request, chosen, partial(_may_store, services, state))
    await store_rule(services, state.received.call.id, rule, decision.scope, "The call was approved")


async def store_rule(services: ExecutionServices, call_id: str, rule: str | None, scope: GrantScope, done: str) -> bool:
    """Store a rule that the user chose, and judge the waiting questions by it; return False after a warning.

    Args:
        services: the services.
        call_id: the call of the question.
        rule: the rule; None if none may be stored.
        scope: its scope.
        done: what the answer did all the same if it cannot be stored.
    """
    context: JsonObject = {"call_id": call_id}
    stored_in: object = Crash(ConfigurationError("no rule is narrow enough to be stored for this call"))
    if services.policy is not None and rule is not None and scope == "session":
        stored_in = try_call(services.policy.grant, rule, scope)
    elif services.policy is not None and rule is not None:
        # The policy writes it to a settings file.
        stored_in = await asyncio.to_thread(try_call, services.policy.grant, rule, scope)
    # The approval itself stands: it was given for this call, whatever becomes of the rule.
    if isinstance(stored_in, Crash) or rule is None:
        why = stored_in.text if isinstance(stored_in, Crash) else "no rule"
        services.publisher.publish(Warned(code="grant_failed", text=f"{done}, once only: {why}.", context=context))
        return False
    if stored_in is not None:
        shown = rule.replace("\n", ", ")
        text = f"From now on allowed: {shown}. To undo this, delete it from {stored_in}."
        services.publisher.publish(Noticed(code="rule_stored", text=text, context=context))
    # Questions that this rule answers would otherwise wait for answers that are already given.
    services.gate.reconsider()
    return True


def _may_store(services: ExecutionServices, state: CallState, rule: str) -> bool:
    """Return True if the policy accepts a rule that it did not propose."""
    policy, prepared = services.policy, state.accepted
    return isinstance(policy, TypedRuleChecker) and not policy.grant_refusal(rule, prepared.tool, prepared.arguments)


async def ask_question(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Ask what the tool asks before this call; return why it does not run, or None once there is an answer."""
    prepared = state.prepared
    if isinstance(prepared, RefusedCall) or prepared.question is None or state.approval.is_answered:
        return None
    state.turns.settle(state)
    return await state.unless_stopped(_put_question(services, state, prepared.question))


async def _put_question(services: ExecutionServices, state: CallState, question: ServerQuestion) -> Outcome | None:
    for _ in range(MAX_QUESTIONS):
        # The policy does not judge it again: no rule and no mode can answer for the user.
        opened = await _open(services, state, _question_request)
        if isinstance(opened, Outcome):
            return opened
        try:
            return _apply_selection(state, question, opened[1])
        except ValueError as error:
            text = f"The answer to {state.accepted.tool.name} does not fit the question: {error}. It is asked again."
            context: JsonObject = {"call_id": state.received.call.id}
            services.publisher.publish(Warned(code="bad_selection", text=text, context=context))
    return failure("denied_policy", "No answer fitted the question.", "unstable")


async def _question_request(services: ExecutionServices, state: CallState) -> ApprovalRequest:
    prepared, call = state.accepted, state.received.call
    return ApprovalRequest(
        call_id=call.id,
        digest=call_digest(call.name, prepared.arguments, schema=prepared.tool.spec.input_schema),
        tool=prepared.tool.name,
        args=prepared.arguments,
        summary=prepared.summary,
        agent=services.agent,
        question=prepared.question,
    )


def _apply_selection(state: CallState, question: ServerQuestion, answer: ApprovalAnswer) -> Outcome | None:
    """Note the answer; return why the call does not run, or None.

    Raises:
        ValueError: the answer does not fit the question.
    """
    decision = answer.decision
    said = f" The user said: {decision.note}" if decision.note else ""
    # The tool knows its defaults; without a user they are the answer.
    if answer.by in ("nobody", "timeout"):
        state.approval.is_answered = True
        return None
    match decision.decision:
        case "deny":
            if question.kind == "plan":
                text = f"The user did not accept this plan. Nothing was started, and plan mode stays.{said}"
                return failure("denied_user", text, "denied_user")
            return failure("denied_user", f"The user declined to answer.{said}", "denied_user")
        case "skip":
            text = f"The user leaves this to you: decide yourself.{said}"
            return skipped_on_request("skipped_user", text, decision.override_result, is_error=False)
        case "approve":
            if decision.override_result is not None:
                return overridden(decision.override_result)
            # May raise, so nothing is noted before it.
            state.approval.answers = question.content(decision.input or {})
            state.approval.is_answered = True
            if decision.note:
                state.approval.notes += (f"The user said: {decision.note}",)
            return None
