from typing import Any

import pytest

from tui_agent.execution import HookBus
from tui_agent.protocol.errors import ConfigurationError


def test_a_misspelt_hook_is_refused_with_the_right_name() -> None:
    with pytest.raises(ConfigurationError, match="before_tool"):
        HookBus().add("befor_tool", print)
    with pytest.raises(ConfigurationError, match="after_tool_observer"):
        HookBus().add("zzz", print)


def test_a_hook_that_is_not_callable_is_refused() -> None:
    nothing: Any = None

    with pytest.raises(ConfigurationError, match="must be a function"):
        HookBus().add("before_tool", nothing)


def test_hooks_keep_their_order_and_can_be_removed() -> None:
    hooks = HookBus(timeout=7.0)
    remove = hooks.add("before_tool", lambda question: None, name="first")
    hooks.add("before_tool", lambda question: None, name="second", timeout=1.0, fail_open=True)

    first, second = hooks.hooks("before_tool")
    assert (first.name, first.timeout, first.fail_open) == ("first", 7.0, False)
    assert (second.name, second.timeout, second.fail_open) == ("second", 1.0, True)

    remove()
    remove()
    assert [hook.name for hook in hooks.hooks("before_tool")] == ["second"]
    assert (hooks.has("before_tool"), hooks.has("after_tool")) == (True, False)


def test_a_hook_without_a_name_is_named_by_its_class() -> None:
    class Watcher:
        def __call__(self, question: object) -> None: ...

    hooks = HookBus()
    hooks.add("before_tool", Watcher())

    assert hooks.hooks("before_tool")[0].name == "Watcher"


def test_only_an_observer_can_request_the_input() -> None:
    with pytest.raises(ConfigurationError, match="needs an after_tool_observer"):
        HookBus().add("after_tool", print, with_input=True)


def test_only_a_hook_whose_failure_hides_the_result_can_hide_what_was_reported() -> None:
    for event, fail_open in (("before_tool", False), ("after_tool", True)):
        with pytest.raises(ConfigurationError, match="hides needs an after_tool hook that is not fail_open"):
            HookBus().add(event, print, hides=True, fail_open=fail_open)


def test_a_bus_takes_the_hooks_of_another_one_but_not_their_right_to_approve() -> None:
    own, other = HookBus(), HookBus(timeout=3.0)
    own.add("before_tool", print, name="mine")
    other.add("before_tool", print, name="theirs", may_approve=True, fail_open=True)
    other.add("after_tool", print, name="result", hides=True)

    own.include(other, "acme")

    assert [(hook.name, hook.may_approve) for hook in own.hooks("before_tool")] == [
        ("mine", False),
        ("acme: theirs", False),
    ]
    (result,) = own.hooks("after_tool")
    assert (result.name, result.timeout, result.hides) == ("acme: result", 3.0, True)
    assert own.events == {"before_tool", "after_tool"}
    assert [hook.name for hook in other.hooks("before_tool")] == ["theirs"], "the other bus stays as it was"
