import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, sleeping
from tests.execution.stage_kit import Stand
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.run_tool import run_tool
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.protocol.events import ToolProgress, ToolUpdated
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult


def raising(error: BaseException) -> Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]:
    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise error

    return behaviour


class Timed:
    """One tool on the virtual clock, measured."""

    def __init__(self, tool: ScriptedTool, meanwhile: Callable[[Stand], Awaitable[None]] | None = None) -> None:
        self.outcome, self.seconds, self.stand = run_virtual(self._run(tool, meanwhile))

    @staticmethod
    async def _run(
        tool: ScriptedTool, meanwhile: Callable[[Stand], Awaitable[None]] | None
    ) -> tuple[Outcome, float, Stand]:
        stand = Stand(tool)
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(run_tool(stand.services, stand.state))
            if meanwhile is not None:
                await meanwhile(stand)
        return task.result(), round(loop.time() - began, 6), stand


@pytest.mark.parametrize(
    ("error", "status", "kind", "text"),
    [
        (ToolError("no such file"), "error", "tool_error", "no such file"),
        (ValueError("broken"), "error", "ValueError", "broken"),
        (ValueError(), "error", "ValueError", "ValueError"),
        (TimeoutError("server slow"), "error", "TimeoutError", "server slow"),
        (asyncio.CancelledError(), "cancelled", "cancelled", "Tool act cancelled itself."),
        (OperationCancelledError("esc"), "cancelled", "cancelled", "esc"),
    ],
)
async def test_a_tools_exception_is_an_error_result(error: BaseException, status: str, kind: str, text: str) -> None:
    stand = Stand(ScriptedTool(behaviour=raising(error)))

    outcome = await run_tool(stand.services, stand.state)

    assert (outcome.status, outcome.error_kind, outcome.result.text) == (status, kind, text)
    assert outcome.result.is_error


@pytest.mark.parametrize("shown", ["details", "model", "none"])
async def test_a_traceback_goes_where_configured(shown: Any) -> None:
    stand = Stand(
        ScriptedTool(behaviour=raising(ValueError("broken"))), options=ExecutionOptions(error_traceback=shown)
    )

    outcome = await run_tool(stand.services, stand.state)

    assert ("Traceback" in outcome.result.text) is (shown == "model")
    assert ((outcome.result.details or {}).get("traceback") is not None) is (shown != "none")
    assert (outcome.traceback is not None) is (shown != "none")


# --- time ---


def test_a_tool_that_raises_while_it_is_stopped_still_counts_as_stopped() -> None:
    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ValueError("while tidying") from None
        return ToolResult()

    timed = Timed(ScriptedTool(behaviour=behaviour, timeout=5.0))

    assert timed.outcome.status == "timeout"


# --- reports ---


@pytest.mark.parametrize("timeout", [None, 5.0])
def test_hooked_reports_are_all_published_before_the_end_of_the_call(timeout: float | None) -> None:
    async def slow(question: Any) -> bool:
        await asyncio.sleep(1)
        return question.text != "hidden"

    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        for text in ("one", "hidden", "two"):
            context.update(ToolResult.of_text(text))
        context.progress("three")
        await asyncio.sleep(0 if timeout is None else 1000)
        return ToolResult.of_text("done")

    async def work() -> Stand:
        hooks = HookBus()
        hooks.add("before_update", slow)
        stand = Stand(ScriptedTool(behaviour=behaviour, timeout=timeout), hooks=hooks)
        await run_tool(stand.services, stand.state)
        return stand

    stand = run_virtual(work())

    assert [event.partial.text for event in stand.events(ToolUpdated)] == ["one", "two"]
    assert len(stand.events(ToolProgress)) == 1


# --- before effects ---


async def test_a_read_only_call_waits_for_no_record() -> None:
    async def record() -> None:
        raise AssertionError("unexpected call")

    stand = Stand(ScriptedTool(read_only=True), before_effects=record)

    assert (await run_tool(stand.services, stand.state)).status == "ok"


async def test_a_side_effect_that_cannot_be_recorded_does_not_happen() -> None:
    async def record() -> None:
        raise OSError("disk full.")

    tool = ScriptedTool()
    stand = Stand(tool, before_effects=record)
    outcome = await run_tool(stand.services, stand.state)

    assert tool.calls == []
    assert (outcome.status, outcome.error_kind) == ("error", "not_recorded")
    assert outcome.result.text == "Not run: it could not be recorded first (disk full)."


def test_a_call_cancelled_while_it_is_recorded_never_runs() -> None:
    tool = ScriptedTool()

    async def never() -> None:
        await asyncio.Event().wait()

    async def work() -> Outcome:
        stand = Stand(tool, before_effects=never)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(run_tool(stand.services, stand.state))
            await asyncio.sleep(1)
            stand.token.cancel("esc")
        return task.result()

    outcome = run_virtual(work())

    assert (outcome.status, outcome.result.text) == ("cancelled", "Cancelled: esc. The call was not run.")
    assert tool.calls == []


def test_the_timeout_excludes_the_time_to_record() -> None:
    async def record() -> None:
        await asyncio.sleep(20)

    async def work() -> tuple[Outcome, float]:
        stand = Stand(ScriptedTool(behaviour=sleeping(3), timeout=5.0), before_effects=record)
        outcome, run = await run_tool(stand.services, stand.state), stand.state.run
        assert run.started_at is not None
        assert run.finished_at is not None
        return outcome, run.finished_at - run.started_at

    outcome, latency = run_virtual(work())

    assert (outcome.status, round(latency, 6)) == ("ok", 3.0)
