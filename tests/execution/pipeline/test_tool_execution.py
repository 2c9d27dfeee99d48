import asyncio
from typing import Any

from tests.execution.kit import Behaviour, ScriptedTool, call
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution.contained_calls import Crash
from tui_agent.execution.hook_bus import HookBus
from tui_agent.execution.pipeline.tool_execution import ToolExecution
from tui_agent.execution.pipeline.update_channel import UpdateChannel
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult


def execution_of(behaviour: Behaviour, bus: EventBus | None = None) -> ToolExecution:
    channel = UpdateChannel(call(), HookBus(), bus or ValidatingBus(whole=False))
    return ToolExecution("c", ScriptedTool(behaviour=behaviour), {}, {}, CancellationToken(), 2.0, {}, channel)


def context_of(execution: ToolExecution) -> ToolContext:
    return ToolContext("c", "act", cancellation=execution.token, report=execution.report)


def stopped_after(behaviour: Behaviour, *, times: int = 1) -> tuple[float, Any]:
    """Return the virtual seconds from the first stop, after one second, to the end; and the answer."""

    async def work() -> tuple[float, Any]:
        execution = execution_of(behaviour)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(times):
            loop.call_later(1 + number, execution.stop, f"reason {number}")
        await execution.run(context_of(execution))
        assert execution.token.reason == "reason 0"
        assert execution.over.is_set()
        assert execution.ended_at == loop.time()
        return round(loop.time() - began - 1, 6), execution.answer

    return run_virtual(work())


async def ignore_token(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await asyncio.sleep(1000)
    return ToolResult()


async def heed(arguments: JsonObject, context: ToolContext) -> ToolResult:
    await context.cancellation.wait()
    return ToolResult.of_text("half")


def test_a_stopped_tool_may_still_answer_within_the_grace() -> None:
    assert stopped_after(heed) == (0.0, ToolResult.of_text("half"))


def test_a_tool_that_ignores_its_token_is_cancelled() -> None:
    assert stopped_after(ignore_token) == (2.0, None)


def test_a_second_stop_prolongs_nothing() -> None:
    assert stopped_after(ignore_token, times=2) == (2.0, None)


async def test_a_tool_stopped_before_it_started_never_runs() -> None:
    execution = execution_of(heed)
    execution.stop("never mind")

    await execution.run(context_of(execution))

    assert execution.over.is_set()
    assert execution.answer is None
    assert isinstance(execution.tool, ScriptedTool)
    assert execution.tool.calls == []


async def test_a_failure_is_an_answer() -> None:
    async def fail(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise ValueError("broken")

    execution = execution_of(fail)
    await execution.run(context_of(execution))

    assert isinstance(execution.answer, Crash)
    assert execution.answer.text == "broken"


async def test_reports_go_to_the_current_owner() -> None:
    go_on = asyncio.Event()

    async def report(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.progress("one")
        await go_on.wait()
        context.progress("two")
        return ToolResult()

    bus = ValidatingBus(whole=False)
    with bus.subscribe() as subscription:
        execution = execution_of(report, bus)
        async with asyncio.TaskGroup() as group:
            group.create_task(execution.run(context_of(execution)))
            await asyncio.sleep(0)
            first, execution.channel = execution.channel, UpdateChannel(call("act", "next"), HookBus(), bus)
            first.close()
            go_on.set()
        told: list[Any] = [envelope.event for envelope in subscription.drain()]

    assert [(event.call_id, event.text) for event in told] == [("c", "one"), ("next", "two")]
    assert first.late == 0
