"""Files and commands that a prompt names with `@` and `/`, and the types of files that can be attached to it."""

import re
from dataclasses import dataclass

_NAMED_FILE = re.compile(r"""(?:\A|(?<=\s))@(?:"[^"\n]+"|[^\s@"]+)""")
_MEDIA_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
_LINES = re.compile(r".+?(?::\d+(?:-\d+)?|#L\d+(?:-L?\d+)?)\Z", re.DOTALL)


def file_mentions(text: str) -> dict[str, str]:
    """Return the paths that a text names, by the part of the text that does so, such as `@logo.png` or `@src/a.py:3-9`.

    Only what can be attached counts: a path with lines, or one that ends like that of an image, a PDF or a directory.
    """
    # The punctuation belongs to the sentence around the mention.
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


@dataclass(frozen=True, slots=True)
class PromptCommand:
    """A command file or skill, for menus and help."""

    slash: str
    """Name without the slash."""
    argument: str = ""
    """Its argument, such as `[file]`."""
    help: str = ""
    """One line."""

    @property
    def usage(self) -> str:
        """The command with its argument and its help, as in `/test [file]  Run the tests`."""
        return f"{f'/{self.slash} {self.argument}'.rstrip()}  {self.help}"


RESERVED_COMMANDS = frozenset(
    (
        *("quit", "mouse", "search", "copy", "thinking", "help", "rewind", "stop", "mode", "theme", "cost", "compact"),
        *("context", "report", "permissions", "timeline", "files", "tools", "skills", "hooks", "replay", "jobs", "mcp"),
        *("diff", "export", "doctor", "model", "effort", "init", "rename", "resume", "clear", "fork", "demo"),
        *("settings", "findings", "add-dir", "stats", "btw", "tasks"),
    )
)
"""No skill or command file replaces one of these, whatever front end is used."""
