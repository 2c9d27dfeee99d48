from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call, run
from tests.execution.stage_kit import FakeGuardrails, Stand, status
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.execution.pipeline.admission import (
    ask_hooks,
    guard_input,
    judge,
)
from tui_agent.execution.pipeline.run_tool import judge_nested_call
from tui_agent.protocol.events import PermissionDecided
from tui_agent.protocol.hooks import ApproveCall, ModifyArguments, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.tool import Tool, ToolResult

NEEDS_A: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def hooked(answer: Any) -> HookBus:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: answer, name="guard")
    return hooks


# --- 1 parse ---


# --- 2 look up ---


# --- 3 prepare ---


# --- 4 floor ---


# --- 5 guardrails ---


async def test_a_guardrail_that_raises_counts_as_tripped() -> None:
    stand = Stand(asked=call(text="worst"), guardrails=FakeGuardrails())

    outcome = await guard_input(stand.services, stand.state)

    assert outcome is not None
    assert "no idea" in outcome.result.text


# --- 6 hooks ---


async def test_a_rewritten_call_is_validated_again() -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A), asked=call(a=1), hooks=hooked(ModifyArguments({"a": "x"})))

    outcome = await ask_hooks(stand.services, stand.state)

    assert status(outcome) == "denied_hook"
    assert outcome is not None
    assert "rewrote the arguments" in outcome.result.text
    assert "a: 'x' is not of type 'integer'" in outcome.result.text


async def test_a_rewritten_call_passes_floor_and_guardrails_again() -> None:
    forbidden = Stand(policy=FakePolicy(), hooks=hooked(ModifyArguments({"forbidden": True})))
    bad = Stand(hooks=hooked(ModifyArguments({"text": "bad"})), guardrails=FakeGuardrails())

    assert status(await ask_hooks(forbidden.services, forbidden.state)) == "denied_policy"
    assert status(await ask_hooks(bad.services, bad.state)) == "denied_guardrail"


async def test_rewriting_does_not_make_a_tool_exist() -> None:
    stand = Stand(asked=call("nothing"), hooks=hooked(ModifyArguments({"b": 2})))

    assert await ask_hooks(stand.services, stand.state) is None
    assert status(stand.invalid_outcome) == "not_found"


@pytest.mark.parametrize("answer", [SkipCall(ToolResult()), OverrideResult(ToolResult())])
async def test_hooks_see_only_calls_that_pass_the_floor(answer: Any) -> None:
    stand = Stand(policy=FakePolicy(floor_denies={"act"}), hooks=hooked(answer))

    assert status(await ask_hooks(stand.services, stand.state)) == "denied_policy"


# --- 7 decision ---


async def test_an_unchanged_decision_is_published_once() -> None:
    stand = Stand(policy=FakePolicy())

    await judge(stand.services, stand.state)
    await judge(stand.services, stand.state)

    assert len(stand.events(PermissionDecided)) == 1


@pytest.mark.parametrize(("allowed", "decision", "source"), [(True, "allow", "hook"), (False, "ask", "rule")])
async def test_a_hook_answers_a_question_only_if_hooks_are_trusted(allowed: bool, decision: str, source: str) -> None:
    options = ExecutionOptions(hook_may_approve=allowed)
    stand = Stand(policy=FakePolicy({"act": "ask"}), hooks=hooked(ApproveCall()), options=options)

    await ask_hooks(stand.services, stand.state)
    await judge(stand.services, stand.state)

    decided = stand.events(PermissionDecided)[0]
    assert (decided.decision, decided.source) == (decision, source)


async def test_a_hook_never_lifts_a_denial() -> None:
    options = ExecutionOptions(hook_may_approve=True)
    stand = Stand(policy=FakePolicy({"act": "deny"}), hooks=hooked(ApproveCall()), options=options)

    await ask_hooks(stand.services, stand.state)

    assert status(await judge(stand.services, stand.state)) == "denied_policy"


# --- checks by a running tool ---


@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [("act", {"a": 1}, "ask"), ("act", {"a": "x"}, "deny"), ("act", {}, "deny"), ("nothing", {}, "deny")],
)
async def test_another_call_gets_the_same_decision_as_if_it_ran(name: str, arguments: JsonObject, verdict: str) -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A), policy=FakePolicy({"act": "ask"}))

    assert judge_nested_call(stand.services, name, arguments) == verdict
    assert stand.events(PermissionDecided) == []


async def test_without_a_policy_every_valid_call_of_a_known_tool_is_allowed() -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A))

    assert judge_nested_call(stand.services, "act", {"a": 1}) == "allow"
    assert judge_nested_call(stand.services, "act", {}) == "deny"


class BrokenPolicy(FakePolicy):
    """Custom policy that breaks its contract."""

    def floor(self, tool: Tool, arguments: JsonObject) -> PermissionDecision | None:
        raise KeyError("floor")

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        raise KeyError("rules")


@pytest.mark.parametrize("hooks", [None, hooked(None)])
async def test_a_failing_policy_allows_nothing_and_the_call_gets_a_result(hooks: HookBus | None) -> None:
    tool = ScriptedTool(read_only=True)

    ran = await run([tool], [call()], policy=BrokenPolicy(), hooks=hooks)

    assert ran.statuses == ["denied_policy"]
    assert "policy failed" in ran.texts[0]
    assert tool.calls == []
    assert judge_nested_call(Stand(tool, policy=BrokenPolicy()).services, "act", {}) == "deny"
