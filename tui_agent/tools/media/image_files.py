"""Image files as blocks: recognised by content, measured, and scaled to the limits of the API if Pillow is installed.

A program of its own decodes images: a hostile one can take much time and memory, and Pillow stays out of this process.
"""

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import ImageBlock, JsonObject
from tui_agent.protocol.programs import install_command
from tui_agent.tools.processes.process import run_worker
from tui_agent.tools.search.file_listing import BoundedBytes

IMAGE_LIMIT = 3_750_000
"""Most bytes of an image: as base64 text it has 5 MB, the limit of the Messages API."""

SIDE_LIMIT = 8_000
"""Most pixels per side of an image, a limit of the same API."""

SCALED_SIDE = 2_000
"""Most pixels per side after scaling: the API's limit for a request with more than 20 images."""

SOURCE_LIMIT = 50_000_000

MOST_PIXELS = 64_000_000
"""Most pixels of an image: a small file can have far more than memory holds."""

SCALING_TIME = 20.0

_WORKER = Path(__file__).with_name("image_worker.py")
_FACTS_SIZE = 64_000
_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))


@dataclass(frozen=True, slots=True)
class LoadedImage:
    """An image that the API accepts."""

    block: ImageBlock
    width: int
    """Pixels, after scaling."""
    height: int
    note: str = ""
    """Changes by scaling, in words; empty if there are none."""


def images_extra() -> str:
    """Return the name of the extra with the packages that scale images, and its command."""
    return f"the extra `images` ({install_command('images')})"


@cache
def can_scale_images() -> bool:
    """Return True if Pillow is installed, the package of the extra `images`."""
    return find_spec("PIL") is not None


def largest_image() -> int:
    """Return the most bytes of an image file: more with Pillow, which can scale it."""
    return SOURCE_LIMIT if can_scale_images() else IMAGE_LIMIT


def refuse_large_image(size: int, shown: str) -> None:
    """Refuse an image file that is too long to be read.

    Raises:
        ToolError: it is.
    """
    if size > largest_image():
        raise ToolError(f"{shown} is an image of {size:,} bytes; the limit is {largest_image():,}: {_what_to_do()}")


async def load_image(content: bytes, media_type: str, shown: str, cancellation: CancellationToken) -> LoadedImage:
    """Return an image, of the type of `image_type`, as a block that the API accepts.

    A bad one would make every later request fail.

    Raises:
        ToolError: the image is damaged, or too large and cannot be scaled.
        OperationCancelledError: the call was cancelled.
    """
    width, height = size_of_image(content, media_type, shown)
    pixels = f"{shown} has {width:,}×{height:,} pixels"
    if width * height > MOST_PIXELS:
        raise ToolError(f"{pixels}; the limit is {MOST_PIXELS:,} in all: resize the image first")
    is_sound = len(content) <= IMAGE_LIMIT and max(width, height) <= SIDE_LIMIT
    if can_scale_images():
        scaled = await _scaled(content, media_type, shown, cancellation)
        if scaled is not None:
            return scaled
        if not is_sound:
            raise ToolError(f"{pixels} and {len(content):,} bytes, and scaling it failed: resize the image first")
    elif not is_sound:
        raise ToolError(f"{pixels}; the limit is {SIDE_LIMIT:,} per side: {_what_to_do()}")
    data = await asyncio.to_thread(base64.b64encode, content)
    return LoadedImage(ImageBlock(media_type=media_type, data=data.decode("ascii")), width, height)


def size_of_image(content: bytes, media_type: str, shown: str) -> tuple[int, int]:
    """Return width and height in pixels, from the header alone.

    Raises:
        ToolError: the image is damaged.
    """
    try:
        width, height = _SIZES[media_type](content)
    except (IndexError, ValueError):
        width = height = 0
    if not width or not height:
        raise ToolError(f"{shown} begins like {media_type}, but is damaged or incomplete: its size cannot be read")
    return width, height


def _what_to_do() -> str:
    extra = "" if can_scale_images() else f", or install {images_extra()}, which lets tui-agent scale images"
    return f"resize the image first{extra}"


async def _scaled(content: bytes, media_type: str, shown: str, cancellation: CancellationToken) -> LoadedImage | None:
    """Return an image with a thumbnail, scaled if it has to be; None if the program that does it failed."""
    output = BoundedBytes(IMAGE_LIMIT + _FACTS_SIZE)
    try:
        arguments, errors = (media_type, str(SCALED_SIDE), str(IMAGE_LIMIT)), BoundedBytes(_FACTS_SIZE)
        outcome = await run_worker(_WORKER, arguments, content, output, errors, SCALING_TIME, cancellation)
    except OSError:
        # Without the program, an image within the limits is sent as it is.
        return None
    cancellation.raise_if_set()
    head, _, image = bytes(output.data).partition(b"\n")
    if outcome.ending != "exited" or outcome.returncode != 0:
        return None
    facts: JsonObject = json.loads(head)
    if "error" in facts:
        raise ToolError(f"{shown} begins like {media_type}, but is damaged or incomplete: {facts['error']}")
    data = (await asyncio.to_thread(base64.b64encode, image or content)).decode("ascii")
    block = ImageBlock(media_type=facts["media_type"], data=data, thumbnail=facts["thumbnail"])
    return LoadedImage(block, facts["width"], facts["height"], facts["note"])


def _number(content: bytes, start: int, length: int, order: str = "big") -> int:
    part = content[start : start + length]
    if len(part) < length:
        raise IndexError(start)
    return int.from_bytes(part, "little" if order == "little" else "big")


def _png_size(content: bytes) -> tuple[int, int]:
    # The header alone is there in a file that was cut, too.
    if content[12:16] != b"IHDR" or b"IEND" not in content[-16:]:
        raise ValueError("no header or no end")
    return _number(content, 16, 4), _number(content, 20, 4)


def _gif_size(content: bytes) -> tuple[int, int]:
    return _number(content, 6, 2, "little"), _number(content, 8, 2, "little")


def _jpeg_size(content: bytes) -> tuple[int, int]:
    """Return width and height from the first segment that holds them."""
    position = 2
    while True:
        if content[position] != 0xFF:
            raise ValueError("marker expected")
        marker = content[position + 1]
        if marker == 0xFF:  # A fill byte.
            position += 1
        elif marker in _JPEG_BARE_MARKERS:
            position += 2
        elif marker in _JPEG_SIZE_MARKERS:
            return _number(content, position + 7, 2), _number(content, position + 5, 2)
        else:
            position += 2 + _number(content, position + 2, 2)


def _webp_size(content: bytes) -> tuple[int, int]:
    """Return width and height, which each of the format's three forms stores elsewhere."""
    form = content[12:16]
    if form == b"VP8X":
        return _number(content, 24, 3, "little") + 1, _number(content, 27, 3, "little") + 1
    if form == b"VP8L":
        bits = _number(content, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        return _number(content, 26, 2, "little") & 0x3FFF, _number(content, 28, 2, "little") & 0x3FFF
    raise ValueError("unknown form")


_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/png": _png_size,
    "image/jpeg": _jpeg_size,
    "image/gif": _gif_size,
    "image/webp": _webp_size,
}
