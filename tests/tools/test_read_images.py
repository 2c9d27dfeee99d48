"""Images: recognised by content, measured, and refused if they would make later requests fail."""

import base64
import io
import struct

import pytest
from PIL import Image

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.read_tool import image_block, image_type

KINDS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("GIF", {}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
]


def image(kind: str, size: tuple[int, int] = (7, 5), **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size).save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_an_image_is_recognised_and_measured(kind: str, options: dict[str, object]) -> None:
    content = image(kind, **options)
    media_type = image_type(content)

    assert media_type == f"image/{kind.lower()}"
    block, size = image_block(content, media_type, "x")
    assert size == (7, 5)
    assert base64.b64decode(block.data) == content


def test_an_extended_webp_is_measured() -> None:
    file = io.BytesIO()
    frames = [Image.new("RGB", (7, 5), color) for color in ("red", "blue")]
    frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:])

    assert file.getvalue()[12:16] == b"VP8X"
    assert image_block(file.getvalue(), "image/webp", "x")[1] == (7, 5)


def test_other_files_are_not_images() -> None:
    assert image_type(b"%PDF-1.7") is None
    assert image_type(b"RIFF....WAVE") is None
    assert image_type(b"") is None


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_a_cut_image_is_refused(kind: str) -> None:
    content = image(kind)[: 11 if kind != "GIF" else 7] + (b"" if kind != "WEBP" else b"P")

    with pytest.raises(ToolError, match="damaged or incomplete"):
        image_block(content, f"image/{kind.lower()}", "x")


@pytest.mark.parametrize(
    "content", [b"\xff\xd8\xff\xff\xd0\xffX", b"\xff\xd8\x00\x00", b"\xff\xd8\xff\xd9", b"\xff\xd8" + b"\xff" * 50]
)
def test_a_broken_jpeg_is_refused(content: bytes) -> None:
    with pytest.raises(ToolError, match="damaged"):
        image_block(content, "image/jpeg", "x")


def test_a_webp_of_an_unknown_form_is_refused() -> None:
    with pytest.raises(ToolError, match="damaged"):
        image_block(b"RIFF\0\0\0\0WEBPVP9 " + b"\0" * 30, "image/webp", "x")


def test_an_image_without_end_or_extent_is_refused() -> None:
    with pytest.raises(ToolError, match="damaged"):
        image_block(image("PNG")[:-12], "image/png", "x")
    with pytest.raises(ToolError, match="damaged"):
        image_block(b"GIF89a" + struct.pack("<HH", 0, 5), "image/gif", "x")


def test_too_many_pixels_are_refused() -> None:
    with pytest.raises(ToolError, match="8001×2 pixels"):
        image_block(image("PNG", (8001, 2)), "image/png", "x")
