"""Properties of every preset; `tests/behaviour` has the literal behaviour of each."""

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, calls, run
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.hooks import OverrideResult
from tui_agent.protocol.tool import ToolResult


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
async def test_floor_results_digest_and_the_missing_approver_work_in_every_preset(name: str) -> None:
    hooks = HookBus()
    hooks.before_tool(
        lambda question: OverrideResult(ToolResult.of_text("known")) if question.call.id == "c0" else None
    )
    policy = FakePolicy({"ask": "ask"}, floor_denies={"act"})
    tools = [ScriptedTool(), ScriptedTool("ask")]

    ran = await run(
        tools,
        calls("act", "ask", "nothing"),
        ExecutionOptions.preset(name),
        hooks=hooks,
        policy=policy,
        gate=ApprovalGate(),
    )

    assert ran.statuses == ["denied_policy", "denied_policy", "not_found"]
    assert "no approver" in ran.texts[1]
