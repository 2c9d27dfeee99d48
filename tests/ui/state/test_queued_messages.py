"""The queue on the screen matches the agent's queue, in the order of delivery."""

from tests.ui.story import Story
from tui_agent.protocol.events import SteeringDropped, SteeringRequeued
from tui_agent.ui.state.queued_messages import WaitingMessages


def fold(story: Story) -> WaitingMessages:
    queue = WaitingMessages()
    for envelope in story.envelopes:
        queue.apply(envelope)
    return queue


def texts(queue: WaitingMessages) -> list[str]:
    return [message.text for message in queue.all]


def test_steering_comes_before_follow_ups() -> None:
    story = Story()
    story.sends("later", "follow_up")
    story.sends("now")
    story.sends("and now", position=1)

    assert texts(fold(story)) == ["now", "and now", "later"]


def test_delivered_and_dropped_messages_are_gone() -> None:
    story = Story()
    first, second = story.sends("one"), story.sends("two", position=1)
    story.delivered(first, "one", "after step 1")
    story.tell(SteeringDropped(message_id=second, kind="steer", text="two", reason="recalled"))

    assert fold(story).all == ()


def test_a_requeued_message_comes_first_and_only_once() -> None:
    story = Story()
    first = story.sends("one")
    story.tell(SteeringRequeued(message_id=first, kind="steer", text="one", reason="the run failed"))
    story.tell(SteeringRequeued(message_id="m0", kind="steer", text="zero", reason="the run failed"))

    assert texts(fold(story)) == ["zero", "one"]


def test_an_edited_message_takes_its_old_place() -> None:
    story = Story()
    first = story.sends("one")
    story.sends("two", position=1)
    story.tell(SteeringDropped(message_id=first, kind="steer", text="one", reason="edited"))
    story.sends("uno", position=0)

    assert texts(fold(story)) == ["uno", "two"]


def test_other_events_change_nothing() -> None:
    queue = WaitingMessages()

    assert not any(queue.apply(envelope) for envelope in Story().run("x").end().envelopes)
