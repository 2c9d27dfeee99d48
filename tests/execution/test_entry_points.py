import asyncio
from typing import Any, cast

import pytest

from tests.execution.kit import ScriptedTool, call
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution import (
    SkipReason,
    ToolExecutor,
    ToolScheduler,
    execute_tool_calls,
    skip_tool_call,
)
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError


async def test_two_tools_with_one_name_are_refused_before_anything_happens() -> None:
    with pytest.raises(ConfigurationError):
        await execute_tool_calls([ScriptedTool(), ScriptedTool()], [call()], bus=ValidatingBus())


async def test_two_calls_with_one_id_are_refused_before_any_event() -> None:
    bus, tool = ValidatingBus(), ScriptedTool()

    with pytest.raises(ConfigurationError, match="'c1'"):
        await execute_tool_calls([tool], [call("act", "c0"), call("act", "c1"), call("act", "c1")], bus=bus)

    assert (bus.last_seq, tool.calls) == (0, [])


async def test_a_second_call_with_one_id_while_streaming_leaves_the_first_intact() -> None:
    bus, tool = ValidatingBus(), ScriptedTool(read_only=True)

    async with ToolScheduler(ToolExecutor([tool], bus=bus)) as scheduler:
        scheduler.submit(call())
        with pytest.raises(ConfigurationError, match="'c'"):
            scheduler.submit(call())
        result = await scheduler.finish()

    assert [message.text for message in result.tool_results] == ["act {}"]


def test_an_unknown_reason_to_skip_is_refused_before_any_event() -> None:
    bus = ValidatingBus()

    with pytest.raises(ConfigurationError, match="unknown reason 'budget'; use one of steering, notice"):
        skip_tool_call(call(), bus, reason=cast(SkipReason, "budget"))

    assert bus.last_seq == 0


async def test_a_value_that_is_not_a_cancellation_token_is_refused_before_any_event() -> None:
    bus = ValidatingBus()

    with pytest.raises(ConfigurationError, match="cancellation must be a CancellationToken"):
        await execute_tool_calls(
            [ScriptedTool()], [call()], bus=bus, cancellation=cast(CancellationToken, asyncio.Event())
        )

    assert bus.last_seq == 0


def test_a_scheduler_used_without_entering_it_raises_before_any_event() -> None:
    bus = ValidatingBus()
    scheduler = ToolScheduler(ToolExecutor([ScriptedTool()], bus=bus))

    with pytest.raises(RuntimeError, match="async with ToolScheduler"):
        scheduler.submit_all([call()])

    assert bus.last_seq == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tools": "x"}, "tools must be a list of tools and functions, got 'x'"),
        ({"tools": [3]}, r"a tool must be a Tool, .* got 3"),
        ({"calls": "x"}, "calls must be a list of ToolCall, or the AssistantMessage with them, got 'x'"),
        ({"calls": [{"name": "act"}]}, r"calls\[0\] must be a ToolCall, got {'name': 'act'}"),
        ({"bus": None}, "bus must be an EventBus, or something else with `publish`, got None"),
        ({"options": "parallel"}, "options must be ExecutionOptions or None, got 'parallel'"),
        ({"hooks": []}, r"hooks must be a HookBus or None, got \[\]"),
        ({"gate": print}, "gate must be an ApprovalGate or None, got a builtin_function_or_method"),
        ({"policy": "ask"}, "policy must be a permission policy or None, got 'ask'"),
        ({"get_steering": ["x"]}, r"get_steering must be a function \(plain or async\) or None, got \['x'\]"),
        ({"before_effects": 3}, "before_effects must be a function or None, got 3"),
        ({"cancellation": "x"}, "cancellation must be a CancellationToken or None"),
    ],
)
async def test_an_argument_of_the_wrong_type_is_refused(arguments: dict[str, Any], words: str) -> None:
    right: dict[str, Any] = {"tools": [], "calls": [], "bus": ValidatingBus()}
    with pytest.raises(ConfigurationError, match=words):
        await execute_tool_calls(**{**right, **arguments})
