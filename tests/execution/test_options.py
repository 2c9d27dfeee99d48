from typing import Any

import pytest

from tests.execution.kit import FakePolicy, ScriptedTool, calls, run
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.execution.options import (
    Batched,
    Parallel,
    Sequential,
    parse_strategy,
)
from tui_agent.execution.scheduling.call_batch import WaveNumbering
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.hooks import OverrideResult
from tui_agent.protocol.tool import ToolResult


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_concurrency", 0),
        ("max_concurrency", 2.5),
        ("max_concurrency", True),
        ("tool_timeout", 0),
        ("tool_timeout", -1.0),
        ("tool_timeout", float("nan")),
        ("tool_timeout", float("inf")),
        ("tool_timeout", "30"),
        ("grace", -0.1),
        ("grace", False),
        ("grace", None),
        ("interrupt_interval", 0),
        ("interrupt_interval", "1"),
        ("result_limit", 10),
        ("result_limit", 399),
        ("result_limit", 1000.0),
        ("validate_arguments", "no"),
        ("admit_first", 1),
        ("start_unknown", 1),
        ("balanced_start", None),
        ("skip_is_error", 0),
        ("hook_may_approve", "yes"),
        ("sibling_abort", frozenset({"bash"})),
        ("archive_dir", "/tmp/archive"),
    ],
)
def test_a_value_out_of_range_or_of_the_wrong_type_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field):
        ExecutionOptions(**{field: value})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rustloop", {}, "rust_loop"),
        ("zzz", {}, "sdk_loop"),
        ("rust_loop", {"speed": 3}, "speed"),
        ("streaming", {"hook_may_approve": True}, "hook_may_approve needs another pre_hook_position"),
        ("rust_loop", {"end_events": "source_order"}, "end_events=completion"),
    ],
)
def test_a_preset_is_checked_with_its_name_and_changes(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ExecutionOptions.preset(name, **options)


@pytest.mark.parametrize(
    ("field", "value", "right"),
    [
        ("grouping", "conflict", "conflicts"),
        ("steering_mode", "after_bach", "after_batch"),
        ("stream_tools", "on", "allowed or safe_only or off"),
        ("end_events", "source-order", "source_order"),
        ("pre_hook_position", None, "before_lookup"),
        ("terminate_policy", "some", "all or any"),
    ],
)
def test_an_unknown_choice_is_refused_with_a_suggestion(field: str, value: Any, right: str) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown {field} .*{right}"):
        ExecutionOptions(**{field: value})


@pytest.mark.parametrize("value", ["parallel", None, Batched])
def test_a_value_that_is_not_a_strategy_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="strategy"):
        ExecutionOptions(strategy=value)


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"hook_may_approve": True, "pre_hook_position": "after_permission"}, "too late to approve"),
        ({"message_events": "completion", "end_events": "source_order"}, "ends wait for all"),
    ],
)
def test_an_option_without_effect_is_refused(chosen: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        ExecutionOptions(**chosen)
    for name, value in chosen.items():
        ExecutionOptions(**{name: value})


@pytest.mark.parametrize("text", ["", "serial", "batched", "batched:", "batched:x", "auto:2", "batched:-1"])
def test_a_misspelt_strategy_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="batched:N"):
        parse_strategy(text)


@pytest.mark.parametrize(
    ("strategy", "alone", "waves"),
    [
        (Sequential(), "....", [0, 1, 2, 3]),
        (Parallel(), "....", [0, 0, 0, 0]),
        (Batched(2), ".....", [0, 0, 1, 1, 2]),
        (Parallel(), "..x..", [0, 0, 1, 2, 2]),
        (Batched(2), ".x..x", [0, 1, 2, 2, 3]),
        (Parallel(), "x", [0]),
    ],
)
def test_waves_are_consecutive_and_a_single_call_has_its_own(
    strategy: Sequential | Parallel | Batched, alone: str, waves: list[int]
) -> None:
    cutter = WaveNumbering(strategy)

    assert [cutter.place(alone=mark == "x") for mark in alone] == waves


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
async def test_floor_results_digest_and_the_missing_approver_work_in_every_preset(name: str) -> None:
    hooks = HookBus()
    hooks.before_tool(
        lambda question: OverrideResult(ToolResult.of_text("known")) if question.call.id == "c0" else None
    )
    policy = FakePolicy({"ask": "ask"}, floor_denies={"act"})
    tools = [ScriptedTool(), ScriptedTool("ask")]

    ran = await run(
        tools,
        calls("act", "ask", "nothing"),
        ExecutionOptions.preset(name),
        hooks=hooks,
        policy=policy,
        gate=ApprovalGate(),
    )

    assert ran.statuses == ["denied_policy", "denied_policy", "not_found"]
    assert "no approver" in ran.texts[1]
