"""Before stage 8: put the question of a call to the user, such as that of `ask_user`, in place of one for an approval.

It waits in the gate like an approval: a message withdraws it, and a resumed session asks it again.
"""

import asyncio

from tui_agent.execution.approval_binding import call_digest
from tui_agent.execution.approval_gate import ApprovalAnswer
from tui_agent.execution.execution_services import ExecutionServices
from tui_agent.execution.outcomes import Outcome, failure, overridden, skipped_on_request
from tui_agent.protocol.events import ToolBlockedOn, Warned
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.server_question import ServerQuestion

from .approval_stage import MAX_QUESTIONS
from .call_state import CallState, RefusedCall


async def ask_question(services: ExecutionServices, state: CallState) -> Outcome | None:
    """Ask what the tool asks before this call; return why it does not run, or None once there is an answer."""
    prepared = state.prepared
    if isinstance(prepared, RefusedCall) or prepared.question is None or state.approval.is_answered:
        return None
    state.turns.settle(state)
    return await state.unless_stopped(_ask(services, state, prepared.question))


async def _ask(services: ExecutionServices, state: CallState, question: ServerQuestion) -> Outcome | None:
    call_id = state.received.call.id
    for _ in range(MAX_QUESTIONS):
        state.approval.is_open = True
        try:
            async with services.gate.preparing:
                refusal = await state.turns.before_question(state)
                if refusal is not None:
                    return refusal
            services.publisher.publish(ToolBlockedOn(call_id=call_id, what="approval"))
            answer = await _answer(services, state, question)
        finally:
            state.approval.is_open = False
        try:
            return _apply(state, question, answer)
        except ValueError as error:
            text = f"The answer to {state.accepted.tool.name} does not fit the question: {error}. It is asked again."
            services.publisher.publish(Warned(code="bad_selection", text=text, context={"call_id": call_id}))
    return failure("denied_policy", "No answer fitted the question.", "unstable")


async def _answer(services: ExecutionServices, state: CallState, question: ServerQuestion) -> ApprovalAnswer:
    prepared, call = state.accepted, state.received.call
    request = ApprovalRequest(
        call_id=call.id,
        digest=call_digest(call.name, prepared.arguments, schema=prepared.tool.spec.input_schema),
        tool=prepared.tool.name,
        args=prepared.arguments,
        summary=prepared.summary,
        agent=services.agent,
        question=question,
    )
    began = asyncio.get_running_loop().time()
    try:
        # The policy does not judge it again: no rule and no mode can answer for the user.
        return await services.gate.ask(request, services.publisher)
    finally:
        state.approval.asked += ((began, asyncio.get_running_loop().time()),)
        state.admission.stale = True


def _apply(state: CallState, question: ServerQuestion, answer: ApprovalAnswer) -> Outcome | None:
    """Note the answer; return why the call does not run, or None.

    Raises:
        ValueError: the answer does not fit the question.
    """
    decision = answer.decision
    said = f" The user said: {decision.note}" if decision.note else ""
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
            state.approval.answers = question.content(decision.input or {})
            state.approval.is_answered = True
            if decision.note:
                state.approval.notes += (f"The user said: {decision.note}",)
            return None
