import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call, sleeping
from tests.execution.stage_kit import Stand, status
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ExecutionOptions, HookBus
from tui_agent.execution.outcomes import Outcome
from tui_agent.execution.pipeline.admission import (
    ask_hooks,
    time_limit,
)
from tui_agent.execution.pipeline.run_tool import run_tool
from tui_agent.execution.pipeline.update_channel import UpdateChannel
from tui_agent.protocol.errors import InvalidArgumentsError, OperationCancelledError, ToolError
from tui_agent.protocol.events import Warned
from tui_agent.protocol.hooks import ModifyArguments
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import DataUpdate, ToolContext, ToolResult


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


CALL = ToolCall(id="c", name="act")


class Kept:
    """Channel and the events it published."""

    def __init__(self, hooks: HookBus | None = None) -> None:
        bus = ValidatingBus(whole=False)
        self._subscription = bus.subscribe(merge=False)
        self.channel = UpdateChannel(CALL, hooks or HookBus(), bus)

    def events(self) -> list[Any]:
        return [envelope.event for envelope in self._subscription.drain()]


async def test_unreadable_domain_data_produces_a_warning() -> None:
    kept = Kept()

    kept.channel.report(DataUpdate(kind="todo.updated", data={"items": "none"}))

    warning = kept.events()[0]
    assert isinstance(warning, Warned)
    assert warning.context == {"call_id": "c", "kind": "todo.updated"}


class Timed(ScriptedTool):
    """Tool with a fixed answer about its timeout."""

    def __init__(self, says: Any, seconds: float = 0) -> None:
        super().__init__("act", sleeping(seconds))
        self._says = says

    def timeout(self, arguments: JsonObject) -> Any:
        return self._says


@pytest.mark.parametrize("own", [0, -1, float("inf"), float("nan"), True, "30", "none"])
def test_an_invalid_timeout_is_refused_with_a_clear_message(own: Any) -> None:
    """0 is neither the configured timeout nor unlimited."""
    with pytest.raises(InvalidArgumentsError, match=f"act .*time limit of {own!r}.* more than 0 seconds, or None"):
        time_limit(Timed(own), {}, 30.0)


NEEDS_A: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def hooked(answer: Any) -> HookBus:
    hooks = HookBus()
    hooks.add("before_tool", lambda question: answer, name="guard")
    return hooks


async def test_a_rewritten_call_is_validated_again() -> None:
    stand = Stand(ScriptedTool(schema=NEEDS_A), asked=call(a=1), hooks=hooked(ModifyArguments({"a": "x"})))

    outcome = await ask_hooks(stand.services, stand.state)

    assert status(outcome) == "denied_hook"
    assert outcome is not None
    assert "rewrote the arguments" in outcome.result.text
    assert "a: 'x' is not of type 'integer'" in outcome.result.text
