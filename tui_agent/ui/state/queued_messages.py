"""The messages that wait for the agent: the fold behind the queue strip."""

from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SteeringDelivered, SteeringDropped, SteeringQueued, SteeringRequeued
from tui_agent.protocol.messages import FrozenModel, UserKind

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (SteeringQueued, SteeringRequeued, SteeringDelivered, SteeringDropped)
)
"""Events that may change the queue."""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """One queued message."""

    message_id: str
    kind: UserKind
    text: str

    @property
    def follows_up(self) -> bool:
        """True if the message is a turn of its own."""
        return self.kind == "follow_up"


class WaitingMessages:
    """The queue in the order of delivery: steering messages, then follow-ups. Changed by `apply` and `forget` only."""

    def __init__(self) -> None:
        self._steers: list[WaitingMessage] = []
        self._follow_ups: list[WaitingMessage] = []

    @property
    def all(self) -> tuple[WaitingMessage, ...]:
        """Every queued message."""
        return (*self._steers, *self._follow_ups)

    def forget(self, message_id: str) -> None:
        """Remove a message; ignore an unknown id."""
        for queue in (self._steers, self._follow_ups):
            queue[:] = [message for message in queue if message.message_id != message_id]

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        match envelope.event:
            case SteeringQueued(message_id=message_id, kind=kind, text=text, position=position):
                self._put(WaitingMessage(message_id, kind, text), position)
            case SteeringRequeued(message_id=message_id, kind=kind, text=text):
                # Messages that were taken together return in order, each in front of those that were never taken.
                known = [message.message_id for message in self.all]
                if message_id not in known:
                    self._put(WaitingMessage(message_id, kind, text), 0)
            case SteeringDelivered(message_id=message_id) | SteeringDropped(message_id=message_id):
                self.forget(message_id)
            case _:
                return False
        return True

    def _put(self, message: WaitingMessage, position: int) -> None:
        self.forget(message.message_id)
        queue = self._follow_ups if message.follows_up else self._steers
        queue.insert(position, message)
