"""Export of a session as Markdown, as an HTML page, or as its events.

The text of a session becomes inert Markdown, without HTML, images and dangerous links (safety promise 17). Prose stays
as it is as far as possible; code in Markdown is not changed at all.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, TypeAlias, assert_never

from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from tui_agent.protocol.visible_text import code_fence, escaped, escaped_json, escapes_in

from .html_export import block_words, speaker_of, to_html
from .stored_session import StoredSession

ExportFormat: TypeAlias = Literal["md", "html", "jsonl"]

_OPENS_CODE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_MAY_OPEN_CODE = re.compile(r" {1,3}(?:```|~~~)")
_TICKS = re.compile(r"`+")

_SAFE_TARGET = r"(?:https?://|mailto:|#|\.{0,2}/|[\w./-]+[)\s#?])"
"""Matches the beginning of a harmless link target."""

_ACTS_IN_MARKDOWN = re.compile(
    rf"<(?=[A-Za-z/!?])|(?<=!)\[|(?<=\])\((?![ \t]*{_SAFE_TARGET})|(?<=\]):(?![ \t]*{_SAFE_TARGET})"
)


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
            # Escapes of JSON: inert in a terminal, and the same text for a program.
            return "".join(f"{escaped_json(envelope.to_json())}\n" for envelope in session.envelopes)
        case _:
            assert_never(export_format)


def to_markdown(session: StoredSession) -> str:
    """Return the session as Markdown: prose as inert Markdown, calls and results in fences that their content cannot
    close."""
    lines = [f"# Session {session.id}", "", f"Directory: {code_span(str(session.cwd))}", ""]
    speaker = ""
    for message in session.messages:
        for label, text in _parts_of(message):
            if (who := speaker_of(message)) != speaker:
                lines += [f"## {who}", ""]
            speaker = who
            lines += [_fenced(label, text) if label else sanitise_markdown(text), ""]
    return "\n".join(lines)


def _parts_of(message: Message) -> Iterator[tuple[str, str]]:
    """Yield the parts of a message, each with its label; prose has none."""
    match message:
        case UserMessage():
            yield "", block_words(message.content)
        case ToolResultMessage():
            label = f"{message.tool_name} failed" if message.is_error else f"{message.tool_name} returned"
            yield label, block_words(message.content)
        case AssistantMessage():
            for block in message.content:
                match block:
                    case TextBlock(text=text):
                        yield "", text
                    case ToolCall():
                        arguments = json.dumps(block.arguments, ensure_ascii=False, indent=2)
                        yield f"calls {block.name}", arguments
                    case ThinkingBlock():
                        pass


def _fenced(label: str, text: str) -> str:
    """Return a literal part with its label, in a fence longer than any run of backticks in it."""
    text = escaped(text)
    fence = code_fence(text, 3)
    return f"**{escape_label(label)}**\n\n{fence}\n{text}\n{fence}"


def sanitise_markdown(text: str) -> str:
    """Return Markdown without HTML, images and links that run something, and without effect on the text after it.

    If it is unclear whether a code block stays open, the whole text becomes a quotation, which ends with the text.
    """
    lines = list(_inert_lines(escaped(text).split("\n")))
    return "\n".join(f"> {line}" for line in lines) if any(map(_MAY_OPEN_CODE.match, lines)) else "\n".join(lines)


def escape_label(text: str) -> str:
    """Return a name in one line without Markdown syntax."""
    return re.sub(r"[^\w .:/-]", "_", text).translate(dict.fromkeys(escapes_in(text), "_"))


def code_span(text: str) -> str:
    """Return a text as an inline code span."""
    content = " ".join(escaped(text).split("\n"))
    fence = code_fence(content, 1)
    blank = " " if "`" in content else ""
    return f"{fence}{blank}{content}{blank}{fence}"


def _inert_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, prose made inert. Only fences in the first column count as code blocks: others are ambiguous."""
    closing: re.Pattern[str] | None = None
    fence = ""
    prose: list[str] = []
    for line in lines:
        if closing is not None:
            yield line
            closing = None if closing.fullmatch(line) else closing
        elif opened := _OPENS_CODE.fullmatch(line):
            yield from _inert_prose(prose)
            prose = []
            fence = opened[1] or opened[2]
            closing = re.compile(rf" {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*")
            yield line
        else:
            prose.append(line)
    yield from _inert_prose(prose)
    # What follows the text on the page must not become part of an open block.
    if closing is not None:
        yield fence


def _inert_prose(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of prose made inert. Code spans count only in paragraphs in which every line closes its spans."""
    for _, group in groupby(lines, key=lambda line: bool(line.strip())):
        paragraph = list(group)
        pieces = [_pieces(line) for line in paragraph]
        if any(found is None for found in pieces):
            yield from map(_inert_piece, paragraph)
            continue
        for found in pieces:
            yield "".join(text if is_code else _inert_piece(text) for text, is_code in found or ())


def _pieces(line: str) -> list[tuple[str, bool]] | None:
    """Split a line into prose and code spans; None if a span does not end or is ambiguous."""
    if "\\`" in line:
        return None
    pieces: list[tuple[str, bool]] = []
    place = 0
    while opened := _TICKS.search(line, place):
        closed = next((ticks for ticks in _TICKS.finditer(line, opened.end()) if ticks[0] == opened[0]), None)
        if closed is None:
            return None
        pieces += [(line[place : opened.start()], False), (line[opened.start() : closed.end()], True)]
        place = closed.end()
    return [*pieces, (line[place:], False)]


def _inert_piece(text: str) -> str:
    return _ACTS_IN_MARKDOWN.sub(lambda match: "&lt;" if match[0] == "<" else f"\\{match[0]}", text)
