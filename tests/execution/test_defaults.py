"""Effects of each default of `ExecutionOptions` that its value alone does not show."""

import asyncio
from typing import Any

from tests.execution.bench import bench_of, settled
from tests.execution.kit import Doors, FakePolicy, Ran, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.events import ApprovalRequested, ToolBlockedOn, ToolStarted
from tui_agent.protocol.hooks import ApproveCall
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import ToolContext, ToolResult


async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise ValueError("broken")


async def test_ten_calls_run_at_once_and_the_next_waits_for_a_slot() -> None:
    doors = Doors()
    async with bench_of([ScriptedTool("look", doors, read_only=True)]) as bench:
        bench.scheduler.submit_all(calls(*["look"] * 11))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await settled()
            assert len(doors.arrived) == 10
            assert [(event.call_id, event.what) for event in bench.events(ToolBlockedOn)] == [("c10", "slot")]
            doors.open(*[f"c{number}" for number in range(11)])


def test_a_call_may_take_thirty_seconds() -> None:
    async def work() -> Ran:
        tools = [
            ScriptedTool("short", sleeping(29.9), read_only=True),
            ScriptedTool("long", sleeping(30.1), read_only=True),
        ]
        return await run(tools, calls("short", "long"))

    assert run_virtual(work()).statuses == ["ok", "timeout"]


def test_a_call_that_ignores_its_token_is_cancelled_after_two_seconds_of_grace() -> None:
    ends: list[float] = []

    async def stay(arguments: JsonObject, context: ToolContext) -> ToolResult:
        try:
            await asyncio.sleep(1000)
        finally:
            ends.append(asyncio.get_running_loop().time() - began)
        return ToolResult()

    began = 0.0

    async def work() -> Ran:
        nonlocal began
        began = asyncio.get_running_loop().time()
        return await run([ScriptedTool(behaviour=stay)], [call()])

    assert run_virtual(work()).statuses == ["timeout"]
    assert [round(end, 6) for end in ends] == [32.0]


async def test_a_result_may_have_a_hundred_thousand_characters() -> None:
    async def speak(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text("x" * arguments["length"])

    ran = await run(
        [ScriptedTool(behaviour=speak)], [call("act", "a", length=100_000), call("act", "b", length=100_001)]
    )

    assert [ran.ended(name).truncated for name in ("a", "b")] == [False, True]
    assert ran.ended("b").persisted_path is None
    assert len(ran.texts[1]) <= 100_000


async def test_a_traceback_goes_to_the_screen_and_not_to_the_model() -> None:
    ran = await run([ScriptedTool(behaviour=fail)], [call()])

    assert ran.texts == ["broken"]
    assert "Traceback" in (ran.ended("c").details or {})["traceback"]


async def test_the_run_ends_only_if_every_result_requests_it() -> None:
    async def end(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(terminate=True)

    tools = [ScriptedTool("end", end), ScriptedTool()]

    assert not (await run(tools, calls("end", "act"))).result.terminate
    assert (await run(tools, calls("end", "end"))).result.terminate
    assert not (await run(tools, [])).result.terminate


async def test_a_hook_cannot_answer_for_the_user() -> None:
    hooks = HookBus()
    hooks.before_tool(lambda question: ApproveCall("fine"))

    ran = await run([ScriptedTool()], [call()], hooks=hooks, policy=FakePolicy({"act": "ask"}), gate=ApprovalGate())

    assert ran.statuses == ["denied_policy"]
    assert len(ran.of(ApprovalRequested)) == 1


async def test_hooks_run_after_validation_and_before_the_decision() -> None:
    seen: list[str] = []
    policy = FakePolicy()
    hooks = HookBus()
    hooks.before_tool(lambda question: seen.append(f"{question.call.id} {policy.checks}"))
    tool = ScriptedTool(schema={"type": "object", "required": ["path"]})

    ran = await run([tool], [call("act", "a"), call("act", "b", path="x")], hooks=hooks, policy=policy)

    assert ran.statuses == ["invalid", "ok"]
    assert seen == ["b 0"]


async def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    ran = await run([ScriptedTool("alpha"), ScriptedTool("beta")], calls("gamma"))

    assert ran.texts[0].startswith("Tool gamma not found")
    assert "alpha" in ran.texts[0]
    assert "beta" in ran.texts[0]


async def test_a_denial_without_a_reason_lets_the_run_continue() -> None:
    gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="deny"))

    ran = await run(
        [ScriptedTool("ask"), ScriptedTool()], calls("ask", "act"), policy=FakePolicy({"ask": "ask"}), gate=gate
    )

    assert ran.statuses == ["denied_user", "ok"]
    assert ran.result.halted is None


def test_steering_that_interrupts_polls_ten_times_a_second() -> None:
    steering = Steering()

    async def work() -> Any:
        options = ExecutionOptions(steering_mode="interrupt")
        return await run([ScriptedTool(behaviour=sleeping(1.05))], [call()], options, steering=steering)

    run_virtual(work())

    assert steering.polls == 10 + 2, "and at the call's end, and at the end of all"


async def test_only_calls_that_run_publish_a_start() -> None:
    ran = await run(
        [ScriptedTool("denied"), ScriptedTool()],
        calls("nothing", "denied", "act"),
        policy=FakePolicy({"denied": "deny"}),
    )

    assert [event.call_id for event in ran.of(ToolStarted)] == ["c2"]
