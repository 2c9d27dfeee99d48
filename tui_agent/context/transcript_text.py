"""A conversation as plain text: the transcript that a model summarises, and the digest made without a model."""

import json
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.protocol.messages import (
    AssistantMessage,
    DocumentBlock,
    ImageBlock,
    Message,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)

RESULT_LETTERS = 600
"""Maximum characters of one result in a transcript."""

ARGUMENT_LETTERS = 160
DIGEST_LINES = 60
"""Maximum lines of a digest; the newest are kept."""


def shortened(text: str, limit: int, note: str = "…") -> str:
    """Return the head and the tail of a text, `limit` characters in all, with `note` between them.

    A text is left whole up to `limit` plus the length of the note, so that shortening twice equals shortening once.
    """
    if len(text) <= limit + len(note):
        return text
    tail = limit // 3
    return f"{text[: limit - tail]}{note}{text[len(text) - tail :]}"


def as_transcript(messages: Iterable[Message], limit: int) -> str:
    """Return the conversation line by line; above `limit` characters without its middle."""
    text = "\n".join(line for message in messages for line in _lines(message))
    return shortened(text, limit, "\n\n[… a part in the middle is left out …]\n\n")


def digest(messages: Sequence[Message], limit: int) -> str:
    """Return a list of the agent's messages, shortened, and of its calls with their outcome, newest last.

    Keeps the newest lines, at most `limit` characters and `DIGEST_LINES` lines.
    """
    failed = {message.call_id for message in messages if isinstance(message, ToolResultMessage) and message.is_error}
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            if message.text.strip():
                lines.append(f"- said: {_in_one_line(message.text, ARGUMENT_LETTERS)}")
            lines += [f"- {_call(call)}{' (failed)' if call.id in failed else ''}" for call in message.tool_calls]
    kept = 0
    for line in reversed(lines[-DIGEST_LINES:]):
        limit -= len(line) + 1
        if limit < 0:
            break
        kept += 1
    head = [f"- … {len(lines) - kept} earlier lines are left out"] if kept < len(lines) else []
    return "\n".join([*head, *lines[len(lines) - kept :]]) or "- only user messages"


def _lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage(kind="command"):
            yield f"User ran a command: {shortened(_words(message), RESULT_LETTERS, ' […] ')}"
        case UserMessage():
            yield f"{'Notice' if message.kind == 'notice' else 'User'}: {_words(message)}"
        case AssistantMessage():
            if message.text.strip():
                yield f"Agent: {message.text}"
            yield from (f"→ {_call(call)}" for call in message.tool_calls)
        case ToolResultMessage():
            failed = " (error)" if message.is_error else ""
            yield f"← {message.tool_name}{failed}: {shortened(_words(message), RESULT_LETTERS, ' […] ')}"


def _words(message: UserMessage | ToolResultMessage) -> str:
    return "\n".join(map(block_text, message.content))


def block_text(block: UserBlock) -> str:
    """Return a text, or words in place of an image or a document."""
    match block:
        case ImageBlock():
            return "[image]"
        case DocumentBlock():
            return block.label
        case _:
            return block.text


def _call(call: ToolCall) -> str:
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return f"{call.name} {_in_one_line(arguments, ARGUMENT_LETTERS)}"


def _in_one_line(text: str, limit: int) -> str:
    return shortened(" ".join(text.split()), limit)
