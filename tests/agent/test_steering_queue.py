"""Queued messages are never merged, never lost, and delivered once and in order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.events import (
    AgentEvent,
    SteeringDelivered,
    SteeringDropped,
    SteeringQueued,
)
from tui_agent.protocol.messages import TextBlock, UserMessage, user_message


class QueueAgainstLists(RuleBasedStateMachine):
    """State machine that uses the queue in every way, beside two lists and a heap with the fate of each message."""

    @initialize()
    def begin(self) -> None:
        self.events: list[AgentEvent] = []
        self.queue = SteeringQueue(self.events.append)
        self.steers: list[UserMessage] = []
        self.follow_ups: list[UserMessage] = []
        self.taken: list[str] = []
        self.over: list[str] = []
        self.put = 0

    @rule(kind=st.sampled_from(["prompt", "steer", "follow_up", "notice"]))
    def someone_writes(self, kind: str) -> None:
        message = self.queue.put(user_message(f"message {self.put}", kind))
        self.put += 1
        (self.follow_ups if kind == "follow_up" else self.steers).append(message)
        assert message.kind == ("steer" if kind == "prompt" else kind)

    @rule(place=st.integers(0, 5))
    def one_is_taken_back(self, place: int) -> None:
        for waiting in (self.steers, self.follow_ups):
            if place < len(waiting):
                message = waiting.pop(place)
                assert self.queue.drop(message.id) == message
                self._is_over(message.id)

    @rule()
    def what_is_not_waiting_cannot_be_changed(self) -> None:
        for message_id in ["unknown", *self.over]:
            assert self.queue.drop(message_id) is None

    @rule()
    def steers_are_taken(self) -> None:
        fresh = [message for message in self.steers if message.id not in self.taken]
        assert self.queue.take_steers() == tuple(fresh)
        self.taken += [message.id for message in fresh]

    @rule()
    def a_follow_up_is_taken(self) -> None:
        fresh = [message for message in self.follow_ups if message.id not in self.taken][:1]
        assert self.queue.take_follow_up() == tuple(fresh)
        self.taken += [message.id for message in fresh]

    @precondition(lambda self: self.taken)
    @rule()
    def the_first_taken_is_delivered(self) -> None:
        message = self.queue.taken[0]
        self.queue.commit(message, "here")
        (self.follow_ups if message.kind == "follow_up" else self.steers).remove(message)
        self._is_over(message.id)

    @rule()
    def delivery_fails(self) -> None:
        self.queue.requeue("aborted")
        self.taken = []

    def _is_over(self, message_id: str) -> None:
        self.over.append(message_id)
        self.taken = [taken for taken in self.taken if taken != message_id]

    @invariant()
    def nothing_is_lost_doubled_or_out_of_order(self) -> None:
        assert list(self.queue.waiting) == [*self.steers, *self.follow_ups]
        assert [message.id for message in self.queue.taken] == [
            message.id for message in self.queue.waiting if message.id in self.taken
        ]
        assert len(self.over) + len(self.queue.waiting) == self.put

    @invariant()
    def positions_show_the_same_queues(self) -> None:
        """Check that the events alone show the messages in the order of delivery."""
        shown: dict[bool, list[str]] = {True: [], False: []}
        for event in self.events:
            if isinstance(event, SteeringQueued):
                shown[event.kind == "follow_up"].insert(event.position, event.message_id)
            elif isinstance(event, SteeringDelivered | SteeringDropped):
                shown[event.kind == "follow_up"].remove(event.message_id)
        assert [*shown[False], *shown[True]] == [message.id for message in self.queue.waiting]

    @invariant()
    def events_tell_each_fate_once(self) -> None:
        queued = [event.message_id for event in self.events if isinstance(event, SteeringQueued)]
        ended = [event.message_id for event in self.events if isinstance(event, SteeringDelivered | SteeringDropped)]
        assert len(queued) == len(set(queued)) == self.put
        assert sorted(ended) == sorted(self.over)


TestQueueAgainstLists = QueueAgainstLists.TestCase


def test_a_message_moved_in_front_of_a_taken_one_is_delivered_first() -> None:
    queue = SteeringQueue(lambda _: None)
    first = queue.put(user_message("first"))
    queue.take_steers()
    second = queue.put(user_message("second"))

    assert queue.move(second.id, -1)
    assert [message.text for message in queue.taken] == ["second", "first"]
    assert queue.waiting == (second, first)


def test_a_message_that_is_edited_is_not_taken_and_returns_to_its_place() -> None:
    queue = SteeringQueue(lambda _: None)
    first, second = queue.put(user_message("first")), queue.put(user_message("second"))
    queue.take_steers()

    assert queue.hold(first.id) == first
    assert queue.hold(first.id) is None
    assert (queue.taken, queue.held, queue.take_steers()) == ((second,), (first,), ())

    edited = queue.release(first.id, (TextBlock(text="changed"),))
    assert edited is not None
    assert edited.id == first.id
    assert [message.text for message in queue.waiting] == ["changed", "second"]
    assert queue.release(first.id) is None


def test_a_follow_up_on_its_way_keeps_its_place() -> None:
    queue = SteeringQueue(lambda _: None)
    first, second = (queue.put(user_message(text, "follow_up")) for text in ("first", "second"))
    queue.take_follow_up()

    assert not queue.move(second.id, -1)
    assert not queue.move(first.id, 1)
    assert queue.taken == (first,)


def test_a_notice_never_becomes_a_follow_up_of_the_user() -> None:
    queue = SteeringQueue(lambda _: None)
    notice = queue.put(user_message("the command has ended", "notice"))

    assert queue.change_kind(notice.id) is None
    assert queue.waiting == (notice,)


def test_messages_move_to_the_queue_of_the_parent_and_an_edited_one_stays_out_of_it() -> None:
    child, parent = SteeringQueue(lambda _: None), SteeringQueue(lambda _: None)
    child.put(user_message("waits"))
    held = child.put(user_message("edited"))
    child.hold(held.id)

    child.move_to(parent)

    assert child.all == ()
    assert [message.text for message in parent.waiting] == ["waits"]
    assert [message.id for message in parent.held] == [held.id]
