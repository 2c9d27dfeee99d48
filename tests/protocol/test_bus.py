"""The bus: one order for all subscribers and callbacks, no waiting, no lifecycle event lost, merged or delayed."""

import asyncio
import functools
from contextlib import aclosing
from itertools import pairwise
from typing import Any, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.table import table
from tui_agent.protocol.bus import RING_SIZE, EventBus, EventScope, merge_neighbours
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import (
    AgentEvent,
    ContextUsage,
    MessageDelta,
    Noticed,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolStarted,
    ToolUpdated,
    Warned,
)
from tui_agent.protocol.tool import ToolResult


def delta(text: str, message: str = "m") -> MessageDelta:
    return MessageDelta(message_id=message, kind="text", delta=text)


def notice(text: str = "x") -> Noticed:
    return Noticed(code="c", text=text)


def output(text: str = "x", call: str = "1") -> ToolOutput:
    return ToolOutput(call_id=call, stream="stdout", chunk=text, bytes_total=len(text))


def events_of(envelopes: list[Envelope]) -> list[AgentEvent]:
    return [envelope.event for envelope in envelopes]


async def test_few_past_events_stay_in_memory() -> None:
    bus = EventBus()
    for number in range(1_000):
        bus.publish(notice(str(number)))

    with bus.subscribe(since=998) as latest:
        assert events_of(latest.drain()) == [notice("998"), notice("999")]
    with bus.subscribe(since=0) as late:
        assert events_of(late.drain()) == [notice(str(number)) for number in range(1_000 - RING_SIZE, 1_000)]


async def test_the_last_of_merged_updates_progress_and_usage_is_kept() -> None:
    updates = [ToolUpdated(call_id="1", partial=ToolResult.of_text(str(n)), n=n) for n in (1, 2)]
    progress = [ToolProgress(call_id="1", text=text) for text in ("half", "done")]
    usage = [ContextUsage(tokens=n, window=10, source="actual") for n in (1, 2)]
    bus = EventBus()
    with bus.subscribe() as subscription:
        for event in (*updates, *progress, *usage):
            bus.publish(event)

        assert events_of(subscription.drain()) == [updates[1], progress[1], usage[1]]


told = st.one_of(
    st.builds(delta, st.text(max_size=3), st.sampled_from("mn")),
    st.builds(output, st.text(max_size=3), st.sampled_from("12")),
    st.builds(notice, st.text(max_size=3)),
)


@given(st.lists(told, max_size=40))
def test_merging_keeps_text_order_and_lifecycle(events: list[AgentEvent]) -> None:
    bus = EventBus()
    subscription = bus.subscribe(merge=False)
    for event in events:
        bus.publish(event)
    merged = merge_neighbours(subscription.drain())

    assert [e for e in events_of(merged) if isinstance(e, Noticed)] == [e for e in events if isinstance(e, Noticed)]
    assert all(left.seq < right.seq for left, right in pairwise(merged))
    for message in "mn":
        before = "".join(e.delta for e in events if isinstance(e, MessageDelta) and e.message_id == message)
        after = "".join(
            e.event.delta for e in merged if isinstance(e.event, MessageDelta) and e.event.message_id == message
        )
        assert before == after
    for call in "12":
        before = "".join(e.chunk for e in events if isinstance(e, ToolOutput) and e.call_id == call)
        after = "".join(e.event.chunk for e in merged if isinstance(e.event, ToolOutput) and e.event.call_id == call)
        assert before == after


AN_HOUR = 3600.0


async def test_deltas_are_held_for_the_pace_or_until_a_lifecycle_event_or_the_close() -> None:
    bus = EventBus()
    with bus.subscribe() as subscription:
        async with aclosing(subscription.batches(pace=AN_HOUR)) as batches:
            bus.publish(delta("a"))
            await anext(batches)
            for text in "bcd":
                bus.publish(delta(text))
            async with asyncio.TaskGroup() as group:
                following = group.create_task(anext(batches))
                await asyncio.sleep(0)
                assert not following.done()
                bus.publish(notice())
            assert events_of(following.result()) == [delta("bcd"), notice()]

            bus.publish(delta("e"))
            subscription.close()
            bus.publish(delta("after"))
            assert events_of(await anext(batches)) == [delta("e")]
            assert await anext(batches, None) is None
    with bus.subscribe() as subscription:
        async with aclosing(subscription.batches(pace=0.001)) as batches:
            for text in "fg":
                bus.publish(delta(text))
                assert events_of(await anext(batches)) == [delta(text)]


def started(**args: Any) -> ToolStarted:
    return ToolStarted(call_id="1", name="act", args=args, read_only=True)


async def test_callbacks_get_their_kinds_in_the_order_they_were_added() -> None:
    bus, heard = EventBus(), list[tuple[str, str]]()
    bus.on(Noticed, lambda event: heard.append(("first", event.text)))
    bus.on(Noticed, lambda event: heard.append(("second", event.text)))

    bus.publish(notice("a"))
    bus.publish(output())
    EventScope(bus, Origin(agent_id="helper")).publish(notice("b"))

    assert heard == [("first", "a"), ("second", "a"), ("first", "b"), ("second", "b")]
    bus.close()
    bus.publish(notice("c"))
    assert len(heard) == 4, "a closed bus calls no callback"


@table(
    "kinds",
    [
        (Noticed, ToolOutput),
        [Noticed, "tool.output"],
        Noticed | ToolOutput,
        Union[Noticed, ToolOutput],  # noqa: UP007 — this spelling, too
        AgentEvent,
        (AgentEvent, Noticed),
    ],
)
async def test_kinds_are_classes_names_tuples_unions_and_all(kinds: Any) -> None:
    bus, heard = EventBus(), list[str]()
    bus.on(kinds, lambda event: heard.append(event.type))

    bus.publish(notice())
    bus.publish(output())
    bus.publish(started())

    assert heard[:2] == ["notice", "tool.output"]
    assert heard[2:] == (["tool.started"] if "AgentEvent" in str(kinds) or len(heard) == 3 else [])


async def test_stopping_takes_effect_at_once_even_within_a_call() -> None:
    bus, heard = EventBus(), list[str]()

    def first(event: Noticed) -> None:
        heard.append(f"first {event.text}")
        stop_first()
        stop_second()

    stop_first = bus.on(Noticed, first)
    stop_second = bus.on(Noticed, lambda event: heard.append(f"second {event.text}"))
    bus.on(Noticed, lambda event: heard.append(f"third {event.text}"))

    bus.publish(notice("a"))
    bus.publish(notice("b"))
    stop_first()

    assert heard == ["first a", "third a", "third b"]


async def test_events_published_by_a_callback_follow_the_current_one() -> None:
    bus, heard = EventBus(), list[str]()

    def answer(event: Noticed) -> None:
        heard.append(f"first {event.text}")
        if event.text == "a":
            bus.publish(notice("b"))
            bus.on(Noticed, lambda late: heard.append(f"late {late.text}"))
            bus.publish(notice("c"))

    bus.on(Noticed, answer)
    bus.on(Noticed, lambda event: heard.append(f"second {event.text}"))
    with bus.subscribe() as subscription:
        bus.publish(notice("a"))
        seen = [envelope.event for envelope in subscription.drain()]

    assert heard == ["first a", "second a", "first b", "second b", "first c", "second c", "late c"]
    assert [event.text for event in seen if isinstance(event, Noticed)] == ["a", "b", "c"]


async def test_a_callback_that_raises_is_reported_once_and_affects_no_other() -> None:
    bus, heard = EventBus(), list[str]()

    @bus.on(AgentEvent)
    def break_down(event: AgentEvent) -> None:
        raise ValueError("broken listener")

    bus.on(Noticed, lambda event: heard.append(event.text))
    with bus.subscribe() as subscription:
        bus.publish(notice("a"), Origin(agent_id="helper"))
        bus.publish(notice("b"))
        envelopes = subscription.drain()

    warnings = [envelope for envelope in envelopes if isinstance(envelope.event, Warned)]
    assert heard == ["a", "b"]
    assert len(warnings) == 1
    warned = warnings[0].event
    assert isinstance(warned, Warned)
    assert (warned.code, warnings[0].origin.agent_id) == ("listener_failed", "helper")
    assert "broken listener" in warned.text
    assert "break_down" in warned.context["traceback"]


async def test_an_exit_from_a_callback_passes_through_and_the_bus_still_works() -> None:
    bus, heard = EventBus(), list[str]()

    def leave(event: Noticed) -> None:
        raise KeyboardInterrupt

    stop = bus.on(Noticed, leave)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(notice("a"))
    stop()
    bus.on(Noticed, lambda event: heard.append(event.text))
    bus.publish(notice("b"))

    assert heard == ["b"]


async def test_a_callback_cannot_change_an_event() -> None:
    bus, seen = EventBus(), list[dict[str, Any]]()

    @bus.on(ToolStarted)
    def scribble(event: ToolStarted) -> None:
        event.args["path"] = "elsewhere"
        event.args["more"]["deep"] = True

    bus.on(ToolStarted, lambda event: seen.append(event.args))
    with bus.subscribe() as subscription:
        bus.publish(started(path="here", more={}))
        [envelope] = subscription.drain()

    assert seen == [{"path": "here", "more": {}}]
    assert isinstance(envelope.event, ToolStarted)
    assert envelope.event.args == {"path": "here", "more": {}}


async def later(event: Noticed) -> None: ...


@table(
    ("kinds", "callback", "words"),
    [
        ("tool.endd", print, r"no event of type 'tool.endd'; did you mean 'tool.ended'\?"),
        ("nothing at all", print, "no event of type 'nothing at all'$"),
        (str, print, "not str"),
        (notice(), print, "not a Noticed"),
        ((), print, r"not \(\)"),
        (None, print, "not None"),
        (Noticed | int, print, "not int"),
        (ToolEnded, "print", "a callback of EventBus.on must be a plain function of one event, got 'print'"),
        (ToolEnded, later, "not an async one; to await something, iterate over bus.subscribe"),
        (ToolEnded, functools.partial(later), "not an async one"),
    ],
)
def test_a_wrong_kind_or_callback_is_refused(kinds: Any, callback: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        EventBus().on(kinds, callback)
    if callable(callback) and callback is not print:
        with pytest.raises(ConfigurationError, match=words):
            EventBus().on(kinds)(callback)


def test_a_bus_refuses_arguments_of_the_wrong_kind() -> None:
    wrong: Any = "main"
    with pytest.raises(ConfigurationError, match=r"EventBus\.origin must be an Origin or None, got 'main'"):
        EventBus(origin=wrong)
    with pytest.raises(ConfigurationError, match=r"EventBus\.first_seq must be a whole number of at least 0"):
        EventBus(first_seq=wrong)
