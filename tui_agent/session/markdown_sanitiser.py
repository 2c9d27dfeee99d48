"""Kept text on its way out to a reader of Markdown: nothing of it acts (promise 17).

What a person reads is left as it was written as far as that can be; code in Markdown is left alone altogether.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from tui_agent.protocol.visible_text import escaped, escapes_in

_OPENS_CODE = re.compile(r"(`{3,})[^`]*|(~{3,}).*")
_MAY_OPEN_CODE = re.compile(r" {1,3}(?:```|~~~)")
_TICKS = re.compile(r"`+")

_SAFE_TARGET = r"(?:https?://|mailto:|#|\.{0,2}/|[\w./-]+[)\s#?])"
"""How a link begins that does nothing but lead somewhere."""

_ACTS_IN_MARKDOWN = re.compile(
    rf"<(?=[A-Za-z/!?])|(?<=!)\[|(?<=\])\((?![ \t]*{_SAFE_TARGET})|(?<=\]):(?![ \t]*{_SAFE_TARGET})"
)


def sanitise_markdown(text: str) -> str:
    """Markdown without HTML, images and links that run something; nothing of it reaches into what follows.

    Where it cannot be told whether a block of code is left open, the whole text becomes a quotation, which ends.
    """
    lines = list(_inert_lines(escaped(text).split("\n")))
    return "\n".join(f"> {line}" for line in lines) if any(map(_MAY_OPEN_CODE.match, lines)) else "\n".join(lines)


def escape_label(text: str) -> str:
    """A name as one line that means nothing to Markdown."""
    return re.sub(r"[^\w .:/-]", "_", text).translate(dict.fromkeys(escapes_in(text), "_"))


def code_span(text: str) -> str:
    """A text as code inside a line of Markdown."""
    content = " ".join(escaped(text).split("\n"))
    longest = max((len(ticks) for ticks in _TICKS.findall(content)), default=0)
    fence, blank = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{blank}{content}{blank}{fence}"


def _inert_lines(lines: Iterable[str]) -> Iterator[str]:
    """Looks for blocks of code only where nothing else can be meant: from the first column."""
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
    """Paragraph by paragraph: code inside a line is only known where no line of its paragraph leaves one open."""
    for _, group in groupby(lines, key=lambda line: bool(line.strip())):
        paragraph = list(group)
        pieces = [_pieces(line) for line in paragraph]
        if any(found is None for found in pieces):
            yield from map(_inert_piece, paragraph)
            continue
        for found in pieces:
            yield "".join(text if is_code else _inert_piece(text) for text, is_code in found or ())


def _pieces(line: str) -> list[tuple[str, bool]] | None:
    """A line as prose and spans of code; None where a span begins that does not end, or that may be none."""
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
