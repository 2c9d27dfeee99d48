"""A conversation as plain text: what a model is given to sum up, and what stands in where no model did."""

import json
from collections.abc import Iterable, Iterator, Sequence

from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)

RESULT_LETTERS = 600
"""Characters of one result that a transcript shows."""

ARGUMENT_LETTERS = 160
DIGEST_LINES = 60
"""Lines of a digest; the newest are kept."""


def shortened(text: str, limit: int, note: str = "…") -> str:
    """The head and the tail of a text with `note` between them, at most `limit` characters and the note; whole if it
    fits. Never cuts inside a surrogate pair, because Python text has none."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail]}{note}{text[len(text) - tail :]}"


def as_transcript(messages: Iterable[Message], limit: int) -> str:
    """The conversation line by line, to be summed up; past `limit` characters its middle is left out."""
    text = "\n".join(line for message in messages for line in _lines(message))
    return shortened(text, limit, "\n\n[… a part in the middle is left out …]\n\n")


def digest(messages: Sequence[Message]) -> str:
    """What happened, without a model: the agent's words cut short, and each call with how it went, newest last."""
    failed = {message.call_id for message in messages if isinstance(message, ToolResultMessage) and message.is_error}
    lines: list[str] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            if message.text.strip():
                lines.append(f"- said: {_in_one_line(message.text, ARGUMENT_LETTERS)}")
            lines += [f"- {_call(call)}{' (failed)' if call.id in failed else ''}" for call in message.tool_calls]
    left_out = len(lines) - DIGEST_LINES
    head = [f"- … {left_out} earlier lines are left out"] if left_out > 0 else []
    return "\n".join([*head, *lines[-DIGEST_LINES:]]) or "- nothing but words of the person"


def _lines(message: Message) -> Iterator[str]:
    match message:
        case UserMessage():
            yield f"{'Notice' if message.kind == 'notice' else 'Person'}: {_words(message)}"
        case AssistantMessage():
            if message.text.strip():
                yield f"Agent: {message.text}"
            yield from (f"→ {_call(call)}" for call in message.tool_calls)
        case ToolResultMessage():
            failed = " (error)" if message.is_error else ""
            yield f"← {message.tool_name}{failed}: {shortened(_words(message), RESULT_LETTERS, ' […] ')}"


def _words(message: UserMessage | ToolResultMessage) -> str:
    return "\n".join("[image]" if isinstance(block, ImageBlock) else block.text for block in message.content)


def _call(call: ToolCall) -> str:
    arguments = json.dumps(call.arguments, ensure_ascii=False, default=str)
    return f"{call.name} {_in_one_line(arguments, ARGUMENT_LETTERS)}"


def _in_one_line(text: str, limit: int) -> str:
    return shortened(" ".join(text.split()), limit)
