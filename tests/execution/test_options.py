from typing import Any

import pytest

from tui_agent.execution.options import ExecutionOptions
from tui_agent.execution.strategy import Auto, Batched, Parallel, Sequential, Strategy
from tui_agent.protocol.errors import ConfigurationError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_concurrency", 0),
        ("tool_timeout", 0),
        ("tool_timeout", -1.0),
        ("tool_timeout", float("nan")),
        ("tool_timeout", float("inf")),
        ("grace", -0.1),
        ("interrupt_interval", 0),
        ("result_limit", 10),
    ],
)
def test_a_number_out_of_range_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=field):
        ExecutionOptions(**{field: value})


@pytest.mark.parametrize("field", ["max_concurrency", "tool_timeout", "result_limit"])
def test_none_means_without_limit(field: str) -> None:
    assert getattr(ExecutionOptions(**{field: None}), field) is None


@pytest.mark.parametrize(
    ("strategy", "mode"),
    [
        (Sequential(), "between_calls"),
        (Batched(2), "between_batches"),
        (Parallel(), "after_batch"),
        (Auto(), "before_effects"),
    ],
)
def test_a_strategy_implies_where_steering_is_looked_for(strategy: Strategy, mode: str) -> None:
    assert ExecutionOptions(strategy=strategy).steering == mode
    assert ExecutionOptions(strategy=strategy, steering_mode="off").steering == "off"


@pytest.mark.parametrize("name", ["rust_loop", "permissioned", "ordered_parallel", "streaming", "sdk_loop"])
def test_every_seed_has_a_preset(name: str) -> None:
    assert isinstance(ExecutionOptions.preset(name), ExecutionOptions)


def test_a_preset_can_be_changed() -> None:
    options = ExecutionOptions.preset("rust_loop", strategy=Sequential())

    assert options.strategy == Sequential()
    assert options.message_events == "completion"


def test_a_misspelt_preset_names_the_right_one() -> None:
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
        ("stream_tools", "on", "safe_only or off"),
        ("end_events", "source-order", "source_order"),
        ("pre_hook_position", None, "before_lookup"),
        ("terminate_policy", "some", "all or any"),
    ],
)
def test_a_word_that_chooses_nothing_is_refused_with_the_right_one(field: str, value: Any, right: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no {field} .*{right}"):
        ExecutionOptions(**{field: value})


@pytest.mark.parametrize("value", ["parallel", None, Batched])
def test_what_is_no_strategy_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="strategy"):
        ExecutionOptions(strategy=value)


def test_one_name_is_no_set_of_names() -> None:
    names: Any = "bash"

    with pytest.raises(ConfigurationError, match="sibling_abort"):
        ExecutionOptions(sibling_abort=names)
