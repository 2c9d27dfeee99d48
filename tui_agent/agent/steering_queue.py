"""The queue of messages that the user sends while the agent works, until they are part of the conversation.

Steering messages are delivered at the next boundary of a run, follow-ups when it would end. Messages are never merged
and never lost: a message that was taken keeps its place here until it is committed, and can be edited or dropped until
then.
"""

from collections.abc import Callable, Iterable
from itertools import islice

from tui_agent.execution.json_coercion import replace_lone_surrogates
from tui_agent.protocol.events import (
    AgentEvent,
    SteeringDelivered,
    SteeringDropped,
    SteeringQueued,
    SteeringRequeued,
)
from tui_agent.protocol.messages import TextBlock, UserKind, UserMessage, new_id


class SteeringQueue:
    """Two first-in-first-out queues. Each message leaves exactly once, delivered or dropped."""

    def __init__(self, publish: Callable[[AgentEvent], None]) -> None:
        self._publish = publish
        self._steers: list[UserMessage] = []
        self._follow_ups: list[UserMessage] = []
        self._taken: set[str] = set()

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """All messages that are not part of the conversation yet, in order of delivery."""
        return (*self._steers, *self._follow_ups)

    @property
    def taken(self) -> tuple[UserMessage, ...]:
        """The waiting messages that were taken and must be committed next."""
        return tuple(message for message in self.waiting if message.id in self._taken)

    def put(self, message: UserMessage) -> UserMessage:
        """Append a message to the queue of its kind and return it; every kind but a follow-up steers."""
        kind: UserKind = "follow_up" if message.kind == "follow_up" else "steer"
        if message.kind not in ("steer", "follow_up", "notice"):
            message = message.model_copy(update={"kind": kind})
        queue = self._queue_of(message)
        queue.append(message)
        self._publish_queued(message, len(queue) - 1)
        return message

    def drop(self, message_id: str, reason: str = "recalled") -> UserMessage | None:
        """Remove a waiting message and return it; None if it is unknown or already part of the conversation."""
        for queue in (self._steers, self._follow_ups):
            for message in queue:
                if message.id == message_id:
                    queue.remove(message)
                    self._taken.discard(message_id)
                    self._publish(_dropped(message, reason))
                    return message
        return None

    def edit(self, message_id: str, text: str) -> UserMessage | None:
        """Replace the text of a waiting message, which gets a new id; None if it no longer waits."""
        for queue in (self._steers, self._follow_ups):
            for position, message in enumerate(queue):
                if message.id == message_id:
                    pictures = (block for block in message.content if not isinstance(block, TextBlock))
                    content = (TextBlock(text=replace_lone_surrogates(text)), *pictures)
                    edited = message.model_copy(update={"id": new_id("msg"), "content": content})
                    queue[position] = edited
                    if message_id in self._taken:
                        self._taken = self._taken - {message_id} | {edited.id}
                    self._publish(_dropped(message, "edited"))
                    self._publish_queued(edited, position)
                    return edited
        return None

    def take_steers(self) -> tuple[UserMessage, ...]:
        """Take all steering messages that were not taken yet. Only one owner polls, so none is delivered twice."""
        return self._take(message for message in self._steers if message.id not in self._taken)

    def take_follow_up(self) -> tuple[UserMessage, ...]:
        """Take the next follow-up, alone: each is a turn of its own."""
        return self._take(islice((message for message in self._follow_ups if message.id not in self._taken), 1))

    def commit(self, message: UserMessage, boundary: str) -> None:
        """Remove a taken message, which is part of the conversation now, and publish its delivery."""
        self._queue_of(message).remove(message)
        self._taken.remove(message.id)
        self._publish(
            SteeringDelivered(message_id=message.id, kind=message.kind, text=message.text, boundary=boundary),
        )

    def requeue(self, reason: str) -> None:
        """Return taken messages that were not committed to the queue, in their old places."""
        taken = self.taken
        self._taken.clear()
        for message in taken:
            self._publish(
                SteeringRequeued(message_id=message.id, kind=message.kind, text=message.text, reason=reason),
            )

    def restore(self, messages: Iterable[UserMessage]) -> None:
        """Queue the messages that waited when the session ended."""
        for message in messages:
            self.put(message)

    def _queue_of(self, message: UserMessage) -> list[UserMessage]:
        return self._follow_ups if message.kind == "follow_up" else self._steers

    def _take(self, messages: Iterable[UserMessage]) -> tuple[UserMessage, ...]:
        taken = tuple(messages)
        self._taken.update(message.id for message in taken)
        return taken

    def _publish_queued(self, message: UserMessage, position: int) -> None:
        self._publish(
            SteeringQueued(
                message_id=message.id, kind=message.kind, text=message.text, position=position, message=message
            ),
        )


def _dropped(message: UserMessage, reason: str) -> SteeringDropped:
    return SteeringDropped(message_id=message.id, kind=message.kind, text=message.text, reason=reason)
