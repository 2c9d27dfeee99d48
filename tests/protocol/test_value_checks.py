from typing import Any

import pytest

from tests.support.table import table
from tui_agent.execution import ApprovalGate
from tui_agent.execution.hook_bus import HookBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import (
    expect_choice,
    expect_flag,
    expect_items,
    expect_kind,
    expect_members,
    expect_number,
    expect_seconds,
    expect_whole,
    is_duration,
    shown_value,
)


@table("value", [0, -1, True, False, "1", None, float("nan"), float("inf"), [1]])
def test_invalid_durations_are_refused(value: Any) -> None:
    assert not is_duration(value)
    with pytest.raises(ConfigurationError, match="wait must be more than 0 seconds, got"):
        expect_seconds("wait", value)


@table("value", [1, 0.001, 1e9])
def test_a_duration_is_a_finite_number_above_zero(value: float) -> None:
    assert is_duration(value)
    expect_seconds("wait", value)
    expect_seconds("wait", value, or_zero=True)


def test_zero_is_allowed_if_requested() -> None:
    expect_seconds("wait", 0, or_zero=True)
    expect_seconds("wait", 0.0, or_zero=True)
    for value in (False, -1, "0", None):
        with pytest.raises(ConfigurationError, match="wait must be 0 seconds or more"):
            expect_seconds("wait", value, or_zero=True)


@table("value", [2, 0, True, 2.5, 3.0, "3", None])
def test_invalid_whole_numbers_are_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"size must be a whole number of at least 3, got"):
        expect_whole("size", value, 3)


def test_valid_numbers_flags_and_choices_pass() -> None:
    expect_whole("size", 3, 3)
    expect_flag("on", True)
    expect_flag("on", False)
    expect_choice("colour", None, ("red", None))


@table("value", ["no", 0, 1, None])
def test_invalid_flags_are_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="on must be True or False, got"):
        expect_flag("on", value)


def test_a_misspelt_choice_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown colour 'rde'; did you mean red\?"):
        expect_choice("colour", "rde", ("red", "blue"))
    with pytest.raises(ConfigurationError, match=r"did you mean reds\?"):
        expect_choice("colour", "redss", ("red", "reds"))
    with pytest.raises(ConfigurationError, match=r"did you mean red or blue\?"):
        expect_choice("colour", 7, ("red", "blue"))


@table("timeout", [0, -1, float("nan"), True, "5"])
def test_gates_and_hooks_refuse_invalid_timeouts(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="an approval's timeout"):
        ApprovalGate(timeout=timeout)
    with pytest.raises(ConfigurationError, match="a hook's timeout"):
        HookBus(timeout=timeout)


@table(
    ("arguments", "words"),
    [
        ({"approver": 42}, r"ApprovalGate.approver must be a function \(plain or async\) or None, got 42"),
        ({"interactive": "no"}, "ApprovalGate.interactive must be True or False, got 'no'"),
        ({"timeout": "x"}, "an approval's timeout must be more than 0 seconds, got 'x'"),
    ],
)
def test_a_gate_refuses_arguments_of_the_wrong_kind(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ApprovalGate(**arguments)


@table("value", ["1", True, float("nan"), float("inf"), -1, None, [1]])
def test_invalid_numbers_are_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="size must be a number of at least 0, got"):
        expect_number("size", value)


def test_numbers_from_the_minimum_on_pass() -> None:
    for value in (0, 0.5, 10**400):
        expect_number("size", value)
    expect_number("size", None, optional=True)
    with pytest.raises(ConfigurationError, match="size must be more than 0 or None, got 0"):
        expect_number("size", 0, more_than=True, optional=True)


class Unprintable(list[int]):
    def __repr__(self) -> str:
        raise ValueError("no words")


@table(
    ("value", "shown"),
    [
        ("x", "'x'"),
        ("x" * 100, f"'{'x' * 59}…"),
        (None, "None"),
        (object(), "an object"),
        (expect_kind, "a function"),
        (dict, "the class dict, not an instance"),
        (Unprintable(), "an Unprintable"),
    ],
)
def test_a_wrong_value_is_shown_short_and_without_addresses(value: Any, shown: str) -> None:
    assert shown_value(value) == shown
    with pytest.raises(ConfigurationError) as caught:
        expect_kind("size", value, int, "a number")
    assert str(caught.value) == f"size must be a number, got {shown}"


class Half:
    def here(self) -> None: ...

    @property
    def costly(self) -> int:
        raise AssertionError("nobody asks for it")


def test_a_missing_member_is_named_and_a_property_is_not_evaluated() -> None:
    expect_members("part", Half(), ("here", "costly"), "a part")
    with pytest.raises(ConfigurationError, match=r"^part must be a part, got a Half, which has no there and no more$"):
        expect_members("part", Half(), ("here", "there", "more"), "a part")
    with pytest.raises(ConfigurationError, match=r"^part must be a part, got 'x'$"):
        expect_members("part", "x", ("here", "there"), "a part")
    with pytest.raises(ConfigurationError, match="got the class Half, not an instance"):
        expect_members("part", Half, ("here",), "a part")


@table("values", ["ab", b"ab", {"a": 1}, 3, None])
def test_invalid_lists_of_items_are_refused(values: Any) -> None:
    with pytest.raises(ConfigurationError, match="parts must be a list of parts, got"):
        expect_items("parts", values, None, "a list of parts")


def test_items_are_checked_under_their_own_names_and_kept() -> None:
    assert expect_items("parts", iter("ab"), None, "parts") == ("a", "b")
    with pytest.raises(ConfigurationError, match=r"^parts\[1\] must be text, got 2$"):
        expect_items("parts", ["a", 2], lambda name, item: expect_kind(name, item, str, "text"), "parts")
