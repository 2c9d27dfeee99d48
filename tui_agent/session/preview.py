"""Preview of a session for lists: first prompt, last words and changed files, from a bounded part of its journal."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.protocol.messages import JsonObject, is_array, is_object

from .summary import read_record

HEAD_SIZE = 256 * 1024
"""Bytes read from the beginning of a long journal."""
TAIL_SIZE = 2 * 1024 * 1024
"""Bytes read from the end of a long journal."""
LONGEST_TEXT = 4_000
"""Maximum characters of a text."""

_TYPES = (b'"type":"message.ended"', b'"type":"file.changed"')


@dataclass(slots=True)
class ChangedFile:
    """A file that the session changed."""

    path: str
    added: int = 0
    """Lines added by all changes."""
    removed: int = 0
    """Lines removed by all changes."""


@dataclass(slots=True)
class SessionPreview:
    """The content of a session in short."""

    prompt: str = ""
    """First message of the user."""
    answer: str = ""
    """Last text of the model."""
    files: dict[str, ChangedFile] = field(default_factory=dict[str, ChangedFile])
    """Changed files by path, in the order of their first change."""
    is_whole: bool = True
    """False if the middle of the journal was not read."""


def read_preview(path: Path) -> SessionPreview | None:
    """Read the preview of a journal; None if it cannot be read. Blocks; reads at most `HEAD_SIZE + TAIL_SIZE`."""
    preview = SessionPreview()
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= HEAD_SIZE + TAIL_SIZE:
                data = file.read(HEAD_SIZE + TAIL_SIZE)
            else:
                preview.is_whole = False
                head = file.read(HEAD_SIZE)
                file.seek(size - TAIL_SIZE)
                # The cut lines at the seam are not events and are skipped.
                data = b"%s\n%s" % (head, file.read(TAIL_SIZE))
    except OSError:
        return None
    lines = [line for line in data.split(b"\n") if any(marker in line for marker in _TYPES)]
    preview.prompt = next(filter(None, (_text_of(line, "user") for line in lines)), "")
    preview.answer = next(filter(None, (_text_of(line, "assistant") for line in reversed(lines))), "")
    for line in lines:
        if _TYPES[1] in line and (record := read_record(line)) is not None and record["type"] == "file.changed":
            _add_change(preview, record)
    return preview


def _add_change(preview: SessionPreview, record: JsonObject) -> None:
    data = record.get("data")
    path = data.get("path") if is_object(data) else None
    if is_object(data) and isinstance(path, str):
        changed = preview.files.setdefault(path, ChangedFile(path))
        changed.added += _count(data.get("added"))
        changed.removed += _count(data.get("removed"))


def _text_of(line: bytes, role: str) -> str:
    """Return the cut text of a message of the user or the main agent; empty for any other line."""
    # Most lines are messages of the other role: parsing each would cost many times as much.
    record = read_record(line) if role.encode() in line and _TYPES[0] in line else None
    if record is None or record["type"] != "message.ended" or record.get("depth"):
        return ""
    data = record.get("data")
    message = data.get("message") if is_object(data) else None
    if not is_object(message) or message.get("role") != role or message.get("kind") == "notice":
        return ""
    content = message.get("content")
    blocks = [block.get("text") for block in content if is_object(block)] if is_array(content) else []
    return "\n".join(block for block in blocks if isinstance(block, str)).strip()[:LONGEST_TEXT]


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
