import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.execution.kit import call, run
from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.tool_registry import as_tool, from_function
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolOutput, ToolProgress
from tui_agent.protocol.function_tool import tool
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import ToolContext


async def two(args: JsonObject, context: ToolContext) -> str:
    context.progress("on it")
    return f"{context.call_id} {args['q']}"


async def test_a_two_argument_tool_runs_unchanged() -> None:
    ran = await run([from_function(two, name="search", description="d")], [call("search", q="cats")])

    assert ran.texts == ["c cats"]
    assert "tool.progress c" in ran.types


@pytest.mark.parametrize(
    ("read_only", "answer"),
    [(True, True), (False, False), ("no", False), (1, False), (lambda: False, False), (lambda arguments: True, True)],
)
def test_a_foreign_tool_is_read_only_only_if_it_declares_so(read_only: object, answer: bool) -> None:
    tool = as_tool(SimpleNamespace(name="f", description="d", parameters={}, read_only=read_only))

    assert tool.is_read_only({}) is answer
    assert tool.is_concurrency_safe({}) is answer


@pytest.mark.parametrize("said", [{"timeout": 0}, {"execution_mode": "sequentiel"}, {"aborts_siblings": "no"}])
def test_unsupported_declarations_of_a_foreign_tool_are_refused(said: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        as_tool(SimpleNamespace(name="f", description="d", parameters={}, **said))


def test_a_function_can_be_given_a_timeout_a_mode_and_its_safety() -> None:
    tool = from_function(two, name="f", description="d", timeout=3, execution_mode="sequential", concurrency_safe=True)

    assert (tool.timeout({}), tool.execution_mode, tool.is_concurrency_safe({})) == (3, "sequential", True)
    assert not tool.is_read_only({})


@pytest.mark.parametrize(
    "function",
    [
        lambda: None,
        lambda a: None,
        lambda a, b, c: None,
        lambda a, b, c, d, e: None,
        lambda a, b, *, c: None,
        lambda a, b, *, signal=None, on_update=None: None,
        "no",
    ],
)
def test_a_function_that_every_call_would_fail_is_refused_at_once(function: Any) -> None:
    with pytest.raises(ConfigurationError):
        from_function(function, name="f", description="d")


@pytest.mark.parametrize("wrong", [{"name": None}, {"description": 3}, {"parameters": "none"}, {"execute": "no"}])
def test_a_foreign_object_of_another_shape_is_refused(wrong: dict[str, object]) -> None:
    fields: dict[str, object] = {"name": "f", "description": "d", "parameters": {}, **wrong}
    thing: Any = SimpleNamespace(**fields)

    with pytest.raises(ConfigurationError):
        as_tool(thing)


async def test_a_cancelled_synchronous_function_sees_it_and_its_later_reports_are_dropped() -> None:
    loop, begun, told_late = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    go_on = threading.Event()
    seen: list[bool] = []

    @tool(timeout=None)
    def dig(context: ToolContext) -> str:
        """Dig."""
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(60)
        seen.append(context.cancellation.is_set())
        context.progress("too late")
        context.output("too late")
        context.measure("late", True)
        loop.call_soon_threadsafe(told_late.set)
        return "too late"

    token = CancellationToken()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run([dig], [call("dig")], ExecutionOptions(grace=0), cancellation=token))
        await begun.wait()
        token.cancel("the user pressed escape")
        ran = await task
    go_on.set()
    await told_late.wait()

    assert ran.texts == [
        "Cancelled: the user pressed escape. A part of its work may be done. Its function runs in a thread that cannot "
        "be stopped and may still be working."
    ]
    assert (ran.statuses, seen) == (["cancelled"], [True])
    assert ran.of(ToolProgress) == ran.of(ToolOutput) == []
    assert ran.ended("c").metrics == {}
