"""The bus: one order for all subscribers, no waiting, no lifecycle event lost, merged or delayed."""

import asyncio
from contextlib import aclosing
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.protocol.bus import RING_SIZE, EventBus, merge_neighbours
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ContextUsage,
    MessageDelta,
    Noticed,
    ToolOutput,
    ToolProgress,
    ToolUpdated,
)
from tui_agent.protocol.tool import ToolResult


def delta(text: str, message: str = "m") -> MessageDelta:
    return MessageDelta(message_id=message, kind="text", delta=text)


def notice(text: str = "x") -> Noticed:
    return Noticed(code="c", text=text)


def output(text: str, call: str = "1") -> ToolOutput:
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
