"""Files that a text names with `@` and that are sent with it: images, PDF files, lines of a file, directories."""

import re

_NAMED_FILE = re.compile(r"""(?:\A|(?<=\s))@(?:"[^"\n]+"|[^\s@"]+)""")
_MEDIA_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
_LINES = re.compile(r".+?(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z", re.DOTALL)


def file_mentions(text: str) -> dict[str, str]:
    """Return the paths that a text names, by the part of the text that does so, such as `@logo.png` or `@src/a.py:3-9`.

    A path without lines is not among them unless it ends like that of an image, a PDF or a directory.
    """
    found = (match[0].rstrip(".,;:!?)") for match in _NAMED_FILE.finditer(text))
    return {mention: path for mention in found if _is_attached(path := mention[1:].strip('"'))}


def mention_of(path: str) -> str:
    """Return the mention of a path; one with blanks is quoted."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def is_media_path(path: str) -> bool:
    """True if a path ends like that of an image or a PDF."""
    return path.lower().endswith(_MEDIA_SUFFIXES)


def _is_attached(path: str) -> bool:
    return is_media_path(path) or (path.endswith("/") and path != "/") or _LINES.match(path) is not None
