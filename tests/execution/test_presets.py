"""Properties of every preset; `tests/behaviour` has the literal behaviour of each."""

import asyncio

import pytest

from tests.execution.bench import bench_of, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, call, calls, run
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.hooks import OverrideResult
from tui_agent.protocol.tool import ToolResult

UNCHECKED = {"rust_loop", "ordered_parallel", "sdk_loop"}
"""Presets that execute arguments without validation."""


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
async def test_presets_validate_arguments_as_required(name: str) -> None:
    tool = ScriptedTool(schema={"type": "object", "required": ["a"]})

    ran = await run([tool], [call("act", b=1)], ExecutionOptions.preset(name))

    assert ran.statuses == ["ok" if name in UNCHECKED else "invalid"]


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
async def test_all_safe_calls_of_a_message_run_concurrently(name: str) -> None:
    """S1-7 and S3-6 have no limit, nor have the presets that run all calls at once."""
    doors = Doors()
    asked = calls(*["look"] * 15)
    tools = [ScriptedTool("look", doors, read_only=True)]

    async with bench_of(tools, ExecutionOptions.preset(name)) as bench:
        bench.scheduler.submit_all(asked)
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await settled()
            arrived = list(doors.arrived)
            doors.open(*(one.id for one in asked))

    assert len(arrived) == 15


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
