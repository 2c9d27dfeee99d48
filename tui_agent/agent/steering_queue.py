"""The queue of messages that the user sends while the agent works, until they are part of the conversation.

Steering messages are delivered at the next boundary of a run, follow-ups when it would end. Messages are never merged
and never lost: a message that was taken keeps its place here until it is committed, and can be edited, moved or
dropped until then. A message that the user edits is held: it keeps its place, but no boundary delivers it.

The events of a message that changes its place, its kind or its text while it waits: `steering.queued` again, with the
same id. `steering.dropped` with the reason `HELD_REASON` begins an edit; a session that ends before the message is
queued again restores it as it was.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from tui_agent.protocol.events import (
    AgentEvent,
    SteeringDelivered,
    SteeringDropped,
    SteeringQueued,
    SteeringRequeued,
)
from tui_agent.protocol.messages import UserBlock, UserKind, UserMessage, new_id
from tui_agent.protocol.run_events import HELD_REASON


class SteeringQueue:
    """Two first-in-first-out queues. Each message leaves exactly once, delivered or dropped."""

    def __init__(self, publish: Callable[[AgentEvent], None]) -> None:
        self.on_steer: Callable[[], object] = lambda: None
        """Called when a steering message is ready for the next boundary."""
        self._publish = publish
        self._steers: list[UserMessage] = []
        self._follow_ups: list[UserMessage] = []
        self._taken: set[str] = set()
        self._held: set[str] = set()

    @property
    def all(self) -> tuple[UserMessage, ...]:
        """All messages that are not part of the conversation yet, held ones included, in order of delivery."""
        return (*self._steers, *self._follow_ups)

    @property
    def waiting(self) -> tuple[UserMessage, ...]:
        """The messages that can be delivered, in this order."""
        return tuple(message for message in self.all if message.id not in self._held)

    @property
    def held(self) -> tuple[UserMessage, ...]:
        """The messages that the user is editing."""
        return tuple(message for message in self.all if message.id in self._held)

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
        self._notify(message)
        return message

    def find(self, message_id: str) -> UserMessage | None:
        """Return the message with this id, held or waiting; None if it is unknown or already delivered."""
        return next((message for message in self.all if message.id == message_id), None)

    def drop(self, message_id: str, reason: str = "recalled") -> UserMessage | None:
        """Remove a message, publish that with the reason, and return it.

        None if it is unknown or already part of the conversation.
        """
        message = self.find(message_id)
        if message is not None:
            self._queue_of(message).remove(message)
            self._taken.discard(message_id)
            self._held.discard(message_id)
            self._publish(_dropped(message, reason))
        return message

    def hold(self, message_id: str) -> UserMessage | None:
        """Begin an edit: return a waiting message, which keeps its place and is not delivered until `release`.

        None if it is held already, delivered, or unknown.
        """
        message = self.find(message_id)
        if message is None or message_id in self._held:
            return None
        self._taken.discard(message_id)
        self._held.add(message_id)
        self._publish(_dropped(message, HELD_REASON))
        return message

    def release(self, message_id: str, content: Sequence[UserBlock] | None = None) -> UserMessage | None:
        """End an edit: the message waits again, in its place; None if it is not held.

        Args:
            message_id: the id, which stays.
            content: its new content; None: as before.
        """
        message = self.find(message_id)
        if message is None or message_id not in self._held:
            return None
        self._held.remove(message_id)
        queue = self._queue_of(message)
        if content is not None:
            edited = message.model_copy(update={"content": tuple(content)})
            queue[queue.index(message)] = message = edited
        self._placed(message)
        return message

    def insert(self, message: UserMessage, position: int) -> UserMessage:
        """Put a message that was dropped back into the queue of its kind, before the message at `position`, from 0.

        Follow-ups that were taken stay in front; a position past the end appends.
        """
        queue = self._queue_of(message)
        queue.insert(max(position, self._first_free(queue)), message)
        self._placed(message)
        return message

    def move(self, message_id: str, rows: int) -> bool:
        """Move a message `rows` places down, or up if negative, within its kind, at most to the end of its queue.

        False if it does not move: it is at the end, a follow-up that was taken, or unknown.
        """
        message = self.find(message_id)
        if message is None:
            return False
        queue = self._queue_of(message)
        old = queue.index(message)
        new = min(max(old + rows, self._first_free(queue)), len(queue) - 1)
        # A follow-up that was taken is on its way.
        if new == old or old < self._first_free(queue):
            return False
        queue.insert(new, queue.pop(old))
        self._placed(message)
        return True

    def change_kind(self, message_id: str) -> UserMessage | None:
        """Turn a steering message into the first follow-up, or a follow-up into the last steering message.

        Returns:
            The message; None if it is not queued, or a notice, which is not by the user.
        """
        old = self.find(message_id)
        if old is None or old.kind == "notice":
            return None
        steers = old.kind == "follow_up"
        message = old.model_copy(update={"kind": "steer" if steers else "follow_up"})
        self._queue_of(old).remove(old)
        self._taken.discard(message_id)
        queue = self._queue_of(message)
        queue.insert(len(queue) if steers else self._first_free(queue), message)
        self._placed(message)
        return message

    @property
    def steers(self) -> bool:
        """True if a steering message of the user waits. A notice alone skips no calls and withdraws no questions."""
        return any(message.kind == "steer" for message in self._ready(self._steers))

    def take_steers(self) -> tuple[UserMessage, ...]:
        """Take all steering messages and notices that were not taken yet, in order; `commit` each, or `requeue` them.

        Only one owner polls, so none is delivered twice.
        """
        return self._take(message for message in self._ready(self._steers) if message.id not in self._taken)

    def take_follow_up(self) -> tuple[UserMessage, ...]:
        """Take the next follow-up, alone: each is a turn of its own. Empty if none waits."""
        ready = self._ready(self._follow_ups)
        return self._take(islice((message for message in ready if message.id not in self._taken), 1))

    def commit(self, message: UserMessage, boundary: str) -> None:
        """Remove a taken message, which is part of the conversation now, and publish its delivery at `boundary`.

        Raises:
            ValueError: the message is not queued as it is.
        """
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

    def move_to(self, other: "SteeringQueue") -> None:
        """Move all messages to the queue of another agent, because this agent ends; held ones stay held."""
        for message in self.all:
            is_held = message.id in self._held
            if is_held:
                # The same id, which the user's edit names. The other queue comes first, so that it is never gone.
                other.adopt_held(message)
            self.drop(message.id)
            if not is_held:
                # A follow-up was meant for the run that ends; for the parent it is news.
                kind = "notice" if message.kind == "notice" else "steer"
                other.put(message.model_copy(update={"id": new_id("msg"), "kind": kind}))

    def adopt_held(self, message: UserMessage) -> None:
        """Append a message that is held in the queue of an agent that ends."""
        held = message.model_copy(update={"kind": "steer"})
        self._steers.append(held)
        self._held.add(held.id)
        # Published in this queue first, so that a front end never sees it nowhere.
        self._placed(held)

    def _queue_of(self, message: UserMessage) -> list[UserMessage]:
        return self._follow_ups if message.kind == "follow_up" else self._steers

    def _ready(self, queue: list[UserMessage]) -> tuple[UserMessage, ...]:
        """Return the messages of a queue that are not held."""
        return tuple(message for message in queue if message.id not in self._held)

    def _first_free(self, queue: list[UserMessage]) -> int:
        """Return the first position for a message that is inserted: follow-ups that were taken stay in front."""
        taken = [place for place, message in enumerate(queue) if message.id in self._taken]
        return taken[-1] + 1 if taken and queue is self._follow_ups else 0

    def _placed(self, message: UserMessage) -> None:
        """Publish the place of a message that was inserted or moved."""
        taken = [place for place, one in enumerate(self._steers) if one.id in self._taken]
        # The boundary that delivers a message also delivers those in front of it.
        self._taken.update(one.id for one in self._ready(self._steers[: taken[-1]] if taken else []))
        queue = self._queue_of(message)
        self._publish_queued(message, queue.index(message))
        if message.id in self._held:
            self._publish(_dropped(message, HELD_REASON))
        else:
            self._notify(message)

    def _notify(self, message: UserMessage) -> None:
        if message.kind == "steer":
            self.on_steer()

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
