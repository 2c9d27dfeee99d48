"""A running call gets more time before its limit stops it."""

import asyncio

from tests.execution.bench import bench_of, settled
from tests.execution.kit import Doors, ScriptedTool, calls, sleeping
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.events import ToolData
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult


def status_after(seconds: float, *added: float) -> tuple[str, str, list[float]]:
    """Run a tool of some seconds under a limit of 5 with added time; return status, text and the reported limits."""

    async def work() -> tuple[str, str, list[float]]:
        async with bench_of(
            [ScriptedTool(behaviour=sleeping(seconds), timeout=5.0)], ExecutionOptions(grace=0)
        ) as bench:
            bench.scheduler.submit_all(calls("act"))
            async with asyncio.TaskGroup() as group:
                finishing = group.create_task(bench.scheduler.finish())
                await asyncio.sleep(1)
                for more in added:
                    assert bench.scheduler.extend_call("c0", more) is not None
            [report] = finishing.result().reports
            [result] = finishing.result().tool_results
            data = [event.data["timeout_s"] for event in bench.events(ToolData)]
            return report.status, result.text, data

    return run_virtual(work())


def test_a_call_with_more_time_runs_past_its_first_limit() -> None:
    assert status_after(60.0)[0] == "timeout"
    assert status_after(60.0, 60.0)[0] == "ok"


def test_time_is_added_to_the_limit_and_each_new_limit_is_published() -> None:
    status, text, limits = status_after(1_000.0, 60.0, 60.0)

    assert status == "timeout"
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


def test_a_tool_with_a_timer_of_its_own_reads_the_added_time() -> None:
    seen: list[float] = []

    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        seen.append(context.extra_seconds())
        await asyncio.sleep(2)
        seen.append(context.extra_seconds())
        return ToolResult()

    async def work() -> None:
        async with bench_of([ScriptedTool(behaviour=behaviour, timeout=5.0)]) as bench:
            bench.scheduler.submit_all(calls("act"))
            async with asyncio.TaskGroup() as group:
                group.create_task(bench.scheduler.finish())
                await asyncio.sleep(1)
                bench.scheduler.extend_call("c0", 30.0)

    run_virtual(work())
    assert seen == [0.0, 30.0]
