import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call, run
from tests.execution.stage_kit import Stand
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.admission import (
    time_limit,
)
from tui_agent.execution.pipeline.run_tool import run_tool
from tui_agent.protocol.errors import InvalidArgumentsError, OperationCancelledError, ToolError
from tui_agent.protocol.events import Warned
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext, ToolResult


def raising(error: BaseException) -> Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]:
    async def behaviour(arguments: JsonObject, context: ToolContext) -> ToolResult:
        raise error

    return behaviour


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


# --- before effects ---


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


async def test_unreadable_domain_data_produces_a_warning() -> None:
    async def tell(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.emit("todo.updated", {"items": "none"})
        return ToolResult()

    (warning,) = (await run([ScriptedTool(behaviour=tell)], [call()])).of(Warned)

    assert warning.context == {"call_id": "c", "kind": "todo.updated"}


@pytest.mark.parametrize("own", [0, -1, float("inf"), float("nan"), True, "30", "none"])
def test_an_invalid_timeout_is_refused_with_a_clear_message(own: Any) -> None:
    """0 is neither the configured timeout nor unlimited."""
    with pytest.raises(InvalidArgumentsError, match=f"act .*time limit of {own!r}.* more than 0 seconds, or None"):
        time_limit(ScriptedTool(timeout=own), {}, 30.0)
