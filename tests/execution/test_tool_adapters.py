import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.execution.kit import ScriptedTool, call, run
from tui_agent.execution.tool_adapters import as_tool, foreign_result, from_function, takes_four_arguments
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ToolUpdated
from tui_agent.protocol.messages import JsonObject, TextBlock
from tui_agent.protocol.tool import Tool, ToolContext, ToolResult


async def four(tool_call_id: str, args: JsonObject, signal: Any, on_update: Callable[[Any], None]) -> Any:
    on_update({"content": [{"type": "text", "text": "half"}]})
    return {
        "content": [{"type": "text", "text": f"{tool_call_id} {args['q']} {signal.is_set()}"}],
        "details": {"hits": 2},
    }


async def two(args: JsonObject, context: ToolContext) -> str:
    context.progress("on it")
    return f"{context.call_id} {args['q']}"


async def test_a_four_argument_tool_runs_as_it_is() -> None:
    tool = from_function(four, name="search", description="d", input_schema={"type": "object"})

    ran = await run([tool], [call("search", q="cats")])

    assert ran.texts == ["c cats False"]
    assert ran.result.tool_results[0].details == {"hits": 2}
    assert [update.partial.text for update in ran.of(ToolUpdated)] == ["half"]


async def test_a_two_argument_tool_runs_as_it_is() -> None:
    ran = await run([from_function(two, name="search", description="d")], [call("search", q="cats")])

    assert ran.texts == ["c cats"]
    assert "tool.progress c" in ran.types


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


async def test_a_foreign_object_is_taken_as_a_tool() -> None:
    ran = await run([Search()], [call("search", q="cats"), call("search", "d")])

    assert ran.texts[0] == "cats"
    assert ran.statuses == ["ok", "invalid"]


async def test_a_tool_without_an_execute_function_gives_an_error_result() -> None:
    bare = SimpleNamespace(name="bare", description="d", parameters={"type": "object"})

    ran = await run([bare], [call("bare")])

    assert ran.texts == ["Tool bare has no execute function"]
    assert ran.statuses == ["error"]


def test_a_tool_is_left_as_it_is() -> None:
    tool = ScriptedTool()

    assert as_tool(tool) is tool


def test_what_is_no_tool_is_refused() -> None:
    thing: Any = object()

    with pytest.raises(ConfigurationError, match="no tool"):
        as_tool(thing)


def test_an_adapted_tool_says_what_it_may_and_shows_its_arguments() -> None:
    tool: Tool = from_function(two, name="look", description="d", read_only=True)

    assert tool.is_read_only({})
    assert tool.summarise({"q": 1}) == "q=1"


class Careful(Search):
    """Says of itself what there is to say."""

    execution_mode = "sequential"
    aborts_siblings = True

    def is_read_only(self, arguments: JsonObject) -> bool:
        return arguments["q"] == "look"

    def is_concurrency_safe(self, arguments: JsonObject) -> bool:
        return arguments["q"] == "safe"

    def timeout(self, arguments: JsonObject) -> float:
        return 5.0


def test_what_a_foreign_tool_says_of_itself_is_heeded() -> None:
    tool = as_tool(Careful())

    assert [tool.is_read_only({"q": q}) for q in ("look", "safe")] == [True, False]
    assert [tool.is_concurrency_safe({"q": q}) for q in ("look", "safe")] == [False, True]
    assert (tool.timeout({}), tool.execution_mode, tool.aborts_siblings) == (5.0, "sequential", True)
    assert not tool.is_read_only({}), "what raises gives the careful answer"


@pytest.mark.parametrize(
    ("read_only", "answer"),
    [(True, True), (False, False), ("no", False), (1, False), (lambda: False, False), (lambda arguments: True, True)],
)
def test_a_foreign_tool_is_read_only_only_if_it_says_so(read_only: object, answer: bool) -> None:
    tool = as_tool(SimpleNamespace(name="f", description="d", parameters={}, read_only=read_only))

    assert tool.is_read_only({}) is answer
    assert tool.is_concurrency_safe({}) is answer


@pytest.mark.parametrize("said", [{"timeout": 0}, {"execution_mode": "sequentiel"}, {"aborts_siblings": "no"}])
def test_what_a_foreign_tool_says_is_refused_where_nobody_can_heed_it(said: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        as_tool(SimpleNamespace(name="f", description="d", parameters={}, **said))


def test_a_function_is_given_its_time_its_mode_and_its_safety() -> None:
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
def test_what_every_call_would_fail_with_is_refused_at_once(function: Any) -> None:
    with pytest.raises(ConfigurationError):
        from_function(function, name="f", description="d")


@pytest.mark.parametrize("wrong", [{"name": None}, {"description": 3}, {"parameters": "none"}, {"execute": "no"}])
def test_a_foreign_object_of_another_shape_is_refused(wrong: dict[str, object]) -> None:
    fields: dict[str, object] = {"name": "f", "description": "d", "parameters": {}, **wrong}
    thing: Any = SimpleNamespace(**fields)

    with pytest.raises(ConfigurationError):
        as_tool(thing)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        ({"data": "inner"}, "inner"),
        ({"a": 1}, '{"a": 1}'),
        ([{"type": "text", "text": "block"}], "block"),
        ({"content": "text"}, "text"),
        (ToolResult.of_text("own"), "own"),
        (SimpleNamespace(content=[TextBlock(text="attr")]), "attr"),
        ({"content": "file", "title": "t"}, '{"content": "file", "title": "t"}'),
    ],
)
def test_whatever_a_tool_returns_becomes_a_result(value: object, text: str) -> None:
    assert foreign_result(value).text == text


def test_a_foreign_result_without_content_stays_without() -> None:
    assert foreign_result(SimpleNamespace(content=[], details={"a": 1})) == ToolResult(details={"a": 1})


@pytest.mark.parametrize("make", [dict, SimpleNamespace])
def test_every_field_of_a_foreign_result_is_kept(make: Callable[..., Any]) -> None:
    given = {"content": "bad", "is_error": True, "terminate": True, "child_run_id": "run_1", "details": {"a": 1}}

    assert foreign_result(make(**given)) == ToolResult.model_validate(
        {**given, "content": [{"type": "text", "text": "bad"}]}
    )


def test_details_of_a_foreign_result_that_are_no_object_are_kept() -> None:
    assert foreign_result(SimpleNamespace(content="x", details=[1])).details == {"value": [1]}


async def test_a_plain_function_works_too() -> None:
    plain: Any = lambda args, context: f"plain {args['q']}"  # noqa: E731

    assert (await run([from_function(plain, name="look", description="d")], [call("look", q=1)])).texts == ["plain 1"]
