"""Preview of a session for lists: first prompt, last words and changed files, from a bounded part of its journal."""

import os
from collections.abc import Iterator
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
    messages: int = 0
    """Number of messages of the user that were read."""
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
    for record in _records(data):
        _add(preview, record)
    return preview


def _records(data: bytes) -> Iterator[JsonObject]:
    """Yield the readable events that a preview needs."""
    for line in data.split(b"\n"):
        if any(marker in line for marker in _TYPES) and (record := read_record(line)) is not None:
            yield record


def _add(preview: SessionPreview, record: JsonObject) -> None:
    data = record.get("data")
    if not is_object(data):
        return
    if record["type"] == "file.changed":
        path = data.get("path")
        if isinstance(path, str):
            changed = preview.files.setdefault(path, ChangedFile(path))
            changed.added += _count(data.get("added"))
            changed.removed += _count(data.get("removed"))
    elif record["type"] == "message.ended" and not record.get("depth") and is_object(message := data.get("message")):
        text = _text_of(message)
        if message.get("role") == "assistant":
            preview.answer = text or preview.answer
        elif message.get("role") == "user" and message.get("kind") != "notice":
            preview.prompt = preview.prompt or text
            preview.messages += 1


def _text_of(message: JsonObject) -> str:
    """Return the text of a message, cut."""
    content = message.get("content")
    blocks = [block.get("text") for block in content if is_object(block)] if is_array(content) else []
    return "\n".join(block for block in blocks if isinstance(block, str)).strip()[:LONGEST_TEXT]


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
