import asyncio
from typing import Any

import pytest

from tests.execution.kit import Steering
from tests.support.validating_bus import ValidatingBus
from tui_agent.execution.scheduling.steering_poll import SteeringPoll
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import UserMessage, user_message


def poll_of(getter: Any, bus: Publisher) -> SteeringPoll:
    return SteeringPoll(getter, bus, CancellationToken(), grace=2.0)


async def test_two_concurrent_polls_run_in_sequence() -> None:
    inside = 0

    async def getter() -> list[UserMessage]:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1
        return [user_message("hi")]

    poll = poll_of(getter, ValidatingBus(whole=False))
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(poll.poll())

    assert len(poll.found) == 1


async def test_a_getter_that_raises_is_published_and_counts_as_empty() -> None:
    async def broken() -> list[UserMessage]:
        raise OSError("gone")

    bus = ValidatingBus(whole=False)
    with bus.subscribe() as subscription:
        assert not await poll_of(broken, bus).poll()
        events = [envelope.event for envelope in subscription.drain()]

    assert [getattr(event, "code", "") for event in events] == ["steering_failed"]


async def test_a_system_notice_is_never_attributed_to_the_user() -> None:
    notice = poll_of(Steering(at_poll=1, kind="notice"), ValidatingBus(whole=False))
    person = poll_of(Steering(at_poll=1), ValidatingBus(whole=False))
    await notice.poll()
    await person.poll()

    assert notice.reason == "notice"
    assert person.reason == "steering"


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("look here", ["look here"]),
        (["first", "second"], ["first", "second"]),
        (("first", user_message("second")), ["first", "second"]),
        (user_message("one"), ["one"]),
        (dict.fromkeys(["first", None, " ", "second"]).keys(), ["first", "second"]),
        ("", []),
        ([], []),
        (None, []),
        ([None], []),
        ("half \ud83d", ["half \ufffd"]),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_getter_returns_texts_or_messages_one_or_several(answer: Any, texts: list[str], is_async: bool) -> None:
    async def later() -> Any:
        return answer

    bus = ValidatingBus(whole=False)
    with bus.subscribe(merge=False) as subscription:
        poll = poll_of(later if is_async else lambda: answer, bus)

        assert await poll.poll() is bool(texts)
        assert subscription.drain() == []
    assert [message.text for message in poll.found] == texts
    assert all(isinstance(message, UserMessage) for message in poll.found)
    assert poll.reason == ("steering" if texts else "notice")


async def test_messages_beside_invalid_values_are_not_lost() -> None:
    bus = ValidatingBus(whole=False)
    answer: Any = ["keep this", {"role": "user"}, user_message("and this"), 5]
    with bus.subscribe(merge=False) as subscription:
        poll = poll_of(lambda: answer, bus)

        assert await poll.poll()
        warned = [envelope.event for envelope in subscription.drain()]

    assert [message.text for message in poll.found] == ["keep this", "and this"]
    assert [getattr(event, "text", "") for event in warned] == [
        "Steering must be texts or user messages, got {'role': 'user'}. It was dropped; running tools continue."
    ]


@pytest.mark.parametrize("answer", [5, b"abc", {"text": "abc"}, [object()], True])
async def test_a_getter_that_returns_no_messages_is_published_and_counts_as_empty(answer: Any) -> None:
    bus = ValidatingBus(whole=False)
    with bus.subscribe(merge=False) as subscription:
        poll = poll_of(lambda: answer, bus)

        assert not await poll.poll()
        warned = [envelope.event for envelope in subscription.drain()]

    assert [event.type for event in warned] == ["warning"]
