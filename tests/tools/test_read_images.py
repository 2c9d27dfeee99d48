"""Images: recognised by content, measured, scaled, and refused if they would make later requests fail."""

import base64
import io
import random
import struct

import pytest
from PIL import Image

from tests.support.table import table
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.prompt_references import image_type
from tui_agent.tools.media import image_files
from tui_agent.tools.media.image_files import MOST_PIXELS, SCALED_SIDE, load_image, size_of_image

KINDS = [
    ("PNG", {}),
    ("JPEG", {}),
    ("JPEG", {"progressive": True}),
    ("GIF", {}),
    ("WEBP", {}),
    ("WEBP", {"lossless": True}),
]


def image(kind: str, size: tuple[int, int] = (7, 5), color: str = "black", **options: object) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, kind, **options)
    return file.getvalue()


@table(("kind", "options"), KINDS)
def test_an_image_is_recognised_and_measured(kind: str, options: dict[str, object]) -> None:
    content = image(kind, **options)
    media_type = image_type(content)

    assert media_type == f"image/{kind.lower()}"
    assert size_of_image(content, media_type, "x") == (7, 5)


@table(
    ("kind", "content"),
    [
        ("png", image("PNG")[:11]),
        ("png", image("PNG")[:-12]),
        ("gif", image("GIF")[:7]),
        ("gif", b"GIF89a" + struct.pack("<HH", 0, 5)),
        ("webp", image("WEBP")[:11] + b"P"),
        ("jpeg", image("JPEG")[:11]),
        ("jpeg", b"\xff\xd8\xff\xff\xd0\xffX"),
        ("jpeg", b"\xff\xd8\x00\x00"),
        ("jpeg", b"\xff\xd8\xff\xd9"),
        ("jpeg", b"\xff\xd8" + b"\xff" * 50),
    ],
)
def test_a_cut_or_broken_image_is_refused(kind: str, content: bytes) -> None:
    with pytest.raises(ToolError, match="damaged or incomplete"):
        size_of_image(content, f"image/{kind}", "x")


# --- scaling ----------------------------------------------------------------------------------------------------------


async def loaded(content: bytes) -> image_files.LoadedImage:
    return await load_image(content, image_type(content) or "", "x", CancellationToken())


async def test_an_image_within_the_limits_stays_as_it_is_and_has_a_thumbnail() -> None:
    content = image("PNG", (80, 20), color="#ff8000")

    found = await loaded(content)

    assert base64.b64decode(found.block.data) == content
    size, _, pixels = found.block.thumbnail.partition(":")
    assert size == "40x10"
    assert base64.b64decode(pixels) == bytes((255, 128, 0)) * 400


@table(
    ("kind", "size", "options"),
    [("PNG", (SCALED_SIDE + 1, 2), {}), ("GIF", (2, 3_000), {}), ("JPEG", (3_000, 1_000), {"exif": True})],
)
async def test_a_larger_image_is_scaled_without_its_metadata(
    kind: str, size: tuple[int, int], options: dict[str, bool]
) -> None:
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "at home"  # Orientation and description.
    found = await loaded(image(kind, size, **({"exif": exif} if options else {})))

    with Image.open(io.BytesIO(base64.b64decode(found.block.data))) as scaled:
        assert max(scaled.size) == SCALED_SIDE
        assert scaled.size == (found.width, found.height)
        assert (scaled.height > scaled.width) is (size[1] > size[0] or bool(options)), "turned as the camera says"
        assert not scaled.getexif()
    assert found.note.startswith(f"scaled from {size[0]:,}×{size[1]:,} pixels")


async def test_a_noisy_image_is_made_small_enough() -> None:
    noise = Image.frombytes("RGB", (1_200, 1_200), random.Random(1).randbytes(1_200 * 1_200 * 3))
    file = io.BytesIO()
    noise.save(file, "PNG", compress_level=0)

    found = await loaded(file.getvalue())

    assert found.block.media_type == "image/jpeg"
    assert len(base64.b64decode(found.block.data)) <= image_files.IMAGE_LIMIT


async def test_a_damaged_image_and_one_with_too_many_pixels_are_refused() -> None:
    content = bytearray(image("PNG", (70, 50), color="#ff8000"))
    content[60] ^= 0xFF
    with pytest.raises(ToolError, match="damaged or incomplete"):
        await loaded(bytes(content))

    content[16:24] = struct.pack(">II", MOST_PIXELS, 2)
    with pytest.raises(ToolError, match="the limit is 64,000,000 in all: resize the image first"):
        await loaded(bytes(content))


async def test_without_pillow_a_large_image_is_refused_with_the_extra_that_scales_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_files, "can_scale_images", lambda: False)

    assert (await loaded(image("PNG"))).block.thumbnail == ""
    with pytest.raises(ToolError, match=r"8,001×2 pixels; .* or install the extra `images`"):
        await loaded(image("PNG", (8_001, 2)))
    with pytest.raises(ToolError, match=r"3,750,001 bytes; .* or install the extra `images`"):
        image_files.refuse_large_image(3_750_001, "x")
