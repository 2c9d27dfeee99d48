"""Checks of images before they are sent to the model: a bad one would make every later request fail."""

import base64
from collections.abc import Callable

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import ImageBlock

IMAGE_LIMIT = 3_750_000
"""Most bytes of an image file: as base64 text it has 5 MB, the limit of the Messages API."""

SIDE_LIMIT = 8_000
"""Most pixels per side of an image, a limit of the same API."""

_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))


def image_type(sample: bytes) -> str | None:
    """Return the media type of a file that begins with `sample`; None if it is not an image the API accepts."""
    if sample.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if sample.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if sample.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if sample.startswith(b"RIFF") and sample[8:12] == b"WEBP":
        return "image/webp"
    return None


def image_block(content: bytes, media_type: str, shown: str) -> tuple[ImageBlock, tuple[int, int]]:
    """Return the image as a block, with its width and height in pixels.

    Raises:
        ToolError: the image is too large or damaged.
    """
    try:
        width, height = _SIZES[media_type](content)
    except (IndexError, ValueError):
        width = height = 0
    if not width or not height:
        raise ToolError(f"{shown} begins like {media_type}, but is damaged or incomplete: its size cannot be read")
    if max(width, height) > SIDE_LIMIT:
        raise ToolError(
            f"{shown} has {width}×{height} pixels; the limit is {SIDE_LIMIT:,} per side: resize the image first"
        )
    return ImageBlock(media_type=media_type, data=base64.b64encode(content).decode("ascii")), (width, height)


def _number(content: bytes, start: int, length: int, order: str = "big") -> int:
    part = content[start : start + length]
    if len(part) < length:
        raise IndexError(start)
    return int.from_bytes(part, "little" if order == "little" else "big")


def _png_size(content: bytes) -> tuple[int, int]:
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
