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
    parent, child, other = ContextRegistry(), ContextRegistry(), ContextRegistry()
    child.set_parent(parent)
    heard: list[LayerChange] = []
    for registry in (parent, child):
        registry.listen(failing)
        registry.listen(heard.append)

    assert parent.set(_layer("a", "one"))
    assert parent.remove("a") is not None

    assert [(change.name, change.kind) for change in heard] == [("a", "set")] * 2 + [("a", "removed")] * 2
    assert caplog.text.count("cannot use a") == 4, "each failure once, with its traceback"

    # A report counts for all registries between it and the one that changed.
    other.set_parent(parent)
    reported: list[tuple[str, str]] = []
    child.report_failures(lambda name, crash: reported.append((name, crash.text)))
    parent.listen(failing)
    child.listen(failing)
    parent.set(_layer("b", "two"))
    assert reported == [(f"{__name__}.failing", "cannot use b")] * 2


def test_listeners_end_one_by_one_and_with_their_registry() -> None:
    first, second, child = ContextRegistry(), ContextRegistry(), ContextRegistry()
    heard: list[LayerChange] = []
    stop, _ = child.listen(heard.append), child.listen(heard.append)
    stop()
    stop()
    child.set(_layer("a", "one"))
    assert len(heard) == 1, "the second registration is another one"

    child.set_parent(first)
    child.set_parent(second)
    first.set(_layer("b", "x"))
    child.set_parent(None)
    second.set(_layer("c", "y"))
    assert len(heard) == 1
    assert child.parent is None


@pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError])
def test_an_interrupt_in_a_listener_passes_through(error: type[BaseException]) -> None:
    def interrupted(change: LayerChange) -> None:
        raise error

    registry = ContextRegistry()
    registry.listen(interrupted)

    with pytest.raises(error):
        registry.set(_layer("a", "one"))

    assert registry.flat() == "one"


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
