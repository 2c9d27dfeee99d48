"""Text of a session as inert Markdown, without HTML, images and dangerous links (safety promise 17).

Prose stays as it is as far as possible; code in Markdown is not changed at all.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from tui_agent.protocol.visible_text import escaped, escapes_in

_OPENS_CODE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_MAY_OPEN_CODE = re.compile(r" {1,3}(?:```|~~~)")
_TICKS = re.compile(r"`+")

_SAFE_TARGET = r"(?:https?://|mailto:|#|\.{0,2}/|[\w./-]+[)\s#?])"
"""Matches the beginning of a harmless link target."""

_ACTS_IN_MARKDOWN = re.compile(
    rf"<(?=[A-Za-z/!?])|(?<=!)\[|(?<=\])\((?![ \t]*{_SAFE_TARGET})|(?<=\]):(?![ \t]*{_SAFE_TARGET})"
)


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
    longest = max((len(ticks) for ticks in _TICKS.findall(content)), default=0)
    fence, blank = "`" * (longest + 1), " " if longest else ""
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
