from typing import Any

import pytest

from tui_agent.execution.options import Auto, Batched, ExecutionOptions, Parallel, Sequential, Strategy
from tui_agent.protocol.errors import ConfigurationError


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
    ("strategy", "mode"),
    [
        (Sequential(), "between_calls"),
        (Batched(2), "between_batches"),
        (Parallel(), "after_batch"),
        (Auto(), "before_effects"),
    ],
)
def test_a_strategy_implies_its_steering_boundaries(strategy: Strategy, mode: str) -> None:
    assert ExecutionOptions(strategy=strategy).steering == mode
    assert ExecutionOptions(strategy=strategy, steering_mode="off").steering == "off"


def test_a_preset_can_be_modified() -> None:
    options = ExecutionOptions.preset("rust_loop", strategy=Sequential())

    assert options.strategy == Sequential()
    assert options.message_events == "completion"


def test_a_misspelt_preset_suggests_the_right_one() -> None:
    with pytest.raises(ConfigurationError, match="rust_loop"):
        ExecutionOptions.preset("rustloop")
    with pytest.raises(ConfigurationError, match="sdk_loop"):
        ExecutionOptions.preset("zzz")


def test_an_unknown_option_of_a_preset_is_named() -> None:
    with pytest.raises(ConfigurationError, match="speed"):
        ExecutionOptions.preset("rust_loop", speed=3)


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


def test_a_modified_preset_is_checked_too() -> None:
    with pytest.raises(ConfigurationError, match="hook_may_approve needs another pre_hook_position"):
        ExecutionOptions.preset("streaming", hook_may_approve=True)
    with pytest.raises(ConfigurationError, match="end_events=completion"):
        ExecutionOptions.preset("rust_loop", end_events="source_order")


DEFAULTS: dict[str, Any] = {
    "strategy": Auto(),
    "grouping": "conflicts",
    "stream_tools": "safe_only",
    "steering_mode": None,
    "interrupt_interval": 0.1,
    "max_concurrency": 10,
    "admit_first": False,
    "start_events": "as_started",
    "end_events": "completion",
    "message_events": "ordered",
    "tool_timeout": 30.0,
    "grace": 2.0,
    "validate_arguments": True,
    "malformed_args": "error",
    "unknown_tool": "explain",
    "start_unknown": False,
    "balanced_start": False,
    "error_traceback": "details",
    "skip_is_error": True,
    "pre_hook_position": "before_permission",
    "hook_may_approve": False,
    "on_reject": "continue",
    "terminate_policy": "all",
    "sibling_abort": False,
    "result_limit": 100_000,
    "archive_dir": None,
}
"""The default of every option, as documented."""


def test_the_defaults_are_the_documented_ones() -> None:
    assert {name: getattr(ExecutionOptions(), name) for name in ExecutionOptions.__dataclass_fields__} == DEFAULTS
