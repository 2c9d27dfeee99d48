"""Packets between the server, the app's process and the page.

The app's side is that of Textual's web driver: a type (`D`: characters of the terminal, `M`: JSON), the size as four
bytes, and the payload; a line announces each app that begins, because questions before the chat are apps of their own.
The page's side is that of textual-serve's client: JSON lists such as `["stdin", "a"]`.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

LARGEST_SIZE = 1_000
"""Most columns and rows of a page; more are cut."""

_BEGINNING = b"__GANGLION__\n"
"""Line with which the web driver begins."""
_TYPES = (b"D", b"M", b"P")
_LARGEST_PACKET = 1 << 26
"""Size in bytes above which five bytes are not a header: those of ASCII text name a larger one."""
_LONGEST_PING = 64


@dataclass(frozen=True, slots=True)
class AppOutput:
    """A part of what the app's process writes."""

    kind: Literal["begins", "ended", "screen", "text"]
    """An app begins, it has ended, characters for the terminal, other text."""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class PageSize:
    """Size of the terminal in a page."""

    columns: int = 80
    rows: int = 24

    @classmethod
    def of(cls, columns: object, rows: object) -> "PageSize":
        """Return a size within the limits; a size that is not a number is that of a usual terminal."""
        return cls(_within(columns, 80), _within(rows, 24))

    @property
    def packet(self) -> bytes:
        """The packet that sends the size to the app."""
        return meta_packet(type="resize", width=self.columns, height=self.rows)


@dataclass(frozen=True, slots=True)
class PageInput:
    """A message of the page."""

    packet: bytes = b""
    """For the app; empty: nothing."""
    answer: str = ""
    """For the page; empty: nothing."""
    size: PageSize | None = None
    """The page's new size; None: unchanged."""


def read_page_message(text: str) -> PageInput | None:
    """Return what a message of the page means; None for anything that its client does not send."""
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match message:
        case ["stdin", str(typed)]:
            return PageInput(_packet(b"D", typed.encode("utf-8", "replace")))
        case ["resize", {"width": int(columns), "height": int(rows)}]:
            size = PageSize.of(columns, rows)
            return PageInput(size.packet, size=size)
        case ["ping", str(sent)]:
            return PageInput(answer=json.dumps(["pong", sent[:_LONGEST_PING]]))
        case ["focus" | "blur" as kind]:
            return PageInput(meta_packet(type=kind))
        case _:
            return None


def meta_packet(**fields: str | int) -> bytes:
    """Return a packet with JSON for the app."""
    return _packet(b"M", json.dumps(fields).encode())


async def read_app_output(stream: asyncio.StreamReader) -> AsyncIterator[AppOutput]:
    """Yield what an app's process writes, until it has closed its output."""
    while first := await stream.read(1):
        head = first
        try:
            if first not in _TYPES:
                line = first + await stream.readline()
                yield AppOutput("begins") if line == _BEGINNING else AppOutput("text", line)
                continue
            head += await stream.readexactly(4)
            size = int.from_bytes(head[1:], "big")
            if size > _LARGEST_PACKET:
                yield AppOutput("text", head)
                continue
            payload = await stream.readexactly(size)
        except (asyncio.IncompleteReadError, ValueError):
            return
        if first == b"D":
            yield AppOutput("screen", payload)
        elif first == b"M" and _is_end(payload):
            yield AppOutput("ended")


def _packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def _is_end(payload: bytes) -> bool:
    try:
        message: Any = json.loads(payload)
    except ValueError:
        return False
    match message:
        case {"type": "exit"}:
            return True
        case _:
            return False


def _within(value: object, otherwise: int) -> int:
    try:
        number = int(value) if isinstance(value, str | int) else otherwise
    except ValueError:
        number = otherwise
    return min(max(number, 1), LARGEST_SIZE)
