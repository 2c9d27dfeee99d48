"""Changes to queued messages: the user edits, drops, moves and restores them, in the queue of any agent."""

from typing import TYPE_CHECKING

from tui_agent.protocol.messages import UserMessage

from .prompt_attachments import PromptAttachments

if TYPE_CHECKING:
    # The first screen must not wait until the engine is loaded.
    from tui_agent.workbench.workbench import AgentLoop, SteeringQueue

MAX_DROPPED = 20
"""Dropped messages that can be restored."""


class MessageEdits:
    """Changes to the queues of the agent and its sub-agents. Their effects are events."""

    def __init__(self, attachments: PromptAttachments, agent: "AgentLoop | None" = None) -> None:
        """
        Args:
            attachments: the attachments of messages.
            agent: the agent; None: it does not exist yet, and no message is queued.
        """
        self._attachments = attachments
        self._agent = agent
        self._dropped: list[tuple[SteeringQueue, UserMessage, int]] = []

    def hold(self, message_id: str) -> str | None:
        """Take a message out of the queue for an edit and return its text; None if it was delivered already.

        It keeps its place until `release` or `drop`.
        """
        queue = self._queue_of(message_id)
        message = queue.hold(message_id) if queue is not None else None
        return message.text if message is not None else None

    def release(self, message_id: str, text: str | None = None) -> bool:
        """Queue a message again after an edit, with another text if there is one; False if it is not being edited.

        Raises:
            TuiAgentError: it has too many attachments.
        """
        queue = self._queue_of(message_id)
        message = queue.find(message_id) if queue is not None else None
        if queue is None or message is None:
            return False
        if text is None or text == message.text:
            return queue.release(message_id) is not None
        return queue.release(message_id, self._attachments.content(text, message)) is not None

    def drop(self, message_id: str) -> str | None:
        """Remove a message from the queue and return its text; None if it was delivered already."""
        queue = self._queue_of(message_id)
        if queue is None:
            return None
        place = next(place for place, one in enumerate(_kin(queue, message_id)) if one.id == message_id)
        message = queue.drop(message_id)
        if message is None:
            return None
        self._dropped = [*self._dropped, (queue, message, place)][-MAX_DROPPED:]
        return message.text

    def undo_drop(self) -> bool:
        """Queue the message that was dropped last, in its old place; False if there is none."""
        if not self._dropped or self._agent is None:
            return False
        queue, message, place = self._dropped.pop()
        if queue in self._agent.message_queues:
            queue.insert(message, place)
        else:
            # Its sub-agent has ended: like the messages that it did not read, the agent gets it.
            self._agent.message_queues[0].put(message)
        return True

    def move(self, message_id: str, rows: int) -> bool:
        """Move a message down, or up if `rows` is negative, among those of its kind; False if it cannot move."""
        queue = self._queue_of(message_id)
        return queue is not None and queue.move(message_id, rows)

    def change_kind(self, message_id: str) -> bool:
        """Turn a steering message into a follow-up, or the reverse; False for a message to a sub-agent."""
        queue = self._queue_of(message_id)
        is_main = self._agent is not None and queue is self._agent.message_queues[0]
        return queue is not None and is_main and queue.change_kind(message_id) is not None

    def _queue_of(self, message_id: str) -> "SteeringQueue | None":
        """Return the queue that has a message, held or waiting."""
        queues = self._agent.message_queues if self._agent is not None else ()
        return next((queue for queue in queues if queue.find(message_id) is not None), None)


def _kin(queue: "SteeringQueue", message_id: str) -> tuple[UserMessage, ...]:
    """Return the messages of a queue that are of the same kind as one of them."""
    message = queue.find(message_id)
    follows = message is not None and message.kind == "follow_up"
    return tuple(one for one in queue.all if (one.kind == "follow_up") == follows)
