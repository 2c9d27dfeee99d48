"""Files that are sent as blocks, images and PDF files, read for a call or for a message of the user."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import DocumentBlock, ImageBlock, JsonObject
from tui_agent.tools.text_format import counted

from .image_files import image_type, load_image, refuse_large_image
from .pdf_files import is_pdf, pdf_block, refuse_large_pdf

if TYPE_CHECKING:
    from aiofiles.threadpool.binary import AsyncBufferedReader

PDF = "application/pdf"


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
    """The facts as data."""


def media_type_of(sample: bytes) -> str | None:
    """Return the media type of a file that begins with `sample`; None if it is not sent as a block."""
    return PDF if is_pdf(sample) else image_type(sample)


async def load_media(
    file: "AsyncBufferedReader",
    status: os.stat_result,
    start: bytes,
    media_type: str,
    shown: str,
    cancellation: CancellationToken,
) -> MediaFile:
    """Return an open file as a block that the API accepts.

    Args:
        file: the file, of which `start` was read.
        status: its `fstat`.
        start: its first bytes.
        media_type: the result of `media_type_of`.
        shown: its name for messages.
        cancellation: ends the work.

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
