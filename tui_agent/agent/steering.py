"""Messages a person sends while the agent works, until the moment they are part of the conversation.

Steers are delivered at the next boundary of a run, follow-ups once it would end. Messages are never merged and never
lost: what is taken stays here until it is committed, and goes back to the front if it could not be delivered (P22).
"""

from collections.abc import Callable, Iterable

from tui_agent.protocol.events import (
    AgentEvent,
    SteeringDelivered,
    SteeringDropped,
    SteeringQueued,
    SteeringRequeued,
)
from tui_agent.protocol.messages import TextBlock, UserKind, UserMessage, new_id


class SteeringQueue:
    """Two queues, first in first out; each message ends exactly once, as delivered or as dropped."""

    def __init__(self, tell: Callable[[AgentEvent], None]) -> None:
        self._tell = tell
        self._steers: list[UserMessage] = []
        self._follow_ups: list[UserMessage] = []
        self._taken: list[UserMessage] = []

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """Every message that is not part of the conversation yet, in the order they will be delivered."""
        return (*self._taken, *self._steers, *self._follow_ups)

    def put(self, message: UserMessage) -> UserMessage:
        """Queues a message at the end of its kind's queue; whatever is not a follow-up steers. Returns it."""
        kind: UserKind = "follow_up" if message.kind == "follow_up" else "steer"
        if message.kind not in ("steer", "follow_up", "notice"):
            message = message.model_copy(update={"kind": kind})
        queue = self._queue_of(message)
        queue.append(message)
        self._tell_queued(message, len(queue) - 1)
        return message

    def drop(self, message_id: str, reason: str = "taken back") -> UserMessage | None:
        """Takes a waiting message out again; None if it is unknown or already on its way."""
        for queue in (self._steers, self._follow_ups):
            for message in queue:
                if message.id == message_id:
                    queue.remove(message)
                    self._tell(_dropped(message, reason))
                    return message
        return None

    def edit(self, message_id: str, text: str) -> UserMessage | None:
        """Puts another text in the place of a waiting message, under a new id; None if it is no longer waiting."""
        for queue in (self._steers, self._follow_ups):
            for position, message in enumerate(queue):
                if message.id == message_id:
                    edited = message.model_copy(update={"id": new_id("msg"), "content": (TextBlock(text=text),)})
                    queue[position] = edited
                    self._tell(_dropped(message, "edited"))
                    self._tell_queued(edited, position)
                    return edited
        return None

    def take_steers(self) -> tuple[UserMessage, ...]:
        """All waiting steers, to be committed or put back; one owner polls, so that none is delivered twice (C8)."""
        taken, self._steers = self._steers, []
        self._taken.extend(taken)
        return tuple(taken)

    def take_follow_up(self) -> tuple[UserMessage, ...]:
        """The next follow-up, alone: each is a turn of its own."""
        taken, self._follow_ups = self._follow_ups[:1], self._follow_ups[1:]
        self._taken.extend(taken)
        return tuple(taken)

    def commit(self, message: UserMessage, boundary: str) -> None:
        """A taken message is part of the conversation now."""
        self._taken.remove(message)
        self._tell(
            SteeringDelivered(message_id=message.id, kind=message.kind, text=message.text, boundary=boundary),
        )

    def requeue(self, reason: str) -> None:
        """Puts everything that was taken and not committed back to the front, in its order."""
        taken, self._taken = self._taken, []
        for message in reversed(taken):
            self._queue_of(message).insert(0, message)
        for message in taken:
            self._tell(
                SteeringRequeued(message_id=message.id, kind=message.kind, text=message.text, reason=reason),
            )

    def restore(self, messages: Iterable[UserMessage]) -> None:
        """Queues the messages that waited when a session ended."""
        for message in messages:
            self.put(message)

    def _queue_of(self, message: UserMessage) -> list[UserMessage]:
        return self._follow_ups if message.kind == "follow_up" else self._steers

    def _tell_queued(self, message: UserMessage, position: int) -> None:
        self._tell(
            SteeringQueued(
                message_id=message.id, kind=message.kind, text=message.text, position=position, message=message
            ),
        )


def _dropped(message: UserMessage, reason: str) -> SteeringDropped:
    return SteeringDropped(message_id=message.id, kind=message.kind, text=message.text, reason=reason)
