"""The input of a run (S4-38): converted to messages, checked, filtered, and appended in order, each message once."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

from tui_agent.context import SYSTEM_LAYER, write_layer
from tui_agent.execution.contained_calls import Crash, asked
from tui_agent.execution.json_coercion import whole_block
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import InputRejected, InputSource
from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    user_message,
)
from tui_agent.protocol.value_checks import expect_items, expect_kind

from .agent_state import OWNER, AgentState
from .guardrails import PromptCheck, ask_run_hooks, filtered
from .stop_tokens import unless_cancelled

UserInput: TypeAlias = str | UserMessage | Sequence[str | UserBlock | Message] | None
"""Text, a message, a list of texts and blocks of one message, or a list of whole messages; None: continue the
conversation."""

Trigger = Literal["prompt", "continue", "resume", "follow_up", "subagent", "schedule", "command"]
"""The reason why a run was started."""

CONTINUE_TEXT = "Please continue."
"""Sent on behalf of the user when a run continues without input."""


def as_messages(user_input: UserInput) -> tuple[Message, ...]:
    """Return the messages of an input; none for None.

    Raises:
        ConfigurationError: it is empty, mixes blocks and messages, or is something else.
    """
    if user_input is None:
        return ()
    if isinstance(user_input, str | UserMessage):
        return (as_user_message(user_input),)
    parts = expect_items(
        "the input of a run", user_input, _expect_part, "text, a message, or a list of blocks or messages"
    )
    blocks = [TextBlock(text=part) if isinstance(part, str) else part for part in parts if not _is_message(part)]
    messages = [part for part in parts if _is_message(part)]
    if blocks and messages:
        raise ConfigurationError("a run is started with blocks or with messages, not with both at once")
    if not messages:
        return (as_user_message(UserMessage(content=tuple(blocks))),)
    return tuple(_whole(part) if isinstance(part, UserMessage) else part for part in messages)


def as_user_message(said: str | UserMessage) -> UserMessage:
    """Return the user's input as a message; lone surrogates, which cannot be stored or sent, are replaced.

    Raises:
        ConfigurationError: it is empty or of another type.
    """
    expect_kind("a message", said, (str, UserMessage), "text or a UserMessage")
    message = _whole(user_message(said) if isinstance(said, str) else said)
    if not message.text.strip() and not any(isinstance(block, ImageBlock | DocumentBlock) for block in message.content):
        raise ConfigurationError("an empty message cannot be sent; nothing was done")
    return message


def text_of(messages: Sequence[Message]) -> str:
    """Return the user's text in these messages, for the journal and the report."""
    return "\n".join(message.text for message in messages if isinstance(message, UserMessage))


def _is_message(part: object) -> TypeGuard[Message]:
    return isinstance(part, UserMessage | AssistantMessage | ToolResultMessage)


def _expect_part(name: str, part: object) -> None:
    if not _is_message(part):
        expect_kind(name, part, (str, TextBlock, ImageBlock, DocumentBlock), "text, a block or a message")


def _whole(message: UserMessage) -> UserMessage:
    content = tuple(map(whole_block, message.content))
    return message if content == message.content else message.model_copy(update={"content": content})


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

    async def refresh_system(self) -> str | None:
        """Call a system text that is a function; the layer changes only if the text did (S4-36).

        Returns:
            Why it failed; None if it did not.

        Raises:
            OperationCancelledError: the run was stopped first.
        """
        system = self._agent.config.system
        if isinstance(system, str):
            return None
        text = await unless_cancelled(self._now, asked(system, timeout=None))
        if isinstance(text, Crash):
            return text.text
        write_layer(self._agent.history.registry, SYSTEM_LAYER, str(text), OWNER)
        return None

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
        # Notices come from the program: a hook on prompts has nothing to say about them.
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
        """Append the queued messages that were taken; False if there were none or all were rejected.

        `boundary` names this point of the run in `steering.delivered`.

        Raises:
            OperationCancelledError: the run must end; messages that were not delivered stay taken.
        """
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
