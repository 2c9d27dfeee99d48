"""A call that asks the user first: the answer is its result, and without a user the agent decides."""

from typing import Any

from tests.execution.kit import FakePolicy, Ran, call, run
from tests.support.table import table
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, ToolEnded, Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest, PermissionMode
from tui_agent.tools import AskUserTool

STORE: JsonObject = {
    "question": "Which store?",
    "choices": ["files\nOne a day.", {"label": "database"}],
    "default": ["files"],
}
EXTRAS: JsonObject = {
    "question": "What else?",
    "choices": ["tests", "docs", "both"],
    "several": True,
}


async def asked(answer: Any, *questions: JsonObject, policy: FakePolicy | None = None) -> Ran:
    """Run one call whose question gets an answer: a decision, the fields of an approval, or None for no user."""
    answers = iter(answer if isinstance(answer, list) else [answer])

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        given: Any = next(answers)
        decision = given if "decision" in given else {"decision": "approve", "input": given}
        return ApprovalDecision.model_validate(decision)

    gate = ApprovalGate() if answer is None else ApprovalGate(approver=approver)
    asking = call("ask_user", questions=list(questions or (STORE, EXTRAS)))
    return await run([AskUserTool()], [asking], policy=policy or FakePolicy({"ask_user": "ask"}), gate=gate)


@table(
    ("answer", "status", "words"),
    [
        ({"1": "database", "2": ["tests", "both"]}, "ok", ["1. Which store?\n   database", "tests, both"]),
        ({"1": "a queue"}, "ok", ["a queue (in their own words)", "What else?\n   no choice: decide yourself"]),
        ({"2": ["docs", "a diagram"]}, "ok", ["the default holds: files", "docs, a diagram (in their own words)"]),
        ({"decision": "skip"}, "skipped_user", ["The user leaves this to you"]),
        ({"decision": "deny", "note": "later"}, "denied_user", ["declined to answer. The user said: later"]),
        (None, "ok", ["No one can answer here. Decide yourself", "Which store? Default: files", "Default: none"]),
    ],
)
async def test_the_answer_is_the_result(answer: Any, status: str, words: list[str]) -> None:
    # A rule that asks does not ask a second time.
    ran = await asked(answer)

    assert ran.statuses == [status]
    assert all(word in ran.texts[0] for word in words), ran.texts[0]
    (request,) = ran.of(ApprovalRequested)
    assert (request.call_id, request.tool, request.session_rule) == ("c", "ask_user", None)
    assert request.question is not None
    assert [field.kind for field in request.question.fields] == ["choice", "choices"]
    assert [choice.description for choice in request.question.fields[0].choices] == ["One a day.", ""]
    assert ran.of(ToolEnded)[0].is_error is (status == "denied_user")


async def test_an_answer_that_does_not_fit_is_asked_again() -> None:
    ran = await asked([{"3": "x"}, {"1": 7}, {"1": "files"}])

    assert [event.code for event in ran.of(Warned)] == ["bad_selection", "bad_selection"]
    assert [event.answers for event in ran.of(ApprovalResolved)][-1] == {"1": "files"}
    assert "files" in ran.texts[0]


async def test_a_denied_tool_asks_no_one_and_no_policy_is_needed() -> None:
    denied = await asked({"1": "files"}, policy=FakePolicy({"ask_user": "deny"}, mode=PermissionMode.ASK))
    assert denied.of(ApprovalRequested) == []
    assert denied.statuses == ["denied_policy"]

    alone = await run([AskUserTool()], [call("ask_user", questions=[STORE])])
    assert "No one can answer here" in alone.texts[0]


async def test_no_hook_answers_in_place_of_the_user() -> None:
    gate = ApprovalGate(interactive=True)

    def answer(request: ApprovalRequest) -> None:
        yes = ApprovalDecision(decision="approve")
        assert not gate.resolve(request.request_id, yes, by="policy")
        gate.reconsider()
        assert gate.resolve(request.request_id, yes.model_copy(update={"input": {"1": "files"}}))

    gate.on_request = answer
    ran = await run([AskUserTool()], [call("ask_user", questions=[STORE])], policy=FakePolicy(), gate=gate)

    assert [event.by for event in ran.of(ApprovalResolved)] == ["user"]
    assert "files" in ran.texts[0]
