"""The messages that wait for the agent and its sub-agents: the fold behind the queue strip."""

from dataclasses import dataclass, replace

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SteeringDelivered, SteeringDropped, SteeringQueued, SteeringRequeued
from tui_agent.protocol.messages import FrozenModel, UserKind
from tui_agent.protocol.run_events import HELD_REASON

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (SteeringQueued, SteeringRequeued, SteeringDelivered, SteeringDropped)
)
"""Events that may change the queue."""
_MAIN_DEPTH = 0


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """One queued message."""

    message_id: str
    kind: UserKind
    text: str
    sub_agent: str = ""
    """Id of the sub-agent that gets it; empty: the main agent."""
    held: bool = False
    """True while the user edits it: no boundary delivers it."""

    @property
    def follows_up(self) -> bool:
        """True if the message is a turn of its own."""
        return self.kind == "follow_up"


class WaitingMessages:
    """The queue in the order of delivery: steering messages, those for sub-agents, then follow-ups.

    Changed by `apply` and `forget` only.
    """

    def __init__(self) -> None:
        self._queues: dict[tuple[bool, str], list[WaitingMessage]] = {(False, ""): []}

    @property
    def rows(self) -> tuple[WaitingMessage, ...]:
        """Every message, those that the user edits included."""
        steers = [message for (follows, _), queue in self._queues.items() if not follows for message in queue]
        return (*steers, *(message for (follows, _), queue in self._queues.items() if follows for message in queue))

    @property
    def all(self) -> tuple[WaitingMessage, ...]:
        """Every message that can be delivered."""
        return tuple(message for message in self.rows if not message.held)

    def find(self, message_id: str) -> WaitingMessage | None:
        """Return the message with this id; None if it is not queued."""
        return next((message for message in self.rows if message.message_id == message_id), None)

    def forget(self, message_id: str) -> None:
        """Remove a message; ignore an unknown id."""
        for queue in self._queues.values():
            queue[:] = [message for message in queue if message.message_id != message_id]

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        agent = envelope.origin.agent_id if envelope.origin.depth > _MAIN_DEPTH else ""
        match envelope.event:
            case SteeringQueued(kind="notice") | SteeringRequeued(kind="notice"):
                return False  # It is by the program: the user can neither edit nor drop it.
            case SteeringQueued(message_id=message_id, kind=kind, text=text, position=position):
                self._put(WaitingMessage(message_id, kind, text, agent), position)
            case SteeringRequeued(message_id=message_id, kind=kind, text=text):
                # Messages that were taken together return in order, each in front of those that were never taken.
                if self.find(message_id) is None:
                    self._put(WaitingMessage(message_id, kind, text, agent), 0)
            case SteeringDelivered(message_id=message_id) | SteeringDropped(message_id=message_id):
                self._leave(message_id, agent, envelope.event)
            case _:
                return False
        return True

    def _leave(self, message_id: str, agent: str, event: SteeringDelivered | SteeringDropped) -> None:
        """Remove or hold a message, unless it has moved to the queue of another agent."""
        message = self.find(message_id)
        if message is None or message.sub_agent != agent:
            return
        if isinstance(event, SteeringDropped) and event.reason == HELD_REASON:
            queue = self._queue_of(message)
            queue[queue.index(message)] = replace(message, held=True)
        else:
            self.forget(message_id)

    def _put(self, message: WaitingMessage, position: int) -> None:
        # A message that was moved or edited is queued again under its id.
        self.forget(message.message_id)
        self._queue_of(message).insert(position, message)

    def _queue_of(self, message: WaitingMessage) -> list[WaitingMessage]:
        return self._queues.setdefault((message.follows_up, message.sub_agent), [])
