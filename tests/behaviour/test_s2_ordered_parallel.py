"""S2: one concurrent batch with ordered events, in the preset `ordered_parallel`."""

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.execution.bench import Bench
from tests.execution.kit import Doors, Ran, ScriptedTool, Steering, call, calls, run
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import (
    ExecutionOptions,
    ToolExecutionResult,
    ToolRegistry,
    as_tool,
    execute_tool_calls,
    from_function,
    validate_tool_arguments,
)
from tui_agent.protocol.errors import InvalidArgumentsError
from tui_agent.protocol.events import ToolUpdated
from tui_agent.protocol.messages import AssistantMessage, JsonObject, TextBlock, ThinkingBlock, ToolCall, user_message
from tui_agent.protocol.tool import ToolContext, ToolResult

LITERAL = ExecutionOptions.preset("ordered_parallel")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def message_of(*asked: ToolCall) -> AssistantMessage:
    """Return an answer with text and reasoning between its calls."""
    content: list[Any] = [ThinkingBlock(thinking="hm"), TextBlock(text="Let me see.")]
    for one in asked:
        content += [one, TextBlock(text="and")]
    return AssistantMessage(content=tuple(content), stop_reason="tool_use")


async def raising(arguments: JsonObject, context: ToolContext) -> ToolResult:
    raise LookupError("no such thing")


async def updating(arguments: JsonObject, context: ToolContext) -> ToolResult:
    for number in range(arguments.get("updates", 0)):
        context.on_update(ToolResult.of_text(f"part {number}"))
        await asyncio.sleep(0)
    return ToolResult.of_text(f"done {context.call_id}")


# --- execute_tool_calls -----------------------------------------------------------------------------------------------


async def test_s2_1_one_async_function_takes_tools_message_signal_event_sink_and_steering() -> None:
    assert inspect.iscoroutinefunction(execute_tool_calls)
    assert inspect.signature(execute_tool_calls).parameters["get_steering"].default is None

    async def steering() -> list[Any]:
        return [user_message("wait", "steer")]

    no_tools = await execute_tool_calls(None, message_of(call()), bus=ValidatingBus(), get_steering=steering)
    result = await execute_tool_calls([ScriptedTool()], message_of(call()), bus=ValidatingBus(LITERAL), options=LITERAL)

    assert isinstance(result, ToolExecutionResult)
    assert no_tools.tool_results[0].text.startswith("Tool act not found")
    assert [message.text for message in no_tools.steering_messages or ()] == ["wait"]


async def test_s2_2_s2_3_s2_11_all_calls_of_the_message_run_in_its_order_and_without_calls_none() -> None:
    bus = ValidatingBus(LITERAL)
    asked = message_of(*calls("b", "a", "nothing", "a"))
    with bus.subscribe(merge=False) as subscription:
        empty = await execute_tool_calls([ScriptedTool()], message_of(), bus=bus, options=LITERAL)
        assert subscription.drain() == []
        tools = [ScriptedTool("a"), ScriptedTool("b")]
        full = await execute_tool_calls(tools, asked, bus=bus, options=LITERAL)

    assert (empty.tool_results, empty.steering_messages) == ((), None)
    assert {block.type for block in asked.content} == {"thinking", "text", "tool_call"}
    assert [message.call_id for message in full.tool_results] == ["c0", "c1", "c2", "c3"]


async def test_s2_5_all_calls_run_concurrently() -> None:
    doors = Doors()
    bench = Bench([ScriptedTool(behaviour=doors)], LITERAL)
    async with bench.scheduler as scheduler, asyncio.TaskGroup() as group:
        scheduler.submit_all(calls(*["act"] * 20))
        group.create_task(scheduler.finish())
        names = [f"c{number}" for number in range(20)]
        await doors.until(*names)
        assert bench.ended() == {}
        doors.open(*names)


@pytest.mark.parametrize(("at_poll", "texts"), [(None, None), (1, ["stop that"])])
async def test_s2_10_s2_12_s2_14_s2_23_the_outcome_has_the_steering_messages_or_none_and_no_call_is_skipped(
    at_poll: int | None, texts: Any
) -> None:
    ran = await run([ScriptedTool()], calls("act", "act", "act"), LITERAL, steering=Steering(at_poll))

    found = ran.result.steering_messages
    assert (None if found is None else [message.text for message in found]) == texts
    assert ran.statuses == ["ok"] * 3
    assert ToolExecutionResult() == ToolExecutionResult(tool_results=(), steering_messages=None)


# --- skip_tool_call ---------------------------------------------------------------------------------------------------


# --- validate_tool_arguments ------------------------------------------------------------------------------------------


async def test_s2_15_validation_is_a_public_function_that_returns_the_arguments_or_raises() -> None:
    tool = ScriptedTool(schema=SCHEMA)

    assert validate_tool_arguments(tool, call("act", n=1)) == {"n": 1}
    with pytest.raises(InvalidArgumentsError, match="n: 'x' is not of type 'integer'"):
        validate_tool_arguments(tool, call("act", n="x"))

    placeholder = await run([tool], [call("act", "c", n="x")], LITERAL)
    assert placeholder.texts == ["act {'n': 'x'}"], "this preset passes the original arguments"


# --- lookup and execution ---------------------------------------------------------------------------------------------


def test_s2_16_a_lookup_returns_the_tool_or_none_even_without_any_tools() -> None:
    tool = ScriptedTool()

    assert ToolRegistry([tool]).find("act") is tool
    assert ToolRegistry([tool]).find("Act") is None
    assert ToolRegistry(None).find("act") is None


async def test_s2_17_s2_18_s2_20_s2_21_a_failing_or_unknown_tool_is_an_error_result_and_affects_no_other() -> None:
    tools = [ScriptedTool(behaviour=updating), ScriptedTool("fail", raising)]
    asked = [call("act", "c0", updates=3), call("fail", "c1"), call("x", "c2"), call("act", "c3", updates=1)]

    ran = await run(tools, asked, LITERAL)

    assert ran.statuses == ["ok", "error", "not_found", "ok"]
    assert ran.texts == ["done c0", "no such thing", "Tool x not found", "done c3"]
    assert [message.is_error for message in ran.result.tool_results] == [False, True, True, False]
    assert len(ran.of(ToolUpdated)) == 4


@dataclass
class Hollow:
    """Foreign tool that cannot be executed."""

    name: str = "hollow"
    description: str = "hollow"
    parameters: JsonObject = field(default_factory=lambda: {"type": "object"})


async def test_s2_19_a_tool_without_an_execute_function_produces_an_error_result() -> None:
    ran = await run([Hollow()], calls("hollow"), LITERAL)

    assert ran.texts == ["Tool hollow has no execute function"]
    assert ran.result.tool_results[0].is_error


async def test_s2_22_s2_25_a_result_has_content_for_the_model_and_details_for_the_screen() -> None:
    async def detailed(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text("for the model", details={"rows": [1, 2]})

    ran = await run([ScriptedTool(behaviour=detailed)], calls("act"), LITERAL)

    (message,) = ran.result.tool_results
    assert (message.call_id, message.tool_name, message.text) == ("c0", "act", "for the model")
    assert (message.details, message.is_error) == ({"rows": [1, 2]}, False)
    assert ran.ended("c0").details == {"rows": [1, 2]}
    assert ToolResult.of_text("x").details is None


# --- types and signature ----------------------------------------------------------------------------------------------


class SearchWeb:
    """Plain tool with an `execute` of four arguments."""

    name = "search_web"
    description = "Searches the web."
    parameters: JsonObject = {"type": "object", "properties": {"query": {"type": "string"}}}  # noqa: RUF012

    async def execute(self, tool_call_id: str, args: JsonObject, signal: Any, on_update: Any) -> Any:
        on_update({"content": [{"type": "text", "text": "Searching..."}]})
        found = f"{tool_call_id} {args['query']} {signal.is_set()}"
        return {"content": [{"type": "text", "text": found}], "details": {"result_count": 1}}


async def test_s2_24_a_plain_four_argument_tool_works() -> None:
    ran: Ran = await run([SearchWeb()], [call("search_web", "c0", query="cats")], LITERAL)
    by_function = from_function(SearchWeb().execute, name="other", description="x")
    other = await run([by_function], [call("other", "c1", query="dogs")], LITERAL)

    assert ran.texts == ["c0 cats False"]
    assert ran.result.tool_results[0].details == {"result_count": 1}
    assert [event.partial.text for event in ran.of(ToolUpdated)] == ["Searching..."]
    assert other.texts == ["c1 dogs False"]
    assert as_tool(SearchWeb()).name == "search_web"
    assert validate_tool_arguments(SearchWeb(), call("search_web", query="cats")) == {"query": "cats"}
