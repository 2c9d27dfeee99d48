"""A function becomes a tool: schema from its signature, words from its docstring."""

from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from tui_agent.protocol import TextBlock, ToolContext, ToolResult, function_tool
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.tool_result import as_tool_result


@function_tool(read_only=True)
async def search_web(query: str, context: ToolContext, limit: int = 3) -> str:
    """Searches the web."""
    context.progress("searching")
    return f"{query} x{limit}"


async def test_the_schema_comes_from_the_signature_without_the_context() -> None:
    assert search_web.spec.name == "search_web"
    assert search_web.spec.description == "Searches the web."
    assert search_web.spec.input_schema == {
        "type": "object",
        "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 3}},
        "required": ["query"],
        "additionalProperties": False,
    }
    assert search_web.is_read_only({})
    assert search_web.is_concurrency_safe({})


async def test_it_runs_with_defaults_and_tells_progress() -> None:
    told: list[object] = []
    context = ToolContext(call_id="1", tool_name="search_web", report=told.append)

    result = await search_web.execute({"query": "a"}, context)

    assert result.text == "a x3"
    assert len(told) == 1


async def test_unknown_arguments_are_refused() -> None:
    with pytest.raises(ValidationError):
        await search_web.execute({"query": "a", "extra": 1}, ToolContext(call_id="1", tool_name="search_web"))


def test_a_tool_needs_words_and_types() -> None:
    async def wordless(query: str) -> str:
        return query

    async def untyped(query) -> str:
        """Does something."""
        return query

    with pytest.raises(ConfigurationError, match="docstring"):
        function_tool()(wordless)
    with pytest.raises(ConfigurationError, match="annotation"):
        function_tool()(untyped)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (ToolResult.of_text("x"), "x"),
        (TextBlock(text="x"), "x"),
        ([TextBlock(text="a"), TextBlock(text="b")], "a\nb"),
        ([{"type": "text", "text": "a"}], "a"),
        ({"data": "inner"}, "inner"),
        ({"n": 1}, '{"n": 1}'),
        ([1, 2], "[1, 2]"),
        ({"type": "text", "text": "x"}, "x"),
        ({"type": "text", "number": 1}, '{"type": "text", "number": 1}'),
        ((TextBlock(text="a"), TextBlock(text="b")), "a\nb"),
        ({"content": "x", "is_error": True}, "x"),
        ({"content": "x", "pages": 2}, '{"content": "x", "pages": 2}'),
        ([], "[]"),
    ],
)
def test_whatever_a_tool_returns_becomes_a_result(value: object, text: str) -> None:
    assert as_tool_result(value).text == text


@pytest.mark.parametrize("content", [[], (), None])
def test_a_result_without_content_stays_without(content: object) -> None:
    assert as_tool_result({"content": content}) == ToolResult()
    assert as_tool_result({"content": content, "details": {"a": 1}}) == ToolResult(details={"a": 1})
    assert as_tool_result(ToolResult.model_construct(content=content)) == ToolResult()


def test_details_that_are_no_object_become_the_value_of_one() -> None:
    assert as_tool_result({"content": "x", "details": [1, 2]}) == ToolResult.of_text("x", details={"value": [1, 2]})


async def test_what_is_annotated_beside_a_type_counts() -> None:
    @function_tool()
    async def page(number: Annotated[int, Field(ge=1, description="from 1")], of: ToolContext) -> str:
        """Shows a page."""
        return f"{of.call_id} {number}"

    assert page.spec.input_schema["properties"] == {
        "number": {"type": "integer", "minimum": 1, "description": "from 1"}
    }
    with pytest.raises(ValidationError):
        await page.execute({"number": 0}, ToolContext(call_id="1", tool_name="page"))
    assert (await page.execute({"number": 2}, ToolContext(call_id="1", tool_name="page"))).text == "1 2"


def test_a_function_that_would_block_everybody_is_refused() -> None:
    def plain(query: str) -> str:
        """Does something."""
        return query

    blocking: Any = plain
    with pytest.raises(ConfigurationError, match="async"):
        function_tool()(blocking)


async def positional(query: str, /) -> str:
    """Takes its argument by place."""
    return query


async def any_number(*queries: str) -> str:
    """Takes any number."""
    return str(queries)


async def any_name(**queries: str) -> str:
    """Takes any name."""
    return str(queries)


async def hidden(_query: str) -> str:
    """Hides its parameter."""
    return _query


@pytest.mark.parametrize("function", [positional, any_number, any_name, hidden])
def test_parameters_that_no_model_can_give_by_name_are_refused(function: Any) -> None:
    with pytest.raises(ConfigurationError):
        function_tool()(function)
