from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call, run
from tests.execution.stage_kit import FakeGuardrails, Stand, status
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.execution.pipeline.admission import (
    ask_hooks,
    check_call,
    guard_input,
    judge,
    settle,
)
from tui_agent.execution.pipeline.run_tool import judge_nested_call
from tui_agent.protocol.events import GuardrailTripped, PermissionDecided, ToolBlockedOn, Warned
from tui_agent.protocol.hooks import ApproveCall, DenyCall, ModifyArguments, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.permissions import PermissionDecision, PermissionMode
from tui_agent.protocol.tool import Tool, ToolResult

NEEDS_A: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def hooked(answer: Any) -> HookBus:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: answer, name="guard")
    return hooks


# --- 1 parse ---


async def test_malformed_arguments_are_refused() -> None:
    stand = Stand(asked=ToolCall(id="c", name="act", malformed="arguments are not valid JSON: …"))

    outcome = stand.invalid_outcome

    assert status(outcome) == "invalid"
    assert outcome is not None
    assert "not valid JSON" in outcome.result.text


async def test_malformed_arguments_count_as_empty_in_some_presets() -> None:
    options = ExecutionOptions(malformed_args="empty_object")
    stand = Stand(asked=ToolCall(id="c", name="act", malformed="broken"), options=options)

    assert stand.invalid_outcome is None
    assert stand.state.prepared.arguments == {}


async def test_a_call_of_a_truncated_message_is_refused_whatever_its_arguments() -> None:
    stand = Stand(asked=ToolCall(id="c", name="act", arguments={"a": 1}, cut=True))

    assert status(stand.invalid_outcome) == "output_limit"


async def test_the_engine_works_on_a_copy_of_the_arguments() -> None:
    asked = call(a=[1])
    stand = Stand(asked=asked)

    stand.state.prepared.arguments["a"].append(2)

    assert asked.arguments == {"a": [1]}


# --- 2 look up ---


async def test_an_unknown_tool_is_refused_with_its_nearest_names() -> None:
    stand = Stand(ScriptedTool("read"), asked=call("raed"))

    outcome = stand.invalid_outcome

    assert outcome is not None
    assert outcome.result.text == "Tool raed not found. Available tools: read."


async def test_faults_found_at_receipt_are_reported_by_the_pipeline() -> None:
    stand = Stand(ScriptedTool("read"), asked=call("raed"))
    assert stand.events() == []

    assert status(await check_call(stand.services, stand.state)) == "not_found"
    assert [event.code for event in stand.events(Warned)] == ["unknown_tool"]


# --- 3 prepare ---


async def test_invalid_arguments_are_refused() -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A), asked=call(a="x"))

    assert status(stand.invalid_outcome) == "invalid"
    assert status(await check_call(stand.services, stand.state)) == "invalid"


async def test_validation_can_be_disabled() -> None:
    options = ExecutionOptions(validate_arguments=False)
    stand = Stand(ScriptedTool(schema=NEEDS_A), asked=call(a="x"), options=options)

    assert stand.invalid_outcome is None


# --- 4 floor ---


async def test_the_floor_refuses_before_any_hook_or_guardrail_runs() -> None:
    policy = FakePolicy(floor_denies={"act"})
    stand = Stand(policy=policy, hooks=hooked(None))

    assert status(await check_call(stand.services, stand.state)) == "denied_policy"
    decided = stand.events(PermissionDecided)[0]
    assert (decided.decision, decided.source, decided.mode) == ("deny", "floor", PermissionMode.ASK)


async def test_without_a_policy_there_is_no_floor() -> None:
    stand = Stand(hooks=hooked(None))

    assert await check_call(stand.services, stand.state) is None


# --- 5 guardrails ---


async def test_a_guardrail_denies_and_publishes_it() -> None:
    stand = Stand(asked=call(text="bad"), guardrails=FakeGuardrails())

    outcome = await guard_input(stand.services, stand.state)

    assert status(outcome) == "denied_guardrail"
    assert outcome is not None
    assert outcome.halts is None
    tripped = stand.events(GuardrailTripped)[0]
    assert (tripped.name, tripped.lane, tripped.severity, tripped.halted) == ("words", "tool_input", "high", False)


async def test_a_guardrail_may_end_the_run() -> None:
    stand = Stand(asked=call(text="bad"), guardrails=FakeGuardrails(halts=True))

    outcome = await guard_input(stand.services, stand.state)

    assert outcome is not None
    assert outcome.halts == "guardrail"


async def test_a_guardrail_that_raises_counts_as_tripped() -> None:
    stand = Stand(asked=call(text="worst"), guardrails=FakeGuardrails())

    outcome = await guard_input(stand.services, stand.state)

    assert outcome is not None
    assert "no idea" in outcome.result.text


async def test_a_call_that_passes_the_guardrails_continues() -> None:
    assert await guard_input(Stand().services, Stand().state) is None
    stand = Stand(asked=call(text="good"), guardrails=FakeGuardrails())
    assert await guard_input(stand.services, stand.state) is None
    assert stand.state.admission.stale


# --- 6 hooks ---


@pytest.mark.parametrize(
    ("answer", "expected", "text"),
    [
        (None, None, ""),
        (DenyCall("not today"), "denied_hook", "not today"),
        (False, "skipped_hook", "Tool call skipped by before_tool_execution hook"),
        (SkipCall(ToolResult.of_text("cached")), "skipped_hook", "cached"),
        (OverrideResult(ToolResult.of_text("instead")), "overridden", "instead"),
    ],
)
async def test_the_answer_of_a_hook_decides(answer: Any, expected: str | None, text: str) -> None:
    stand = Stand(hooks=hooked(answer))

    outcome = await ask_hooks(stand.services, stand.state)

    assert status(outcome) == expected
    assert outcome is None or outcome.result.text == text
    assert stand.events(ToolBlockedOn)[0].what == "hook"
    assert stand.state.admission.stale


async def test_without_hooks_no_hook_event_is_published() -> None:
    stand = Stand()

    assert await ask_hooks(stand.services, stand.state) is None
    assert stand.events() == []


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


async def test_a_rewritten_call_continues_with_the_new_arguments() -> None:
    stand = Stand(hooks=hooked(ModifyArguments({"b": 2})))

    assert await ask_hooks(stand.services, stand.state) is None
    assert stand.state.prepared.arguments == {"b": 2}


async def test_rewriting_does_not_make_a_tool_exist() -> None:
    stand = Stand(asked=call("nothing"), hooks=hooked(ModifyArguments({"b": 2})))

    assert await ask_hooks(stand.services, stand.state) is None
    assert status(stand.invalid_outcome) == "not_found"


@pytest.mark.parametrize("answer", [SkipCall(ToolResult()), OverrideResult(ToolResult())])
async def test_hooks_see_only_calls_that_pass_the_floor(answer: Any) -> None:
    stand = Stand(policy=FakePolicy(floor_denies={"act"}), hooks=hooked(answer))

    assert status(await ask_hooks(stand.services, stand.state)) == "denied_policy"


async def test_a_skip_without_a_result_is_not_an_error_in_some_presets() -> None:
    stand = Stand(hooks=hooked(SkipCall()), options=ExecutionOptions(skip_is_error=False))

    outcome = await ask_hooks(stand.services, stand.state)

    assert outcome is not None
    assert not outcome.result.is_error


async def test_a_failing_hook_is_distinguished_from_a_denying_one() -> None:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: 1 / 0, name="guard")
    stand = Stand(hooks=hooks)

    outcome = await ask_hooks(stand.services, stand.state)

    assert outcome is not None
    assert outcome.error_kind == "hook_failed"
    assert outcome.result.text.startswith("Hook guard failed")


# --- 7 decision ---


@pytest.mark.parametrize(("verdict", "expected"), [("allow", None), ("ask", None), ("deny", "denied_policy")])
async def test_the_decision_is_published_and_followed(verdict: str, expected: str | None) -> None:
    stand = Stand(policy=FakePolicy({"act": verdict}))

    assert status(await judge(stand.services, stand.state)) == expected
    assert stand.events(PermissionDecided)[0].decision == verdict
    assert stand.state.admission.decision is not None


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


async def test_without_a_policy_every_call_is_allowed() -> None:
    stand = Stand()

    assert await judge(stand.services, stand.state) is None
    assert stand.events() == []


async def test_final_arguments_are_recorded() -> None:
    stand = Stand()

    assert await settle(stand.services, stand.state) is None
    assert stand.turns.heard == ["settle"]


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
