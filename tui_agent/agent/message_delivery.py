"""How what is said becomes part of the conversation: after the filters looked at it, in order, each message once."""

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import InputSource
from tui_agent.protocol.messages import Message, UserMessage

from .agent_state import AgentState
from .input_filters import filtered
from .stop_tokens import unless_cancelled


class MessageDelivery:
    """One run's way into the conversation."""

    def __init__(self, agent: AgentState, now: CancellationToken) -> None:
        """
        Args:
            agent: whose conversation it is.
            now: ends a filter that is being asked.
        """
        self._agent = agent
        self._now = now

    async def apply_input_filters(self, message: Message, source: InputSource) -> Message | str:
        """The message as it may become part of the conversation, or why it may not (C38).

        Raises:
            OperationCancelledError: the run is to end; the filters did not look at all of it.
        """
        filters = self._agent.config.input_filters
        if not filters or not isinstance(message, UserMessage):
            return message
        return await unless_cancelled(self._now, filtered(filters, message, source, self._agent.publisher.publish))

    async def deliver(self, boundary: str) -> bool:
        """Adds the waiting messages that were taken, while calls ran or just now; whether there was anything."""
        queue, delivered = self._agent.queue, False
        for message in queue.taken:
            allowed = await self.apply_input_filters(
                message, "follow_up" if message.kind == "follow_up" else "steering"
            )
            if isinstance(allowed, str):
                queue.drop(message.id, allowed)
            elif message in queue.taken:
                queue.commit(message, boundary)
                self._agent.add_message(allowed)
                delivered = True
        return delivered
