"""Files that are sent as blocks, images and PDF files, read for a call or for a message of the user."""

import asyncio
import base64
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, JsonObject, TextBlock, UserBlock
from tui_agent.protocol.prompt_references import PDF, media_type_of
from tui_agent.protocol.regular_file import FileReader
from tui_agent.tools.text_format import counted

from .image_files import load_image, refuse_large_image

PDF_LIMIT = 20_000_000
"""Most bytes of a PDF: as base64 text it leaves room for a conversation in a request of 32 MB, the API's limit."""

PAGE_LIMIT = 100
"""Most pages of a PDF, the API's limit for a window of 200,000 tokens."""

_SMALLER = "split it, or extract its text"
_ENCRYPTED = re.compile(rb"/Encrypt\s*(?:\d+\s+\d+\s+R|<<)")
_PAGE_TREE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,9})")
_OBJECT = re.compile(rb"(?<!end)obj\b")
_FACTS_OF_STREAM = re.compile(rb"/(N|First)\s+(\d{1,9})")
_NEAR = 1_000
"""Most bytes between the parts of a stream's dictionary."""
_PACKED_OBJECTS = re.compile(rb"/ObjStm\b")
_NUMBER = re.compile(rb"\b\d{1,9}\b")
_CHUNK = 4 * 1024
_MOST_UNPACKED = 64 * 1024 * 1024
_MOST_PACKED = 2 * PDF_LIMIT
"""Most bytes read for compressed objects. Those of a sound file do not overlap."""
_MOST_NUMBERS = 200_000
"""Most numbers and places of the objects of one compressed stream."""


def refuse_large_pdf(size: int, shown: str) -> None:
    """Refuse a PDF that is too long for a request.

    Raises:
        ToolError: it is.
    """
    if size > PDF_LIMIT:
        raise ToolError(f"{shown} is a PDF of {size:,} bytes; the limit is {PDF_LIMIT:,}: {_SMALLER}")


def pdf_block(content: bytes, name: str, shown: str) -> DocumentBlock:
    """Return a PDF as a block. Blocks: it reads the whole file.

    It is checked here because a file that the API refuses would make every later request fail.

    Raises:
        ToolError: it is incomplete or encrypted, or has too many pages.
    """
    # Some programs append bytes behind the end.
    if b"%%EOF" not in content[-2_048:]:
        raise ToolError(f"{shown} begins like a PDF, but is damaged or incomplete: it has no end")
    if _ENCRYPTED.search(content):
        raise ToolError(
            f"{shown} is encrypted, and the model takes only PDF files without a password: decrypt it first"
        )
    pages = count_pages(content)
    if pages > PAGE_LIMIT:
        raise ToolError(f"{shown} has {pages:,} pages; the limit is {PAGE_LIMIT}: {_SMALLER}")
    data = base64.b64encode(content).decode("ascii")
    return DocumentBlock(media_type="application/pdf", data=data, name=name, pages=pages)


def count_pages(content: bytes) -> int:
    """Return the number of pages of a PDF; 0 if it is not known."""
    counts = [0]
    leaves = 0
    for part in _objects(content):
        if _PAGE_TREE.search(part) is not None:
            counts += [int(match[1]) for match in _COUNT.finditer(part)]
        elif _PAGE.search(part) is not None:
            leaves += 1
    # The root of the tree counts all pages; a file without a readable tree has them one by one.
    return max(counts) or leaves


def _objects(content: bytes) -> Iterator[bytes]:
    """Yield the objects without their streams, also those in compressed streams."""
    starts = (match.end() for match in _OBJECT.finditer(content))
    for start, end in pairwise(chain(starts, (len(content),))):
        yield content[start:end].partition(b"stream")[0].partition(b"endobj")[0]
    room, unread = _MOST_UNPACKED, _MOST_PACKED
    for match in _PACKED_OBJECTS.finditer(content):
        unpacked, facts, read = _unpacked(content, match.start(), room)
        room, unread = room - len(unpacked), unread - max(read, _CHUNK)
        yield from _packed_objects(unpacked, facts.get(b"First", 0))
        if room <= 0 or unread <= 0:
            break


def _packed_objects(unpacked: bytes, first: int) -> Iterator[bytes]:
    """Yield the objects of a compressed stream, whose numbers and places are written before `first`."""
    numbers = [int(match[0]) for match in islice(_NUMBER.finditer(unpacked, 0, first), _MOST_NUMBERS)]
    # In order, as hostile ones that lead back and forth would have the same bytes again and again.
    edges = sorted(min(first + offset, len(unpacked)) for offset in numbers[1::2])
    for start, end in pairwise((*edges, len(unpacked))):
        yield unpacked[start:end]


def _unpacked(content: bytes, place: int, room: int) -> tuple[bytes, dict[bytes, int], int]:
    """Return the content of the stream around `place`, the facts in its dictionary, and the bytes read for it."""
    begin = max(content.rfind(b"obj", max(0, place - _NEAR), place), 0)
    end = content.find(b"stream", place, place + _NEAR)
    if end < 0:
        return b"", {}, 0
    facts = {match[1]: int(match[2]) for match in _FACTS_OF_STREAM.finditer(content[begin:end])}
    start = end + len(b"stream")
    start += 2 if content[start : start + 2] == b"\r\n" else 1
    unpacker, parts, place = zlib.decompressobj(), list[bytes](), start
    try:
        # In pieces: the unpacker copies what follows the stream.
        while place < len(content) and room > 0 and not unpacker.eof:
            parts.append(unpacker.decompress(content[place : place + _CHUNK], room))
            room -= len(parts[-1])
            place += _CHUNK
    except zlib.error:
        return b"", facts, place - start
    return b"".join(parts), facts, place - start


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file as a block."""

    block: ImageBlock | DocumentBlock
    content: bytes
    """The file as it is on disk."""
    size: str
    """Its extent: `640×480`, or `12 pages`; empty if it is not known."""
    words: str
    """Its facts in words: `image/png, 640×480 pixels, 1,234 bytes`."""
    details: JsonObject


async def load_media(
    file: FileReader,
    status: os.stat_result,
    start: bytes,
    media_type: str,
    shown: str,
    cancellation: CancellationToken,
) -> MediaFile:
    """Return an open file, of which `start` was read, as a block that the API accepts.

    Raises:
        ToolError: it is damaged, or beyond the limits.
        OperationCancelledError: the call was cancelled.
        OSError: it cannot be read.
    """
    refuse = refuse_large_pdf if media_type == PDF else refuse_large_image
    refuse(status.st_size, shown)
    return await media_of(start + await file.read(status.st_size + 1), media_type, shown, cancellation)


async def media_of(content: bytes, media_type: str, shown: str, cancellation: CancellationToken) -> MediaFile:
    """Return the content of a file as a block that the API accepts; raises like `load_media`."""
    refuse = refuse_large_pdf if media_type == PDF else refuse_large_image
    # It may have grown since its size was read.
    refuse(len(content), shown)
    if media_type == PDF:
        return await _pdf(content, shown)
    return await _image(content, media_type, shown, cancellation)


async def _pdf(content: bytes, shown: str) -> MediaFile:
    block = await asyncio.to_thread(pdf_block, content, Path(shown).name, shown)
    size = counted(block.pages, "page") if block.pages else ""
    facts = ", ".join(("PDF", *([size] if size else [])))
    details: JsonObject = {"outcome": facts, "media_type": PDF, "pages": block.pages}
    return MediaFile(block, content, size, f"{facts}, {len(content):,} bytes", details)


async def _image(content: bytes, media_type: str, shown: str, cancellation: CancellationToken) -> MediaFile:
    image = await load_image(content, media_type, shown, cancellation)
    facts = f"{image.block.media_type}, {image.width}×{image.height} pixels"
    details: JsonObject = {
        "outcome": facts,
        "media_type": image.block.media_type,
        "width": image.width,
        "height": image.height,
    }
    words = f"{facts}, {image.note or f'{len(content):,} bytes'}"
    return MediaFile(image.block, content, f"{image.width}×{image.height}", words, details)


async def check_media(block: ImageBlock | DocumentBlock) -> UserBlock:
    """Return an image or a PDF of a tool server as `read` returns that of a file, with its real type and scaled; or
    words in its place."""
    content = await asyncio.to_thread(base64.b64decode, block.data)
    what = "image" if isinstance(block, ImageBlock) else "PDF"
    kind = media_type_of(content[:16])
    if kind is None:
        words = f"[{what}, {len(content):,} bytes: neither PNG nor JPEG, GIF or WebP, so it is left out]"
        return TextBlock(text=words)
    try:
        return (await media_of(content, kind, block.name or f"the {what}", CancellationToken())).block
    except ToolError as error:
        return TextBlock(text=f"[{error}]")
