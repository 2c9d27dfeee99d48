"""Export of a session as Markdown, as an HTML page, or as its events."""

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from tui_agent.protocol.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserBlock,
    UserMessage,
)
from tui_agent.protocol.visible_text import escaped, escaped_json

from .markdown_sanitiser import code_span, escape_label, sanitise_markdown
from .stored_session import StoredSession

ExportFormat: TypeAlias = Literal["md", "html", "jsonl"]


def export_session(session: StoredSession, export_format: ExportFormat) -> str:
    """Return the session as text that ends with a line feed.

    `md` and `html` contain the conversation as the model sees it, without reasoning; `jsonl` contains every readable
    event. The text is inert in a terminal and in readers of its format: no control characters, scripts or HTML.
    """
    match export_format:
        case "md":
            return to_markdown(session)
        case "html":
            return to_html(session)
        case "jsonl":
            return "".join(f"{escaped_json(envelope.to_json())}\n" for envelope in session.envelopes)
        case _:
            assert_never(export_format)


def to_markdown(session: StoredSession) -> str:
    """Return the session as Markdown: prose as inert Markdown, calls and results in fences that their content cannot
    close."""
    lines = [f"# Session {session.id}", "", f"Directory: {code_span(str(session.cwd))}", ""]
    for part in _parts(session.messages):
        if part.heading:
            lines += [f"## {part.heading}", ""]
        lines += [_fenced(part) if part.literal else sanitise_markdown(part.text), ""]
    return "\n".join(lines)


def to_html(session: StoredSession) -> str:
    """Return the session as one HTML page without scripts, images or external resources."""
    title = html.escape(f"Session {session.id}")
    body = [f"<h1>{title}</h1>", f"<p>Directory: <code>{_escaped(str(session.cwd))}</code></p>"]
    for part in _parts(session.messages):
        if part.heading:
            body.append(f"<h2>{html.escape(part.heading)}</h2>")
        if part.label:
            body.append(f"<h3>{_escaped(part.label)}</h3>")
        body.append(f"<pre>{_escaped(part.text)}</pre>")
    head = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        "<style>:root { color-scheme: light dark; } body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; "
        "font-family: system-ui, sans-serif; } pre { white-space: pre-wrap; overflow-wrap: anywhere; }</style>\n</head>"
    )
    return "\n".join([head, "<body>", *body, "</body>", "</html>", ""])


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the conversation."""

    text: str
    heading: str = ""
    """Speaker, if it differs from that of the part before."""
    label: str = ""
    """Label of a literal part."""
    literal: bool = False


def _parts(messages: Iterable[Message]) -> Iterator[_Part]:
    """Yield the parts of the conversation, with a heading where the speaker changes."""
    speaker = ""
    for message in messages:
        for part in _parts_of(message):
            who = _speaker_of(message)
            yield _Part(part.text, who if who != speaker else "", part.label, part.literal)
            speaker = who


def _speaker_of(message: Message) -> str:
    if isinstance(message, UserMessage):
        return "Notice" if message.kind == "notice" else "You"
    return "Assistant"


def _parts_of(message: Message) -> Iterator[_Part]:
    match message:
        case UserMessage():
            yield _Part(_words(message.content))
        case ToolResultMessage():
            label = f"{message.tool_name} failed" if message.is_error else f"{message.tool_name} returned"
            yield _Part(_words(message.content), label=label, literal=True)
        case AssistantMessage():
            for block in message.content:
                match block:
                    case TextBlock(text=text):
                        yield _Part(text)
                    case ToolCall():
                        arguments = json.dumps(block.arguments, ensure_ascii=False, indent=2)
                        yield _Part(arguments, label=f"calls {block.name}", literal=True)
                    case ThinkingBlock():
                        pass


def _words(content: Iterable[UserBlock]) -> str:
    """Return the text of a message, with the media type in place of an image."""
    return "\n".join(
        f"[image, {block.media_type}]" if isinstance(block, ImageBlock) else block.text for block in content
    )


def _fenced(part: _Part) -> str:
    """Return a literal part with its label, in a fence longer than any run of backticks in it."""
    text = escaped(part.text)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"**{escape_label(part.label)}**\n\n{fence}\n{text}\n{fence}"


def _escaped(text: str) -> str:
    return html.escape(escaped(text))
