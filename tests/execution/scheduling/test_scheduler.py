import asyncio
import gc
from pathlib import Path
from typing import Any

import pytest

from tests.execution.bench import Bench, bench_of, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import (
    ApprovalGate,
    Auto,
    Batched,
    ExecutionOptions,
    HookBus,
    Parallel,
    Sequential,
)
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ToolData,
)
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import Accesses, ToolContext, ToolResult

# --- strategies ---


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [Sequential(), Parallel(), Batched(2), Auto()])
async def test_a_finished_message_leaves_nothing_to_the_garbage_collector(strategy: Any) -> None:
    tools = [ScriptedTool("look", read_only=True), ScriptedTool()]
    gc.collect()
    gc.disable()
    try:
        before = _states_in_memory()
        await run(tools, calls("look", "act", "nothing", "look", "act"), ExecutionOptions(strategy=strategy))
        assert _states_in_memory() == before
    finally:
        gc.enable()


def _states_in_memory() -> int:
    return sum(type(thing) is CallState for thing in gc.get_objects())


@pytest.mark.parametrize(
    ("how", "flagged", "sibling_abort", "siblings"),
    [
        ("error", True, True, "cancelled"),
        ("timeout", True, True, "cancelled"),
        ("ok", True, True, "ok"),
        ("error", False, True, "ok"),
        ("error", True, False, "ok"),
    ],
)
def test_a_failing_flagged_tool_stops_its_siblings_if_configured(
    how: str, flagged: bool, sibling_abort: bool, siblings: str
) -> None:
    async def end(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(1000 if how == "timeout" else 1)
        if how == "error":
            raise ValueError("broken")
        return ToolResult()

    options = ExecutionOptions(strategy=Batched(2), sibling_abort=sibling_abort)
    first = ScriptedTool("end", end, timeout=5.0)
    first.aborts_siblings = flagged
    tools = [ScriptedTool(behaviour=sleeping(20)), first]

    ran = run_virtual(run(tools, calls("end", "act", "act"), options))

    assert ran.statuses == [how, siblings, siblings]
    if siblings == "cancelled":
        running, waiting = ran.texts[1:]
        assert (
            running == "Cancelled: another call of the same message failed: end (c0). A part of its work may be done."
        )
        assert waiting == "Cancelled: another call of the same message failed: end (c0). The call was not run."


@pytest.mark.parametrize("policy", ["all", "any"])
def test_a_call_that_timed_out_does_not_end_the_run(policy: Any) -> None:
    async def give_up_late(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await context.cancellation.wait()
        return ToolResult(content=(TextBlock(text="half"),), terminate=True)

    tool = ScriptedTool(behaviour=give_up_late, timeout=1.0)

    ran = run_virtual(run([tool], [call()], ExecutionOptions(terminate_policy=policy)))

    assert ran.statuses == ["timeout"]
    assert "half" in ran.texts[0]
    assert not ran.result.terminate
    assert not ran.ended("c").terminate


# --- streaming ---


async def test_a_finished_scheduler_accepts_no_more_calls() -> None:
    async with bench_of([ScriptedTool()]) as bench:
        await bench.scheduler.finish()
        with pytest.raises(RuntimeError, match="finished"):
            bench.scheduler.submit(call())
        with pytest.raises(RuntimeError, match="finished"):
            await bench.scheduler.finish()


# --- cancelling ---


async def test_calls_of_an_earlier_process_get_their_earlier_result_or_one_that_says_it_is_unknown() -> None:
    tool = ScriptedTool()
    async with bench_of([tool]) as bench:
        bench.scheduler.submit_all(calls("act", "act", "act"))
        assert bench.scheduler.mark_interrupted("c0", "It may have run before the crash.")
        assert not bench.scheduler.mark_interrupted("c0", "again")
        assert bench.scheduler.answer_call("c1", ToolResult.of_text("done before"))
        assert not bench.scheduler.answer_call("c1", ToolResult.of_text("again"))
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["interrupted", "overridden", "ok"]
    assert [message.text for message in result.tool_results[:2]] == ["It may have run before the crash.", "done before"]
    assert tool.calls == ["c2"]


# --- approvals ---


async def test_reads_continue_during_a_question_and_a_wider_answer_settles_all() -> None:
    gate = ApprovalGate(interactive=True)
    policy = FakePolicy({"act": "ask"})
    tools = [ScriptedTool("look", read_only=True), ScriptedTool()]
    async with bench_of(tools, ExecutionOptions(strategy=Parallel()), gate=gate, policy=policy) as bench:
        bench.scheduler.submit_all(calls("act", "look", "act", "act"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested, 3)
            assert bench.ended() == {"c1": "ok"}
            gate.resolve(gate.pending[1].request_id, ApprovalDecision(decision="approve", scope="session"))
        statuses = [report.status for report in finishing.result().reports]

    assert statuses == ["ok"] * 4
    assert sorted(event.by for event in bench.events(ApprovalResolved)) == ["policy", "policy", "user"]


async def test_delivered_steering_is_not_lost_by_a_cancellation() -> None:
    doors = Doors()
    steering = Steering(at_poll=1)
    bench = Bench(
        [ScriptedTool(behaviour=doors)],
        ExecutionOptions(strategy=Parallel(), steering_mode="between_calls"),
        get_steering=steering,
    )

    async def work() -> None:
        async with bench.scheduler as scheduler:
            scheduler.submit_all(calls("act", "act"))
            await scheduler.finish()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await doors.until("c0", "c1")
        doors.open("c0")
        while not bench.scheduler.steering_messages:
            await asyncio.sleep(0)
        task.cancel()

    assert [message.text for message in bench.scheduler.steering_messages] == ["stop that"]
    assert set(bench.ended()) == {"c0", "c1"}


def writing(doors: Doors) -> list[ScriptedTool]:
    """Return tools that write their `path`; the policy asks about the first."""
    return [
        ScriptedTool(name, doors, paths=lambda arguments: Accesses(writes=frozenset({Path(arguments["path"])})))
        for name in ("ask", "write")
    ]


async def test_a_call_that_a_hook_rewrites_after_its_approval_waits_for_its_new_conflicts() -> None:
    gate, hooks, doors = ApprovalGate(interactive=True), HookBus(), Doors()
    hooks.before_tool(lambda question: ModifyArguments({"path": "/b"}) if question.call.id == "c0" else None)
    options = ExecutionOptions(pre_hook_position="after_permission")
    async with bench_of(writing(doors), options, gate=gate, policy=FakePolicy({"ask": "ask"}), hooks=hooks) as bench:
        bench.scheduler.submit_all([call("ask", "c0", path="/a"), call("write", "c1", path="/b")])
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ApprovalRequested)
            await settled()
            assert doors.arrived == ["c1"]
            gate.resolve(gate.pending[0].request_id, ApprovalDecision(decision="approve"))
            await settled()
            assert doors.arrived == ["c1"]
            doors.open("c0", "c1")
            await bench.until(ApprovalRequested, 2)
            gate.resolve(gate.pending[0].request_id, ApprovalDecision(decision="approve"))

    assert doors.arrived == ["c1", "c0"]
    assert [event.args for event in bench.events(ApprovalRequested)] == [{"path": "/a"}, {"path": "/b"}]


def test_time_is_added_to_the_limit_and_each_new_limit_is_published() -> None:
    async def work() -> tuple[str, list[float]]:
        tools = [ScriptedTool(behaviour=sleeping(1_000), timeout=5.0)]
        async with bench_of(tools, ExecutionOptions(grace=0)) as bench, asyncio.TaskGroup() as group:
            bench.scheduler.submit_all(calls("act"))
            finishing = group.create_task(bench.scheduler.finish())
            await asyncio.sleep(1)
            for _ in range(2):
                assert bench.scheduler.extend_call("c0", 60.0) is not None
            [result] = (await finishing).tool_results
            return result.text, [event.data["timeout_s"] for event in bench.events(ToolData)]

    text, limits = run_virtual(work())

    assert text.startswith("Tool act timed out after 125 s.")
    assert limits == [65.0, 125.0]


async def test_only_a_running_call_with_a_limit_gets_more_time() -> None:
    doors = Doors()
    tools = [ScriptedTool("look", doors, read_only=True), ScriptedTool()]
    async with bench_of(tools, ExecutionOptions(tool_timeout=None)) as bench:
        bench.scheduler.submit_all(calls("look", "act"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await doors.until("c0")
            await settled()
            assert bench.scheduler.extend_call("c0", 60.0) is None, "it has no limit"
            assert bench.scheduler.extend_call("c1", 60.0) is None, "it waits"
            assert bench.scheduler.extend_call("unknown", 60.0) is None
            doors.open("c0")
        assert [report.status for report in finishing.result().reports] == ["ok", "ok"]
        assert bench.scheduler.extend_call("c0", 60.0) is None, "it is over"
        assert bench.events(ToolData) == []
