from typing import Any

import pytest

from tests.support.table import table
from tui_agent.execution import ApprovalGate
from tui_agent.execution.hook_bus import HookBus
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.value_checks import (
    expect_kind,
    expect_members,
    shown_value,
)


@table("timeout", [0, -1, float("nan"), True, "5"])
def test_gates_and_hooks_refuse_invalid_timeouts(timeout: Any) -> None:
    with pytest.raises(ConfigurationError, match="an approval's timeout"):
        ApprovalGate(timeout=timeout)
    with pytest.raises(ConfigurationError, match="a hook's timeout"):
        HookBus(timeout=timeout)
    with pytest.raises(ConfigurationError, match="a hook's timeout"):
        HookBus().add("after_tool", print, timeout=timeout)


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
