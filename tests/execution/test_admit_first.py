"""Options `admit_first` and `start_events=upfront`: every call is checked before any runs (S1-3, S2-4)."""

import asyncio

from tests.execution.bench import settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, call, calls, run
from tests.execution.pipeline.test_early_executions import TwoAnswers
from tui_agent.execution import (
    ApprovalGate,
    EarlyExecutions,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
)
from tui_agent.protocol.events import ToolEnded, ToolStarted
from tui_agent.protocol.hooks import BeforeTool, ModifyArguments
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Preview, ToolContext, ToolResult

APPROVE = ApprovalDecision(decision="approve")


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
