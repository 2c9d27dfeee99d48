import asyncio
from typing import Any

import pytest

from tests.execution.kit import FakePolicy, Ran, ScriptedTool, call, run
from tests.execution.stage_kit import FakeGuardrails, Stand, status
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import (
    ApprovalGate,
    ExecutionOptions,
    HookBus,
    Parallel,
    ToolExecutor,
    ToolScheduler,
    call_digest,
)
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.admission import judge, recheck_decision
from tui_agent.execution.pipeline.approval_stage import ask_user
from tui_agent.execution.pipeline.finish_call import notes_of
from tui_agent.protocol.errors import ConfigurationError, InvalidArgumentsError
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Noticed,
    ToolBlockedOn,
    Warned,
)
from tui_agent.protocol.hooks import DenyCall, ModifyArguments, OverrideResult
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import ApprovalDecision, PermissionDecision
from tui_agent.protocol.tool import Preview, ToolResult

NEEDS_A: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def approving(**answer: Any) -> ApprovalGate:
    return ApprovalGate(approver=lambda request: ApprovalDecision.model_validate({"decision": "approve", **answer}))


def asking(**settings: Any) -> Stand:
    settings.setdefault("policy", FakePolicy({"act": "ask"}))
    return Stand(*settings.pop("tools", ()), **settings)


async def outcome_of(stand: Stand) -> Outcome | None:
    return await judge(stand.services, stand.state) or await ask_user(stand.services, stand.state)


async def test_the_question_contains_everything_known() -> None:
    preview = Preview(kind="diff", text="+a", path="/w/f")
    policy = FakePolicy({"act": "ask"}, targets=lambda arguments: ("/w/f",))
    stand = asking(tools=[ScriptedTool(preview=preview)], asked=call(a=1), policy=policy, gate=approving())

    assert await outcome_of(stand) is None

    question = stand.events(ApprovalRequested)[0]
    assert (question.call_id, question.tool, question.args, question.summary) == ("c", "act", {"a": 1}, "act!")
    assert (question.reason, question.targets, question.preview) == ("act is ask", ("/w/f",), preview)
    assert question.digest == call_digest("act", {"a": 1}, ["/w/f"], ScriptedTool().spec.input_schema)
    assert (question.session_rule, question.agent) == ("act(*)", "main")
    assert stand.events(ToolBlockedOn)[0].what == "approval"
    assert stand.state.approval.preview == preview
    assert stand.state.admission.stale
    assert len(stand.state.approval.asked) == 1


async def test_questions_are_asked_in_call_order_however_long_a_preview_takes() -> None:
    class Foreseen(ScriptedTool):
        async def preview(self, arguments: JsonObject) -> Preview | None:
            for _ in range(arguments["turns"]):
                await asyncio.sleep(0)
            return Preview(kind="text", text=f"{arguments['turns']} turns")

    ran = await run(
        [Foreseen()],
        [call("act", f"c{turns}", turns=turns) for turns in (9, 3, 0)],
        ExecutionOptions(strategy=Parallel()),
        policy=FakePolicy({"act": "ask"}),
        gate=approving(),
    )

    questions = ran.of(ApprovalRequested)
    assert [question.call_id for question in questions] == ["c9", "c3", "c0"]
    assert [question.preview.text for question in questions] == ["9 turns", "3 turns", "0 turns"]


async def test_a_failing_preview_is_omitted() -> None:
    class Broken(ScriptedTool):
        async def preview(self, arguments: JsonObject) -> Preview | None:
            raise OSError

    stand = asking(tools=[Broken()], gate=approving())

    assert await outcome_of(stand) is None
    assert stand.events(ApprovalRequested)[0].preview is None


@pytest.mark.parametrize(
    ("answer", "expected", "text", "is_error"),
    [
        ({"decision": "deny"}, "denied_user", "The user denied this call.", True),
        ({"decision": "deny", "note": "wrong file"}, "denied_user", "The user said: wrong file", True),
        ({"decision": "skip"}, "skipped_user", "Skipped by the user.", True),
        ({"decision": "skip", "override_result": ToolResult.of_text("known")}, "skipped_user", "known", False),
        ({"override_result": ToolResult.of_text("instead")}, "overridden", "instead", False),
    ],
)
async def test_the_users_answer_decides(answer: JsonObject, expected: str, text: str, is_error: bool) -> None:
    stand = asking(gate=approving(**answer))

    outcome = await outcome_of(stand)

    assert outcome is not None
    assert outcome.status == expected
    assert text in outcome.result.text
    assert outcome.result.is_error is is_error
    assert outcome.halts is None


async def test_a_call_that_can_never_succeed_asks_no_one() -> None:
    class Impossible(ScriptedTool):
        async def preview(self, arguments: JsonObject) -> Preview | None:
            raise InvalidArgumentsError("line 1: a quote is not closed")

    stand = asking(tools=[Impossible()], gate=approving())

    outcome = await outcome_of(stand)

    assert outcome is not None
    assert (outcome.status, outcome.result.text) == ("invalid", "line 1: a quote is not closed")
    assert stand.events(ApprovalRequested) == []


@pytest.mark.parametrize(("note", "halts"), [("", "stopped"), ("because", None)])
async def test_a_denial_without_a_reason_may_end_the_turn(note: str, halts: str | None) -> None:
    stand = asking(gate=approving(decision="deny", note=note), options=ExecutionOptions(on_reject="stop_turn"))

    outcome = await outcome_of(stand)

    assert outcome is not None
    assert outcome.halts == halts


async def test_the_users_note_with_an_approval_reaches_the_model() -> None:
    stand = asking(gate=approving(note="mind the gap"))

    assert await outcome_of(stand) is None
    assert stand.state.approval.notes == ("The user said: mind the gap",)


async def test_an_edit_with_equal_arguments_is_not_published() -> None:
    class Tidy(ScriptedTool):
        def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
            return {"a": int(arguments["a"])}

    stand = asking(tools=[Tidy(schema=NEEDS_A)], asked=call(a=1), gate=approving(input={"a": "1"}))

    assert await outcome_of(stand) is None
    assert notes_of(stand.state) == ()


EDITED = "[The user changed the arguments before approving: a."


class ByArguments(FakePolicy):
    """Policy that asks unless a rule denies or allows the arguments."""

    def check(self, tool: Any, arguments: JsonObject) -> PermissionDecision:
        verdict = {"denied": "deny", "allowed": "allow"}.get(str(arguments.get("a")))
        if verdict is None:
            return super().check(tool, arguments)
        return PermissionDecision.model_validate({"decision": verdict, "source": "rule", "reason": "a rule"})


@pytest.mark.parametrize(
    ("given", "status", "why"),
    [
        ({"a": "denied"}, "denied_policy", "a rule"),
        ({"a": 2, "forbidden": 1}, "denied_policy", "protected"),
        ({"a": "bad"}, "denied_guardrail", "bad word"),
        ({"a": "worst"}, "denied_guardrail", "no idea"),
    ],
)
async def test_a_denial_of_edited_arguments_does_not_claim_that_the_call_ran(
    given: JsonObject, status: str, why: str
) -> None:
    tool = ScriptedTool()
    ran = await run_guarded(tool, call(a=1), ByArguments({"act": "ask"}), approving(input=given))

    assert ran.statuses == [status]
    assert EDITED[:-1] in ran.texts[0]
    assert "The call did not run.]" in ran.texts[0]
    assert why in ran.texts[0]
    assert "ran with them" not in ran.texts[0]
    assert tool.calls == []


@pytest.mark.parametrize("given", [{"a": "x"}, {}, {"a": {1, 2}}])
async def test_invalid_edited_arguments_do_not_claim_that_the_call_ran(given: JsonObject) -> None:
    tool = ScriptedTool(schema=NEEDS_A)
    gate = ApprovalGate(approver=lambda request: ApprovalDecision.model_construct(decision="approve", input=given))

    ran = await run([tool], [call(a=1)], policy=FakePolicy({"act": "ask"}), gate=gate)

    assert ran.statuses == ["invalid"]
    assert ran.texts[0].count("The user changed the arguments before approving") == 1
    assert "ran" not in ran.texts[0].replace("guardrail", "")
    assert tool.calls == []


async def test_edited_arguments_that_a_hook_denies_or_answers_did_not_run() -> None:
    for answer, expected in ((DenyCall("no"), "denied_hook"), (OverrideResult(ToolResult.of_text("x")), "overridden")):
        tool, hooks = ScriptedTool(), HookBus()
        hooks.add("before_tool", lambda question, answer=answer: answer, name="hook")
        ran = await run(
            [tool],
            [call(a=1)],
            ExecutionOptions(pre_hook_position="after_permission"),
            hooks=hooks,
            policy=FakePolicy({"act": "ask"}),
            gate=approving(input={"a": 2}),
        )

        assert ran.statuses == [expected]
        assert f"{EDITED} The call did not run.]" in ran.texts[0]
        assert tool.calls == []


async def test_edited_arguments_that_a_hook_changes_again_are_not_reported_as_run() -> None:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: ModifyArguments({"a": "allowed"}), name="hook")

    ran = await run(
        [ScriptedTool()],
        [call(a=1)],
        ExecutionOptions(pre_hook_position="after_permission"),
        hooks=hooks,
        policy=ByArguments({"act": "ask"}),
        gate=approving(input={"a": 2}),
    )

    assert ran.statuses == ["ok"]
    assert "{'a': 'allowed'}" in ran.texts[0]
    assert f"{EDITED} They were changed again before it ran.]" in ran.texts[0]


@pytest.mark.parametrize("fails", [False, True])
async def test_edited_arguments_that_ran_are_reported_as_such(fails: bool) -> None:
    async def behaviour(arguments: JsonObject, context: Any) -> ToolResult:
        if fails:
            raise ValueError("broken")
        return ToolResult.of_text("done")

    ran = await run(
        [ScriptedTool("act", behaviour)],
        [call(a=1)],
        policy=FakePolicy({"act": "ask"}),
        gate=approving(input={"a": 2}, note="two is enough"),
    )

    assert ran.texts == [
        f"[The user said: two is enough]\n{EDITED} The call ran with them.]\n{'broken' if fails else 'done'}"
    ]


async def run_guarded(tool: ScriptedTool, asked: ToolCall, policy: FakePolicy, gate: ApprovalGate) -> Ran:
    """Run calls with guardrails, for which `run` has no argument."""
    bus = ValidatingBus()
    executor = ToolExecutor([tool], bus=bus, policy=policy, gate=gate, guardrails=FakeGuardrails())
    with bus.subscribe(merge=False) as subscription:
        async with ToolScheduler(executor) as scheduler:
            scheduler.submit_all([asked])
            result = await scheduler.finish()
        envelopes = subscription.drain()
    bus.judge()
    return Ran(result, envelopes)


@pytest.mark.parametrize("scope", ["session", "project", "user"])
async def test_a_wider_approval_stores_the_rule_from_the_dialog(scope: str) -> None:
    policy = FakePolicy({"act": "ask"})
    stand = asking(policy=policy, gate=approving(scope=scope))

    assert await outcome_of(stand) is None
    assert policy.granted == [("act(*)", scope)]


async def test_a_rule_that_cannot_be_stored_is_published_and_the_call_runs_once() -> None:
    class Refusing(FakePolicy):
        def grant(self, rule: str, scope: Any) -> None:
            raise ConfigurationError("read-only disk")

    for policy in (Refusing({"act": "ask"}), FakePolicy({"act": "ask"}, rule=None)):
        stand = asking(policy=policy, gate=approving(scope="project"))
        assert await outcome_of(stand) is None
        assert [event.code for event in stand.events(Warned)] == ["grant_failed"]


class Choosing(FakePolicy):
    """Policy that offers two rules and writes the granted one to a file."""

    def grant_choices(self, tool: Any, arguments: JsonObject) -> tuple[str, ...]:
        return ("act(one)", "act(*)")

    def grant(self, rule: str, scope: Any) -> str | None:
        super().grant(rule, scope)
        return None if scope == "session" else "a.toml"


async def test_the_user_may_choose_another_offered_rule_and_learns_its_file() -> None:
    policy = Choosing({"act": "ask"})
    stand = asking(policy=policy, gate=approving(scope="user", rule="act(one)"))

    assert await outcome_of(stand) is None

    assert policy.granted == [("act(one)", "user")]
    assert stand.events(ApprovalRequested)[0].rules == ("act(one)", "act(*)")
    told = [event.text for event in stand.events(Noticed)]
    assert told == ["From now on allowed: act(one). To undo this, delete it from a.toml."]


async def test_a_rule_that_was_not_offered_is_not_stored() -> None:
    policy = Choosing({"act": "ask"})
    stand = asking(policy=policy, gate=approving(scope="session", rule="*"))

    assert await outcome_of(stand) is None

    assert policy.granted == []
    assert [event.code for event in stand.events(Warned)] == ["grant_failed"]


class Checking(FakePolicy):
    """Policy that accepts one rule which it does not propose."""

    def grant_refusal(self, rule: str, tool: Any, arguments: JsonObject) -> str:
        if rule == "act(broken)":
            raise ValueError("a faulty policy")
        return "" if rule == "act(typed)" else "too wide"


@pytest.mark.parametrize("rule", ["act(typed)", "*"])
async def test_a_typed_rule_is_stored_only_if_the_policy_accepts_it(rule: str) -> None:
    policy = Checking({"act": "ask"})
    stand = asking(policy=policy, gate=approving(scope="session", rule=rule))

    assert await outcome_of(stand) is None

    stored = rule == "act(typed)"
    assert policy.granted == [(rule, "session")] * stored
    assert stand.events(ApprovalResolved)[0].rule == (rule if stored else None)
    assert [event.code for event in stand.events(Warned)] == ["grant_failed"] * (not stored)


async def test_the_rule_of_an_edited_call_covers_the_edited_arguments() -> None:
    class ByArguments(FakePolicy):
        def grant_rule(self, tool: Any, arguments: JsonObject) -> str | None:
            return f"act({arguments['a']})"

    policy = ByArguments({"act": "ask"})
    stand = asking(policy=policy, asked=call(a=1), gate=approving(scope="session", input={"a": 2}))

    await outcome_of(stand)

    assert policy.granted == [("act(2)", "session")]


async def test_a_tool_that_was_removed_or_replaced_does_not_run() -> None:
    stand = Stand()
    assert recheck_decision(stand.services, stand.state) is None

    stand.services.registry.remove("act")
    assert status(recheck_decision(stand.services, stand.state)) == "not_found"

    stand.services.registry.add(ScriptedTool())
    assert status(recheck_decision(stand.services, stand.state)) == "not_found"
