from typing import Any

import pytest

from tui_agent.execution import ApprovalGate
from tui_agent.execution.hook_bus import HookBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import expect_choice, expect_flag, expect_seconds, expect_whole, is_duration


@pytest.mark.parametrize("value", [0, -1, True, False, "1", None, float("nan"), float("inf"), [1]])
def test_no_duration(value: Any) -> None:
    assert not is_duration(value)
    with pytest.raises(ConfigurationError, match="wait must be more than 0 seconds, got"):
        expect_seconds("wait", value)


@pytest.mark.parametrize("value", [1, 0.001, 1e9])
def test_a_duration_is_a_finite_number_above_zero(value: float) -> None:
    assert is_duration(value)
    expect_seconds("wait", value)
    expect_seconds("wait", value, or_zero=True)


def test_zero_is_allowed_where_that_is_said() -> None:
    expect_seconds("wait", 0, or_zero=True)
    expect_seconds("wait", 0.0, or_zero=True)
    for value in (False, -1, "0", None):
        with pytest.raises(ConfigurationError, match="wait must be 0 seconds or more"):
            expect_seconds("wait", value, or_zero=True)


@pytest.mark.parametrize("value", [2, 0, True, 2.5, 3.0, "3", None])
def test_no_whole_number_of_at_least_three(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"size must be a whole number of at least 3, got"):
        expect_whole("size", value, 3)


def test_whole_numbers_flags_and_words_pass() -> None:
    expect_whole("size", 3, 3)
    expect_flag("on", True)
    expect_flag("on", False)
    expect_choice("colour", None, ("red", None))


@pytest.mark.parametrize("value", ["no", 0, 1, None])
def test_no_flag(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="on must be True or False, got"):
        expect_flag("on", value)


def test_a_misspelt_word_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"no colour 'rde'; did you mean red\?"):
        expect_choice("colour", "rde", ("red", "blue"))
    with pytest.raises(ConfigurationError, match=r"did you mean reds\?"):
        expect_choice("colour", "redss", ("red", "reds"))
    with pytest.raises(ConfigurationError, match=r"did you mean red or blue\?"):
        expect_choice("colour", 7, ("red", "blue"))


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_gates_and_hooks_take_no_time_that_is_none(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="an approval's timeout"):
        ApprovalGate(timeout=timeout)
    with pytest.raises(ConfigurationError, match="a hook's timeout"):
        HookBus(timeout=timeout)
