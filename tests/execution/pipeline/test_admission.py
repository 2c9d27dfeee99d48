from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, call
from tests.execution.stage_kit import Stand, status
from tui_agent.execution import HookBus
from tui_agent.execution.pipeline.admission import (
    ask_hooks,
)
from tui_agent.execution.pipeline.run_tool import judge_nested_call
from tui_agent.protocol.events import PermissionDecided
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import PermissionDecision
from tui_agent.protocol.tool import Tool

NEEDS_A: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def hooked(answer: Any) -> HookBus:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: answer, name="guard")
    return hooks


async def test_a_rewritten_call_is_validated_again() -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A), asked=call(a=1), hooks=hooked(ModifyArguments({"a": "x"})))

    outcome = await ask_hooks(stand.services, stand.state)

    assert status(outcome) == "denied_hook"
    assert outcome is not None
    assert "rewrote the arguments" in outcome.result.text
    assert "a: 'x' is not of type 'integer'" in outcome.result.text


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

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        raise KeyError("rules")


async def test_a_failing_policy_allows_no_nested_call() -> None:
    stand = Stand(ScriptedTool(read_only=True), policy=BrokenPolicy())

    assert judge_nested_call(stand.services, "act", {}) == "deny"
