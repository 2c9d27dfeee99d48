"""Options `admit_first` and `start_events=upfront`: every call is checked before any runs (S1-3, S2-4)."""

import asyncio
from typing import Any

import pytest

from tests.execution.bench import bench_of, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, call, calls, run
from tests.execution.pipeline.test_early_executions import TwoAnswers
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    EarlyExecutions,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
)
from tui_agent.protocol.events import ApprovalRequested, ToolEnded, ToolStarted
from tui_agent.protocol.hooks import BeforeTool, ModifyArguments
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Preview, ToolContext, ToolResult

APPROVE = ApprovalDecision(decision="approve")


@pytest.mark.parametrize("strategy", [Auto(), Parallel(), Sequential(), Batched(1)])
@pytest.mark.parametrize(
    ("chosen", "waits"),
    [({"admit_first": True}, True), ({"start_events": "upfront"}, True), ({}, False)],
)
async def test_nothing_runs_before_every_call_is_checked(strategy: Any, chosen: dict[str, Any], waits: bool) -> None:
    gate = ApprovalGate(interactive=True)
    look, ask = ScriptedTool("look", read_only=True), ScriptedTool("ask", read_only=True)
    options = ExecutionOptions(strategy=strategy, **chosen)
    async with bench_of([look, ask], options, gate=gate, policy=FakePolicy({"ask": "ask"})) as bench:
        bench.scheduler.submit_all(calls("look", "ask"))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested)
            await settled()
            assert look.calls == ([] if waits else ["c0"])
            gate.resolve(gate.pending[0].request_id, APPROVE)

    assert bench.ended() == {"c0": "ok", "c1": "ok"}


async def test_a_call_that_started_with_the_answer_keeps_running() -> None:
    gate = ApprovalGate(interactive=True)
    look = ScriptedTool("look", read_only=True)
    policy = FakePolicy({"ask": "ask"})
    async with bench_of(
        [look, ScriptedTool("ask")], ExecutionOptions(admit_first=True), gate=gate, policy=policy
    ) as bench:
        bench.scheduler.submit(call("look", "a"))
        bench.scheduler.submit(call("ask", "b"))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested)
            assert bench.ended() == {"a": "ok"}
            gate.resolve(gate.pending[0].request_id, APPROVE)

    assert look.calls == ["a"]
    assert bench.ended() == {"a": "ok", "b": "ok"}


async def test_an_admitted_call_is_checked_again_when_it_runs() -> None:
    policy = FakePolicy()

    async def forbid(arguments: JsonObject, context: ToolContext) -> ToolResult:
        policy.verdicts["act"] = "deny"
        return ToolResult()

    act = ScriptedTool()
    options = ExecutionOptions(strategy=Sequential(), admit_first=True)

    ran = await run([ScriptedTool("look", forbid), act], calls("look", "act"), options, policy=policy)

    assert ran.statuses == ["ok", "denied_policy"]
    assert act.calls == []


async def test_a_failure_hook_runs_once_for_a_refused_call() -> None:
    asked: list[str] = []
    hooks = HookBus()
    hooks.on_tool_error(lambda question: asked.append(question.call.id))

    ran = await run([], calls("nothing"), ExecutionOptions(admit_first=True), hooks=hooks)

    assert ran.statuses == ["not_found"]
    assert asked == ["c0"]


async def test_a_run_cancelled_during_the_checks_gives_every_call_a_result() -> None:
    gate = ApprovalGate(interactive=True)
    async with bench_of(
        [ScriptedTool("ask")], ExecutionOptions(admit_first=True), gate=gate, policy=FakePolicy({"ask": "ask"})
    ) as bench:
        bench.scheduler.submit_all(calls("ask", "ask"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested, 2)
            bench.token.cancel("enough")

    assert {report.status for report in finishing.result().reports} == {"cancelled"}
    assert finishing.result().halted == "aborted"


# --- upfront starts ---------------------------------------------------------------------------------------------------


async def test_upfront_starts_carry_the_final_arguments() -> None:
    def rewrite(question: BeforeTool) -> ModifyArguments:
        return ModifyArguments({"path": f"/right/{question.call.id}"})

    hooks = HookBus()
    hooks.before_tool(rewrite)
    preview = Preview(kind="text", text="this")
    tools = [ScriptedTool("act", timeout=7.0), ScriptedTool("ask", preview=preview)]
    gate = ApprovalGate(approver=lambda request: APPROVE)
    options = ExecutionOptions(start_events="upfront", strategy=Parallel())

    ran = await run(
        tools, calls("act", "ask", "nothing"), options, hooks=hooks, policy=FakePolicy({"ask": "ask"}), gate=gate
    )

    starts: list[ToolStarted] = ran.of(ToolStarted)
    assert [(start.call_id, start.args, start.timeout_s, start.preview) for start in starts] == [
        ("c0", {"path": "/right/c0"}, 7.0, None),
        ("c1", {"path": "/right/c1"}, 30.0, preview),
        ("c2", {}, None, None),
    ]
    assert [report.arguments for report in ran.result.reports][:2] == [start.args for start in starts][:2]
    ends = [place for place, event in enumerate(ran.events) if isinstance(event, ToolEnded)]
    assert ran.events.index(starts[-1]) < min(ends)


async def test_upfront_starts_name_an_adopted_call() -> None:
    doors, gate = Doors(), asyncio.Event()
    hooks = HookBus()

    @hooks.before_tool
    async def wait(question: BeforeTool) -> None:
        if question.call.id == "b":
            await gate.wait()

    options = ExecutionOptions(start_events="upfront", grace=0)
    turn = TwoAnswers(ScriptedTool("look", doors, read_only=True), options=options, hooks=hooks)
    async with EarlyExecutions(turn.token) as early, asyncio.TaskGroup() as group:
        await turn.break_off(early, call("look", "a"))
        group.create_task(turn.answer(early, call("look", "b")))
        await settled()
        await settled()
        gate.set()
        await settled()
        doors.open("a")

    assert turn.adopted() == {"b": "a"}
    assert turn.ended() == {"a": "cancelled", "b": "ok"}
