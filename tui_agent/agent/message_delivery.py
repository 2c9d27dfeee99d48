"""Delivery of messages into the conversation: after the input filters, in order, each message once."""

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import InputRejected, InputSource
from tui_agent.protocol.messages import Message, UserMessage, user_message

from .agent_state import AgentState
from .input_filters import filtered
from .run_hooks import PromptCheck, ask_run_hooks
from .stop_tokens import unless_cancelled

_BY_USER = frozenset(("prompt", "steer", "follow_up"))
"""Kinds of messages that the user wrote."""


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

    async def checked(self, message: Message, source: InputSource) -> tuple[Message, ...] | str:
        """Return a message as the filters and the hooks allow it, with what they add, or the reason for its rejection.

        Raises:
            OperationCancelledError: the run must end; not everything has checked the message.
        """
        allowed = await self.apply_input_filters(message, source)
        hooks = self._agent.config.run_hooks
        if isinstance(allowed, str):
            return allowed
        if hooks is None or not isinstance(allowed, UserMessage) or allowed.kind not in _BY_USER:
            return (allowed,)
        check = (
            await ask_run_hooks(self._agent.publisher.publish, hooks.check_prompt, allowed, token=self._now)
            or PromptCheck()
        )
        if check.refusal:
            rejected = InputRejected(filter=check.by, reason=check.refusal, source=source)
            self._agent.publisher.publish(rejected)
            return check.refusal
        return (allowed, *(user_message(text, "notice") for text in check.notices))

    async def deliver(self, boundary: str) -> bool:
        """Append the queued messages that were taken; False if there were none or all were rejected."""
        queue, delivered = self._agent.queue, False
        if queue.taken:
            # A rewind to before the message must not undo what was done before it.
            await self._agent.effects_published()
        while queue.taken:
            message = queue.taken[0]
            allowed = await self.checked(message, "follow_up" if message.kind == "follow_up" else "steering")
            # The user may have edited, moved or dropped it while the filters ran.
            if queue.taken[:1] != (message,):
                continue
            if isinstance(allowed, str):
                queue.drop(message.id, allowed)
            else:
                queue.commit(message, boundary)
                for each in allowed:
                    self._agent.add_message(each)
                delivered = True
        return delivered
