"""Guesses tokens where no model has counted them yet: four letters to a token (S4-19).

No tokenizer is at hand offline; a guess is anchored on the provider's own counts as soon as there is one.
"""

import json
from collections.abc import Iterable

from tui_agent.protocol.messages import ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 250
"""What an image counts."""


def estimate_text(text: str) -> int:
    """Tokens of a text, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate_content(content: Iterable[TextBlock | ImageBlock | ThinkingBlock | ToolCall]) -> int:
    """Tokens of the blocks of one message."""
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
    """Tokens of one message as the model reads it; a result's details are never sent and count nothing."""
    return estimate_content(message.content)
