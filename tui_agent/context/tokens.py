"""Token estimates: four characters to a token (S4-19).

No tokenizer is available offline. `ConversationHistory` anchors its estimate on the provider's counts once it has one.
"""

import json
from collections.abc import Iterable

from tui_agent.protocol.messages import DocumentBlock, ImageBlock, Message, TextBlock, ThinkingBlock, ToolCall

CHARACTERS_PER_TOKEN = 4
MEDIA_TOKENS = 250
"""Estimate for an image."""
PAGE_TOKENS = 2_000
"""Estimate for a page of a PDF, which the model reads as text and as a picture."""
PAGE_BYTES = 50_000
"""Bytes of a page of a PDF whose pages cannot be counted."""


def estimate_text(text: str) -> int:
    """Return the estimated tokens of a text, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def estimate_content(content: Iterable[TextBlock | ImageBlock | DocumentBlock | ThinkingBlock | ToolCall]) -> int:
    """Return the estimated tokens of the blocks of one message."""
    tokens = letters = 0
    for block in content:
        match block:
            case TextBlock():
                letters += len(block.text)
            case ImageBlock():
                tokens += MEDIA_TOKENS
            case DocumentBlock(media_type="text/plain"):
                letters += len(block.name) + len(block.data)
            case DocumentBlock():
                tokens += PAGE_TOKENS * (block.pages or 1 + len(block.data) * 3 // 4 // PAGE_BYTES)
            case ThinkingBlock():
                letters += len(block.thinking) + len(block.redacted or "")
            case ToolCall():
                letters += len(block.name) + len(json.dumps(block.arguments, default=str))
    return tokens - (-letters // CHARACTERS_PER_TOKEN)


def estimate_message(message: Message) -> int:
    """Return the estimated tokens of one message. A result's details are not counted: they are never sent."""
    return estimate_content(message.content)
