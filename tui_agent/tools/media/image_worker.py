"""Program that scales an image and makes its thumbnail. The engine runs it, but never imports it.

Decoding a hostile image can take much time and memory; a separate process has limits and blocks nothing. Arguments: the
media type, the most pixels per side, the most bytes, and the number of the descriptor that has the image. The output
is a JSON object in one line, then the new image; nothing follows if the image can stay as it is.
"""

import base64
import io
import json
import resource
import sys

from PIL import Image, ImageOps, UnidentifiedImageError

_MEMORY = 1024**3
_MOST_PIXELS = 64_000_000
_SECONDS = 30
"""Seconds of the processor, for the case that the engine is gone and cannot end this program."""
_THUMBNAIL = (40, 20)
"""Most pixels of a thumbnail: a cell of the terminal shows two, one above the other."""
_QUALITIES = (90, 80, 65, 50)
_SMALLER = 0.75
"""Factor by which the sides shrink if no quality makes the image small enough."""
_GREY = (128, 128, 128, 255)


def main(media_type: str, most_pixels: int, most_bytes: int, descriptor: int) -> int:
    """Write the facts and, if it had to be changed, the image."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    Image.MAX_IMAGE_PIXELS = _MOST_PIXELS
    with open(descriptor, "rb") as file:
        content = file.read()
    try:
        facts, changed = _prepared(content, media_type, most_pixels, most_bytes)
    except (Image.DecompressionBombError, UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        facts, changed = {"error": str(error)[:200] or "it cannot be decoded"}, b""
    sys.stdout.buffer.write(json.dumps(facts).encode() + b"\n" + changed)
    return 0


def _prepared(content: bytes, media_type: str, most_pixels: int, most_bytes: int) -> tuple[dict[str, object], bytes]:
    """Return the facts about an image, and its new content; empty if it can stay as it is."""
    image = Image.open(io.BytesIO(content), formats=[media_type.removeprefix("image/").upper()])
    size, frames = image.size, getattr(image, "n_frames", 1)
    if media_type == "image/jpeg":
        # Decoded at a fraction of its size, which takes that fraction of the memory.
        image.draft("RGB", (most_pixels, most_pixels))
    image.load()
    is_sound = max(size) <= most_pixels and len(content) <= most_bytes
    ImageOps.exif_transpose(image, in_place=True)
    image = image.convert("RGBA" if _is_transparent(image) else "RGB")
    if is_sound:
        facts: dict[str, object] = {"media_type": media_type, "width": size[0], "height": size[1], "note": ""}
        return facts | {"thumbnail": _thumbnail(image)}, b""
    image.thumbnail((most_pixels, most_pixels), Image.Resampling.LANCZOS)
    kind, changed = _encoded(image, media_type, most_bytes)
    while len(changed) > most_bytes:
        image.thumbnail((int(image.width * _SMALLER) or 1, int(image.height * _SMALLER) or 1))
        kind, changed = _encoded(image, media_type, most_bytes)
    only = f", first of {frames:,} frames" if frames > 1 else ""
    note = f"scaled from {size[0]:,}×{size[1]:,} pixels, {len(content):,} bytes{only}; without its metadata"
    facts = {"media_type": kind, "width": image.width, "height": image.height, "note": note}
    return facts | {"thumbnail": _thumbnail(image)}, changed


def _encoded(image: Image.Image, media_type: str, most_bytes: int) -> tuple[str, bytes]:
    """Return the type and content of the smallest loss that fits; of the last try if none does."""
    file = io.BytesIO()
    if media_type != "image/jpeg":
        image.save(file, "PNG")
        if file.tell() <= most_bytes:
            return "image/png", file.getvalue()
    flat = _on_grey(image)
    for quality in _QUALITIES:
        file = io.BytesIO()
        flat.save(file, "JPEG", quality=quality)
        if file.tell() <= most_bytes:
            break
    return "image/jpeg", file.getvalue()


def _is_transparent(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info


def _on_grey(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image
    return Image.alpha_composite(Image.new("RGBA", image.size, _GREY), image).convert("RGB")


def _thumbnail(image: Image.Image) -> str:
    """Return a small copy as `ImageBlock.thumbnail`."""
    small = image.copy()
    small.thumbnail(_THUMBNAIL, Image.Resampling.BOX)
    flat = _on_grey(small).convert("RGB")
    return f"{flat.width}x{flat.height}:{base64.b64encode(flat.tobytes()).decode('ascii')}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
