"""Queued messages are never merged, never lost, and delivered once and in order."""

from tui_agent.agent.steering_queue import SteeringQueue
from tui_agent.protocol.messages import user_message


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
