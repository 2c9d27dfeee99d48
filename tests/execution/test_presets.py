"""Whole event sequences of each seed's literal behaviour (engine §3)."""

import asyncio
from typing import Any

import pytest

from tests.execution.bench import Bench
from tests.execution.kit import Doors, FakePolicy, Ran, ScriptedTool, Steering, call, calls, line, run
from tui_agent.execution import ApprovalGate, Batched, ExecutionOptions, HookBus, Sequential
from tui_agent.protocol.events import ToolEnded, ToolUpdated
from tui_agent.protocol.hooks import DenyCall, OverrideResult, SkipCall
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import ToolContext, ToolResult


async def update_then_answer(arguments: JsonObject, context: ToolContext) -> ToolResult:
    context.on_update(ToolResult.of_text("half", details={"n": 1}))
    context.on_progress("soon")
    return ToolResult.of_text("done")


def without_queue(ran: Ran) -> list[str]:
    """The lines the seeds know: queueing, waiting and batches are ours."""
    ours = ("tool.queued", "tool.blocked_on", "tool.batch", "hook.", "warning", "permission.")
    return [line for line in ran.types if not line.startswith(ours)]


async def test_rust_loop_tells_each_call_whole_and_asks_its_hooks_around_it() -> None:
    heard: list[str] = []
    hooks = HookBus()
    hooks.before_tool(lambda question: heard.append(f"before {question.call.id}"))
    hooks.after_tool_observer(lambda ended: heard.append(f"after {ended.call_id} {ended.is_error}"))
    hooks.before_update(lambda question: heard.append(f"update {question.text}"))
    hooks.after_update(lambda question: heard.append("updated"))

    options = ExecutionOptions.preset("rust_loop", strategy=Sequential())
    ran = await run([ScriptedTool(behaviour=update_then_answer)], calls("act", "nothing"), options, hooks=hooks)

    assert without_queue(ran) == [
        "tool.started c0",
        "tool.update c0",
        "tool.progress c0",
        "tool.ended c0",
        "message.started c0",
        "message.ended c0",
        "tool.started c1",
        "tool.ended c1",
        "message.started c1",
        "message.ended c1",
    ]
    assert heard == ["before c0", "update half", "updated", "after c0 False", "before c1", "after c1 True"]
    assert ran.of(ToolUpdated)[0].partial.details == {"n": 1}
    assert ran.texts[1] == "Tool nothing not found"


async def test_rust_loop_vetoed_call_ends_without_a_start() -> None:
    heard: list[Any] = []
    hooks = HookBus()
    hooks.before_tool(lambda question: False)
    hooks.after_tool_observer(heard.append)

    ran = await run([ScriptedTool()], calls("act"), ExecutionOptions.preset("rust_loop"), hooks=hooks)

    assert without_queue(ran) == ["tool.ended c0", "message.started c0", "message.ended c0"]
    assert ran.texts == ["Tool call skipped by before_tool_execution hook"]
    assert ran.result.tool_results[0].is_error
    assert heard == []


async def test_rust_loop_parallel_calls_interleave_freely() -> None:
    doors = Doors()
    bench = Bench([ScriptedTool(behaviour=doors)], ExecutionOptions.preset("rust_loop"))
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls("act", "act"))
        finishing = group.create_task(scheduler.finish())
        await doors.until("c0", "c1")
        doors.open("c1")
        await bench.until(ToolEnded)
        doors.open("c0")
        result = await finishing

    assert [message.call_id for message in result.tool_results] == ["c0", "c1"]
    bench.judge(ordered=False, balanced=True)
    told = [envelope.event for envelope in bench.envelopes]
    order = [event.message.call_id for event in told if event.type == "message.ended"]  # pyright: ignore
    assert order == ["c1", "c0"]


async def test_rust_loop_executes_raw_arguments() -> None:
    tool = ScriptedTool(schema={"type": "object", "required": ["a"]})

    ran = await run([tool], [call("act", b=1)], ExecutionOptions.preset("rust_loop"))

    assert ran.texts == ["act {'b': 1}"]


async def test_rust_loop_batched_looks_for_steering_after_each_chunk() -> None:
    steering = Steering(at_poll=1)
    options = ExecutionOptions.preset("rust_loop", strategy=Batched(2))

    ran = await run([ScriptedTool()], calls("act", "act", "act"), options, steering=steering)

    assert ran.statuses == ["ok", "ok", "skipped_steering"]
    assert ran.texts[2].startswith("Skipped due to queued user message.")


async def test_ordered_parallel_tells_all_starts_before_anything_and_all_ends_after_everything() -> None:
    doors = Doors()
    steering = Steering()
    bench = Bench([ScriptedTool(behaviour=doors)], ExecutionOptions.preset("ordered_parallel"), get_steering=steering)
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls("act", "nothing", "act"))
        finishing = group.create_task(scheduler.finish())
        await doors.until("c0", "c2")
        doors.open("c2", "c0")
        await finishing

    bench.judge(balanced=True)
    told = [line(envelope.event) for envelope in bench.envelopes]
    assert [text for text in told if not text.startswith(("tool.queued", "tool.batch", "warning"))] == [
        "tool.started c0",
        "tool.started c1",
        "tool.started c2",
        "tool.ended c0",
        "message.started c0",
        "message.ended c0",
        "tool.ended c1",
        "message.started c1",
        "message.ended c1",
        "tool.ended c2",
        "message.started c2",
        "message.ended c2",
    ]
    assert steering.polls == 1


async def test_permissioned_runs_safe_calls_first_and_only_allowed_ones() -> None:
    ran_calls: list[str] = []

    async def note(arguments: JsonObject, context: ToolContext) -> ToolResult:
        ran_calls.append(context.call_id)
        return ToolResult()

    tools = [ScriptedTool("look", note, read_only=True), ScriptedTool("act", note), ScriptedTool("rm", note)]

    ran = await run(
        tools,
        calls("act", "look", "rm", "look", "act"),
        ExecutionOptions.preset("permissioned"),
        policy=FakePolicy({"rm": "deny"}),
    )

    assert ran_calls == ["c1", "c3", "c0", "c4"]
    assert ran.statuses == ["ok", "ok", "denied_policy", "ok", "ok"]
    assert "Permission denied" in ran.texts[2]


@pytest.mark.parametrize("refused", ["invalid", "policy"])
async def test_streaming_asks_no_hook_about_calls_that_were_refused(refused: str) -> None:
    asked: list[Any] = []
    hooks = HookBus()
    hooks.before_tool(asked.append)
    tool = ScriptedTool(schema={"type": "object", "required": ["a"]})
    policy = FakePolicy({"act": "deny" if refused == "policy" else "allow"})
    arguments: JsonObject = {"a": 1} if refused == "policy" else {}

    options = ExecutionOptions.preset("streaming")
    ran = await run([tool], [ToolCall(id="c", name="act", arguments=arguments)], options, hooks=hooks, policy=policy)

    assert asked == []
    assert ran.result.tool_results[0].is_error


async def test_streaming_tells_a_veto_in_the_hooks_words_and_a_fault_with_its_traceback() -> None:
    async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise ValueError("broken")

    hooks = HookBus()
    hooks.before_tool(lambda question: DenyCall("not on a friday") if question.call.name == "act" else None)

    options = ExecutionOptions.preset("streaming")
    ran = await run([ScriptedTool(), ScriptedTool("fail", fail)], calls("act", "fail"), options, hooks=hooks)

    assert ran.texts[0] == "not on a friday"
    assert "Traceback" in ran.texts[1]


async def test_sdk_loop_hooks_skip_or_answer_before_the_lookup() -> None:
    hooks = HookBus()

    @hooks.before_tool
    def decide(question: Any) -> Any:
        return {
            "skip": SkipCall(),
            "skip_with": SkipCall(ToolResult.of_text("cached")),
            "override": OverrideResult(ToolResult.of_text("instead")),
        }.get(question.call.name)

    options = ExecutionOptions.preset("sdk_loop")
    ran = await run([ScriptedTool()], calls("skip", "skip_with", "override", "act"), options, hooks=hooks)

    assert ran.statuses == ["skipped_hook", "skipped_hook", "overridden", "ok"]
    assert [message.is_error for message in ran.result.tool_results] == [False] * 4
    assert [report.skipped for report in ran.result.reports] == [True, True, False, False]


async def test_sdk_loop_runs_malformed_arguments_as_none() -> None:
    malformed = ToolCall(id="c", name="act", malformed="broken")

    ran = await run([ScriptedTool()], [malformed], ExecutionOptions.preset("sdk_loop"))

    assert ran.texts == ["act {}"]


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
async def test_floor_results_digest_and_the_absent_approver_hold_in_every_preset(name: str) -> None:
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
