"""Token estimates: four characters to a token (S4-19).

No tokenizer is available offline. `ConversationHistory` anchors its estimate on the provider's counts once it has one.
"""

import json
from collections.abc import Iterable

from tui_agent.protocol.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 250
"""Estimate for an image."""


def estimate_text(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate_content(content: Iterable[TextBlock | ImageBlock | ThinkingBlock | ToolCall]) -> int:
    """Return the estimated tokens of the blocks of one message."""
    tokens = letters = 0
    for block in content:
        match block:
            case TextBlock():
                letters += len(block.text)
            case ImageBlock():
                tokens += MEDIA_TOKENS
            case ThinkingBlock():
                letters += len(block.thinking) + len(block.redacted or "")
            case ToolCall():
                letters += len(block.name) + len(json.dumps(block.arguments, default=str))
    return tokens - (-letters // CHARACTERS_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of one message. A result's details are not counted: they are never sent."""
    return estimate_content(message.content)
