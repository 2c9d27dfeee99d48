import asyncio
import threading
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from tests.execution.kit import call, run
from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.tool_registry import as_tool, foreign_result, from_function, takes_four_arguments
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolOutput, ToolProgress
from tui_agent.protocol.function_tool import tool
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.tool import ToolContext, ToolResult


async def four(tool_call_id: str, args: JsonObject, signal: Any, on_update: Callable[[Any], None]) -> Any:
    on_update({"content": [{"type": "text", "text": "half"}]})
    return {
        "content": [{"type": "text", "text": f"{tool_call_id} {args['q']} {signal.is_set()}"}],
        "details": {"hits": 2},
    }


async def two(args: JsonObject, context: ToolContext) -> str:
    context.progress("on it")
    return f"{context.call_id} {args['q']}"


class Search:
    def __init__(self) -> None:
        self.name = "search"
        self.description = "searches"
        self.parameters: JsonObject = {
            "type": "object",
            "properties": {"q": {"type": "string"}},
            "required": ["q"],
        }

    async def execute(
        self, tool_call_id: str, args: JsonObject, signal: asyncio.Event, on_update: Callable[[Any], None]
    ) -> Any:
        return SimpleNamespace(content=(TextBlock(text=args["q"]),), details=None)


async def test_a_two_argument_tool_runs_unchanged() -> None:
    ran = await run([from_function(two, name="search", description="d")], [call("search", q="cats")])

    assert ran.texts == ["c cats"]
    assert "tool.progress c" in ran.types


def test_a_value_that_is_not_a_tool_is_refused() -> None:
    thing: Any = object()

    with pytest.raises(ConfigurationError, match=r"a tool must be a Tool, .* got an object"):
        as_tool(thing)


class Careful(Search):
    """Foreign tool with all optional declarations."""

    execution_mode = "sequential"
    aborts_siblings = True

    def is_read_only(self, arguments: JsonObject) -> bool:
        return arguments["q"] == "look"

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        return arguments["q"] == "safe"

    def timeout(self, arguments: JsonObject) -> float:
        return 5.0


def test_declarations_of_a_foreign_tool_are_respected() -> None:
    tool = as_tool(Careful())

    assert [tool.is_read_only({"q": q}) for q in ("look", "safe")] == [True, False]
    assert [tool.is_concurrency_safe({"q": q}) for q in ("look", "safe")] == [False, True]
    assert (tool.timeout({}), tool.execution_mode, tool.aborts_siblings) == (5.0, "sequential", True)


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
    ("function", "answer"),
    [
        (four, True),
        (two, False),
        (lambda a, b, c=1, d=2: None, False),
        (lambda a, b, *, c=1: None, False),
        (lambda a, b, c, d=2: None, True),
        (lambda *given: None, False),
        (lambda tool_call_id, args, signal=None, on_update=None: None, True),
    ],
)
def test_the_four_argument_form_is_recognised(function: Callable[..., Any], answer: bool) -> None:
    assert takes_four_arguments(function) is answer


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


@pytest.mark.parametrize("make", [dict, SimpleNamespace])
def test_every_field_of_a_foreign_result_is_kept(make: Callable[..., Any]) -> None:
    given = {"content": "bad", "is_error": True, "terminate": True, "child_run_id": "run_1", "details": {"a": 1}}

    assert foreign_result(make(**given)) == ToolResult.model_validate(
        {**given, "content": [{"type": "text", "text": "bad"}]}
    )


def shout(text: str, times: int = 1) -> str:
    """Say it loudly.

    Args:
        text: What to say.
    """
    return text.upper() * times


async def whisper(text: str, context: ToolContext) -> str:
    """Say it softly."""
    return f"{text.lower()} {context.call_id}"


class Parrot:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def repeat(self, text: str) -> str:
        """Say it again."""
        self.heard.append(text)
        return text


@pytest.mark.parametrize(
    ("function", "name", "text"),
    [
        (shout, "shout", "HI"),
        (partial(shout, times=2), "shout", "HIHI"),
        (whisper, "whisper", "hi c"),
        (Parrot().repeat, "repeat", "hi"),
    ],
)
async def test_a_typed_function_in_a_list_of_tools_is_adapted(function: Any, name: str, text: str) -> None:
    ran = await run([function], [call(name, text="hi")])

    assert ran.texts == [text]
    assert as_tool(function).spec.input_schema["required"] == ["text"]


async def test_arguments_of_a_typed_function_are_validated() -> None:
    ran = await run([shout], [call("shout", words="hi", times="many")])

    assert ran.statuses == ["invalid"]
    assert "text: is required" in ran.texts[0]
    assert "words: unknown argument" in ran.texts[0]


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (lambda: "x", "a lambda has neither name nor description"),
        (max, "tool max"),
        (Parrot, r"a tool must be a Tool, .* and execute, got the class Parrot, not an instance"),
        ("shout", r"a tool must be a Tool, .* and execute, got 'shout'"),
        (lambda text: text, "a lambda"),
    ],
)
def test_an_unsuitable_value_is_refused_with_a_reason(thing: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
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


async def test_a_synchronous_function_that_respects_its_cancellation_ends_by_itself() -> None:
    loop, begun, stopped = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    @tool(timeout=None)
    def dig(context: ToolContext) -> str:
        """Dig."""
        context.cancellation.on_cancel(stopped.set)
        loop.call_soon_threadsafe(begun.set)
        assert stopped.wait(60)
        context.measure("depth", 3)
        return "three feet"

    token = CancellationToken()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run([dig], [call("dig")], ExecutionOptions(grace=60), cancellation=token))
        await begun.wait()
        token.cancel()
        ran = await task

    assert ran.texts == ["Cancelled. A part of its work may be done.\nUntil then it returned:\nthree feet"]
    assert ran.ended("c").metrics["depth"].value == 3


async def test_a_synchronous_function_reports_from_its_thread_before_its_end() -> None:
    @tool
    def dig(context: ToolContext) -> str:
        """Dig."""
        for foot in range(3):
            context.progress(f"{foot + 1} feet", foot / 3)
        context.emit("depth", {"feet": 3})
        return "done"

    ran = await run([dig], [call("dig")])

    assert [event.text for event in ran.of(ToolProgress)] == ["1 feet", "2 feet", "3 feet"]
    assert ran.types.index("tool.data c") < ran.types.index("tool.ended c")
