"""What a list shows of a session, read from the two ends of its journal."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tui_agent.protocol.envelope import LATEST_TIME
from tui_agent.protocol.messages import JsonObject, is_array, is_object

LONGEST_LINE = 262_144
"""Bytes; a longer line tells a list nothing."""

LINES_LOOKED_AT = 100
"""From the beginning, until the first prompt."""

TAIL_SIZE = 65_536

LONGEST_TITLE = 100
FIRST_PROMPT = "run.started"
RENAMED = "session.renamed"

_SAID = b'"message.ended"'

CONVERSATION = ("run.", "turn.", "step.", "message.", "steering.", "tool.", "usage.", "context.")
"""Beginnings of the types of a session in which something was said."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One row of the list."""

    id: str
    path: Path
    title: str
    """Its name, or the first prompt on one line; empty where nothing was said or the beginning is damaged."""
    cwd: str
    started: int
    """Milliseconds since the epoch."""
    updated: int
    """Milliseconds since the epoch."""
    size: int
    """Bytes."""
    said: bool
    """Whether there is a conversation in it."""


def summarise(path: Path) -> SessionSummary | None:
    """Reads the ends of a journal; None where it is gone or cannot be opened."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            written = status.st_mtime_ns // 1_000_000
            head = list(_head(file))
            tail = _tail_lines(file, status.st_size)
    except OSError:
        return None
    begun = next((record for record in head if record["type"] in ("session.created", "session.loaded")), None)
    last = next((record for record in map(_record, reversed(tail)) if record is not None), None)
    return SessionSummary(
        id=path.stem,
        path=path,
        title=_title(head, tail),
        cwd=_text(begun, "cwd"),
        started=_time(head[0] if head else last, written),
        updated=_time(last, written),
        size=status.st_size,
        said=any(record["type"].startswith(CONVERSATION) for record in (*head, *([last] if last else []))),
    )


def says(summary: SessionSummary, text: str) -> bool:
    """Whether a text stands in a session's title or in what was said in it, upper and lower case alike; blocks."""
    wanted = text.casefold()
    if wanted in summary.title.casefold():
        return True
    try:
        with summary.path.open("rb") as file:
            return any(wanted in _said(line).casefold() for line in file if _SAID in line)
    except OSError:
        return False


def _said(line: bytes) -> str:
    """The text of a message that is complete; empty for any other line."""
    record = _record(line)
    data = record.get("data") if record is not None and record["type"] == "message.ended" else None
    message = data.get("message") if is_object(data) else None
    content = message.get("content") if is_object(message) else None
    blocks = [block.get("text") for block in content if is_object(block)] if is_array(content) else []
    return "\n".join(block for block in blocks if isinstance(block, str))


def _head(file: BinaryIO) -> Iterator[JsonObject]:
    """The first readable events, up to the first prompt."""
    for line in islice(iter(lambda: file.readline(LONGEST_LINE), b""), LINES_LOOKED_AT):
        record = _record(line)
        if record is not None:
            yield record
            if record["type"] == FIRST_PROMPT:
                return


def _tail_lines(file: BinaryIO, size: int) -> list[bytes]:
    """The last lines; the first of them may be a part of one."""
    file.seek(max(0, size - TAIL_SIZE))
    return file.read(TAIL_SIZE).split(b"\n")


def _record(line: bytes) -> JsonObject | None:
    """A line as an object with a type; None where it is none."""
    try:
        record: object = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return record if is_object(record) and isinstance(record.get("type"), str) else None


def _title(head: list[JsonObject], tail: list[bytes]) -> str:
    named_in_tail = [record for line in tail if RENAMED.encode() in line and (record := _record(line)) is not None]
    renamings = [record for record in (*head, *named_in_tail) if record["type"] == RENAMED]
    prompt = next((record for record in head if record["type"] == FIRST_PROMPT), None)
    named = _text(renamings[-1], "title") if renamings else ""
    title = " ".join((named or _text(prompt, "input")).split())
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _time(record: JsonObject | None, otherwise: int) -> int:
    """When an event was told; `otherwise` where that is not said, or cannot be."""
    time = record.get("ts") if record is not None else None
    return time if isinstance(time, int) and 0 <= time <= LATEST_TIME else otherwise


def _text(record: JsonObject | None, name: str) -> str:
    """A text field of an event's data; empty where there is none."""
    data = record.get("data") if record is not None else None
    value = data.get(name) if is_object(data) else None
    return value if isinstance(value, str) else ""
