"""Recognises images that a model can be shown, and how large they are: a bad one would spoil every later request."""

import base64
from collections.abc import Callable

from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.messages import ImageBlock

IMAGE_LIMIT = 3_750_000
"""Most bytes of an image file: 5 MB once it is base64 text, which is what a Messages API takes."""

SIDE_LIMIT = 8_000
"""Most pixels of an image's side, by the same API."""

_JPEG_SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD9)))


def image_type(sample: bytes) -> str | None:
    """The media type of a file that begins with `sample`; None where it is no image a model can be shown."""
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
    """The image as a block, and its width and height in pixels.

    Raises:
        ToolError: it is too large, or damaged.
    """
    try:
        width, height = _SIZES[media_type](content)
    except (IndexError, ValueError):
        width = height = 0
    if not width or not height:
        raise ToolError(f"{shown} begins like {media_type}, but its size cannot be read: it is damaged or cut off")
    if max(width, height) > SIDE_LIMIT:
        raise ToolError(
            f"{shown} is {width}×{height} pixels; at most {SIDE_LIMIT:,} a side can be shown: resize it first"
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
    """Walks the segments up to the one that begins the frame."""
    place = 2
    while True:
        if content[place] != 0xFF:
            raise ValueError("no marker where one must be")
        marker = content[place + 1]
        if marker == 0xFF:
            place += 1
        elif marker in _JPEG_BARE_MARKERS:
            place += 2
        elif marker in _JPEG_SIZE_MARKERS:
            return _number(content, place + 7, 2), _number(content, place + 5, 2)
        else:
            place += 2 + _number(content, place + 2, 2)


def _webp_size(content: bytes) -> tuple[int, int]:
    """Width and height stand elsewhere in each of the three forms of the format."""
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
