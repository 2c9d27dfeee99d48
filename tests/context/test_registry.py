"""Layers of the system prompt: order, parents, changes, copies (S4-27 … S4-32)."""

import asyncio
import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.context import (
    ContextLayer,
    ContextRegistry,
    ConversationHistory,
    LayerChange,
)
from tui_agent.protocol.errors import ConfigurationError


def _layer(name: str, content: str, priority: int = 50, *, merge: bool = False, tag: str = "system") -> ContextLayer:
    return ContextLayer(name=name, content=content, priority=priority, merge_parent=merge, tags=(tag,))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2)), max_size=9))
def test_priority_is_never_out_of_order(writes: list[tuple[str, int]]) -> None:
    registry = ContextRegistry()
    for name, priority in writes:
        registry.set(_layer(name, f"{priority}", priority))

    text = registry.flat(separator="")

    assert text == "".join(sorted(text))
    assert len(text) == len({name for name, _ in writes})


def failing(change: LayerChange) -> None:
    raise ValueError(f"cannot use {change.name}")


def test_a_listener_that_raises_stops_neither_the_change_nor_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parent, child = ContextRegistry(), ContextRegistry()
    child.set_parent(parent)
    heard: list[LayerChange] = []
    parent.listen(failing)
    parent.listen(heard.append)
    child.listen(failing)
    child.listen(heard.append)

    assert parent.set(_layer("a", "one"))
    assert parent.remove("a") is not None

    assert [(change.name, change.kind) for change in heard] == [("a", "set")] * 2 + [("a", "removed")] * 2
    assert caplog.text.count("cannot use a") == 4, "each failure once, with its traceback"


def test_a_failure_is_reported_to_the_nearest_registry_that_has_a_report() -> None:
    shared, child, other = ContextRegistry(), ContextRegistry(), ContextRegistry()
    child.set_parent(shared)
    other.set_parent(shared)
    reported: list[tuple[str, str]] = []
    child.report_failures(lambda name, crash: reported.append((name, crash.text)))
    shared.listen(failing)
    child.listen(failing)

    shared.set(_layer("a", "one"))

    assert reported == [(f"{__name__}.failing", "cannot use a")] * 2


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupt_in_a_listener_passes_through(error: type[BaseException]) -> None:
    def interrupted(change: LayerChange) -> None:
        raise error

    registry = ContextRegistry()
    registry.listen(interrupted)

    with pytest.raises(error):
        registry.set(_layer("a", "one"))

    assert registry.flat() == "one"


def test_a_listener_that_is_registered_twice_is_called_until_each_is_stopped() -> None:
    registry = ContextRegistry()
    heard: list[LayerChange] = []
    stop, _ = registry.listen(heard.append), registry.listen(heard.append)

    stop()
    stop()
    registry.set(_layer("a", "one"))

    assert len(heard) == 1


def test_a_detached_child_gets_no_more_changes() -> None:
    first, second, child = ContextRegistry(), ContextRegistry(), ContextRegistry()
    heard: list[LayerChange] = []
    child.listen(heard.append)
    child.set_parent(first)
    child.set_parent(second)

    first.set(_layer("a", "x"))
    child.set_parent(None)
    second.set(_layer("b", "y"))

    assert heard == []
    assert child.parent is None


@pytest.mark.slow
def test_a_parent_keeps_no_child_alive() -> None:
    parent = ContextRegistry()
    ContextRegistry().set_parent(parent)
    gc.collect()

    assert parent.set(_layer("a", "x"))


def test_a_copy_keeps_the_order_of_its_layers_among_those_of_its_parent() -> None:
    parent, registry = ContextRegistry(), ContextRegistry()
    registry.set_parent(parent)
    for place, holder in enumerate((registry, parent, registry, parent)):
        holder.set(_layer(f"layer{place}", f"{place}"))

    assert registry.copy().flat(separator="") == registry.flat(separator="") == "0123"


def test_values_other_than_layers_and_messages_are_refused() -> None:
    wrong: Any = "who you are"

    with pytest.raises(ConfigurationError, match=r"ContextRegistry.layers must be a list of ContextLayer, got 'who"):
        ContextRegistry(wrong)
    with pytest.raises(ConfigurationError, match="a layer of a ContextRegistry must be a ContextLayer, got 'who"):
        ContextRegistry().set(wrong)
    with pytest.raises(ConfigurationError, match=r"ConversationHistory.messages must be a list of messages, got 'who"):
        ConversationHistory(wrong)
    with pytest.raises(ConfigurationError, match=r"ConversationHistory.messages\[0\] must be a message, such as"):
        ConversationHistory([wrong])
