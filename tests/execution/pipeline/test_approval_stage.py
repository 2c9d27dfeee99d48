from typing import Any

import pytest

from tests.execution.kit import FakePolicy, Ran, ScriptedTool, call, run
from tests.execution.stage_kit import FakeGuardrails, Stand, status
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import (
    ApprovalGate,
    ExecutionOptions,
    HookBus,
    ToolExecutor,
    ToolScheduler,
)
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.admission import judge, recheck_decision
from tui_agent.execution.pipeline.approval_stage import ask_user
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    Noticed,
    Warned,
)
from tui_agent.protocol.hooks import ModifyArguments
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
