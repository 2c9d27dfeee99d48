"""A paced subscription delays deltas, but never lifecycle events."""

import asyncio
from contextlib import aclosing

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.events import MessageDelta, Noticed

AN_HOUR = 3600.0


def delta(text: str) -> MessageDelta:
    return MessageDelta(message_id="m", kind="text", delta=text)


async def test_deltas_are_held_until_a_lifecycle_event() -> None:
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
                bus.publish(Noticed(code="c", text="x"))

            assert [envelope.event for envelope in following.result()] == [delta("bcd"), Noticed(code="c", text="x")]


async def test_held_deltas_are_delivered_after_the_pace() -> None:
    bus = EventBus()
    with bus.subscribe() as subscription:
        async with aclosing(subscription.batches(pace=0.001)) as batches:
            bus.publish(delta("a"))
            await anext(batches)
            bus.publish(delta("b"))

            assert [envelope.event for envelope in await anext(batches)] == [delta("b")]


async def test_closing_delivers_held_deltas() -> None:
    bus = EventBus()
    subscription = bus.subscribe()
    bus.publish(delta("a"))
    heard: list[str] = []

    async def listen() -> None:
        async for batch in subscription.batches(pace=AN_HOUR):
            heard.extend(envelope.event.delta for envelope in batch)
            if len(heard) == 1:
                bus.publish(delta("b"))
                subscription.close()

    await listen()

    assert heard == ["a", "b"]
