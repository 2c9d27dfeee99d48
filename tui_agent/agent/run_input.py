"""The input of a run, and the messages made from it (S4-38)."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypeGuard

from tui_agent.execution.json_coercion import whole_block
from tui_agent.protocol.errors import ConfigurationError
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
