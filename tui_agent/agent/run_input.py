"""What a run may be started with, and the messages it becomes (S4-38)."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

from tui_agent.execution.plain_json import whole_text
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ToolResultMessage,
    UserBlock,
    UserMessage,
    user_message,
)
from tui_agent.protocol.value_checks import shown_value

UserInput: TypeAlias = str | UserMessage | Sequence[UserBlock | Message] | None
"""Text, a message, blocks of one message, or whole messages; None: go on with what is there."""

Trigger = Literal["prompt", "continue", "resume", "follow_up", "subagent", "schedule", "command"]
"""Why a run was started."""

GO_ON = "Please go on."
"""Said for the person when a run is to continue where nothing else was said."""


def as_messages(user_input: UserInput) -> tuple[Message, ...]:
    """The messages an input stands for; none for None.

    Raises:
        ConfigurationError: there is nothing in it to say, it is of another kind, or blocks and messages are mixed.
    """
    if user_input is None:
        return ()
    if isinstance(user_input, str | UserMessage):
        return (as_user_message(user_input),)
    for part in user_input if _is_list(user_input) else (user_input,):
        if not isinstance(part, TextBlock | ImageBlock | UserMessage | AssistantMessage | ToolResultMessage):
            words = "a run is started with text, a message, or a list of blocks or messages"
            raise ConfigurationError(f"{words}, got {shown_value(part)}")
    blocks = [part for part in user_input if isinstance(part, TextBlock | ImageBlock)]
    messages = [part for part in user_input if isinstance(part, UserMessage | AssistantMessage | ToolResultMessage)]
    if blocks and messages:
        raise ConfigurationError("a run is started with blocks or with messages, not with both at once")
    if not messages:
        return (as_user_message(UserMessage(content=tuple(blocks))),)
    return tuple(_whole(part) if isinstance(part, UserMessage) else part for part in messages)


def as_user_message(said: str | UserMessage) -> UserMessage:
    """What a person said, as a message; halves of characters, which nobody could keep or send, are replaced.

    Raises:
        ConfigurationError: there is nothing in it.
    """
    message = _whole(user_message(said) if isinstance(said, str) else said)
    if not message.text.strip() and not any(isinstance(block, ImageBlock) for block in message.content):
        raise ConfigurationError("an empty message cannot be sent; nothing was done")
    return message


def text_of(messages: Sequence[Message]) -> str:
    """What a person said in them, for the journal and the report."""
    return "\n".join(message.text for message in messages if isinstance(message, UserMessage))


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, bytes)


def _whole(message: UserMessage) -> UserMessage:
    content = tuple(
        TextBlock(text=whole_text(part.text)) if isinstance(part, TextBlock) else part for part in message.content
    )
    return message if content == message.content else message.model_copy(update={"content": content})
