from typing import Any

import pytest

from tui_agent.execution.options import (
    Auto,
    Batched,
    Parallel,
    Sequential,
    Strategy,
    parse_strategy,
    strategy_name,
)
from tui_agent.execution.scheduling.call_batch import WaveNumbering
from tui_agent.protocol.errors import ConfigurationError


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "2", None])
def test_batched_refuses_a_size_that_is_not_a_positive_integer(size: Any) -> None:
    with pytest.raises(ConfigurationError, match="at least 1"):
        Batched(size)


@pytest.mark.parametrize(
    ("text", "strategy"),
    [("auto", Auto()), ("sequential", Sequential()), ("parallel", Parallel()), ("batched:3", Batched(3))],
)
def test_a_strategy_can_be_parsed_from_its_text(text: str, strategy: Strategy) -> None:
    assert parse_strategy(text) == strategy
    assert strategy_name(strategy) == text


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
