"""Types of files by their first bytes: those that models take as images and documents."""

PDF = "application/pdf"


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


def is_pdf(sample: bytes) -> bool:
    """True if a file that begins with `sample` is a PDF."""
    return sample.startswith(b"%PDF-")


def media_type_of(sample: bytes) -> str | None:
    """Return the type of an image or a PDF that begins with `sample`; None for another file."""
    return PDF if is_pdf(sample) else image_type(sample)
