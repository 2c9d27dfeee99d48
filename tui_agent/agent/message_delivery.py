"""Delivery of messages into the conversation: after the input filters, in order, each message once."""

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import InputSource
from tui_agent.protocol.messages import Message, UserMessage

from .agent_state import AgentState
from .input_filters import filtered
from .stop_tokens import unless_cancelled


class MessageDelivery:
    """Delivers the messages of one run."""

    def __init__(self, agent: AgentState, now: CancellationToken) -> None:
        """
        Args:
            agent: the agent with the conversation.
            now: cancels a filter that is running.
        """
        self._agent = agent
        self._now = now

    async def apply_input_filters(self, message: Message, source: InputSource) -> Message | str:
        """Return the message as the filters allow it, or the reason for its rejection.

        Raises:
            OperationCancelledError: the run must end; not all filters have checked the message.
        """
        filters = self._agent.config.input_filters
        if not filters or not isinstance(message, UserMessage):
            return message
        return await unless_cancelled(self._now, filtered(filters, message, source, self._agent.publisher.publish))

    async def deliver(self, boundary: str) -> bool:
        """Append the queued messages that were taken; False if there were none or all were rejected."""
        queue, delivered = self._agent.queue, False
        if queue.taken:
            # A rewind to before the message must not undo what was done before it.
            await self._agent.effects_published()
        while queue.taken:
            message = queue.taken[0]
            allowed = await self.apply_input_filters(
                message, "follow_up" if message.kind == "follow_up" else "steering"
            )
            # The user may have edited, moved or dropped it while the filters ran.
            if queue.taken[:1] != (message,):
                continue
            if isinstance(allowed, str):
                queue.drop(message.id, allowed)
            else:
                queue.commit(message, boundary)
                self._agent.add_message(allowed)
                delivered = True
        return delivered
