"""Summary and preview of a session for lists, read from the beginning and the end of its journal."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from pydantic_core import from_json

from tui_agent.protocol.envelope import LATEST_TIME
from tui_agent.protocol.messages import JsonObject, is_array, is_object

LONGEST_LINE = 262_144
"""Maximum bytes of a line; longer ones have nothing for a summary."""

LINES_LOOKED_AT = 100
"""Maximum lines read from the beginning to find the first prompt."""

TAIL_SIZE = 65_536

LONGEST_TITLE = 100
FIRST_PROMPT = "run.started"
RENAMED = "session.renamed"
LOADED = "session.loaded"
USAGE = "usage.updated"

_SAID = b'"message.ended"'

CONVERSATION = ("run.", "turn.", "step.", "message.", "steering.", "tool.", "usage.", "context.")
"""Prefixes of the event types of a session with messages."""

HEAD_SIZE = 256 * 1024
"""Bytes of a preview that are read from the beginning of a long journal."""
PREVIEW_TAIL_SIZE = 2 * 1024 * 1024
"""Bytes of a preview that are read from the end of a long journal."""
LONGEST_TEXT = 4_000
"""Maximum characters of a text of a preview."""
_PREVIEWED = (b'"type":"message.ended"', b'"type":"file.changed"')

_PIECE = 65_536
_LINE_HEAD = 4_096
"""Bytes that contain the beginning of any line up to its event type."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One row of a list of sessions."""

    id: str
    path: Path
    title: str
    """Title or first prompt in one line; empty if there is none or the beginning is damaged."""
    cwd: str
    started: int
    """Time of the first event in milliseconds since the epoch."""
    last_message: int
    """Time of the user's last message in milliseconds since the epoch; `started` if there is none."""
    updated: int
    """Time of the last event in milliseconds since the epoch."""
    size: int
    """Size of the journal in bytes."""
    said: bool
    """True if the session has messages."""
    branch: str = ""
    """Branch at the last start; empty outside a repository, and for sessions of earlier versions."""
    cost: float | None = None
    """Estimated cost in dollars; None if the end of the journal does not state it."""
    damaged: bool = False
    """True if neither end of the journal has a readable event."""
    messages: int | None = None
    """Number of the user's messages; None as long as they are not counted."""


def summarise(path: Path) -> SessionSummary | None:
    """Summarise a journal from its two ends; None if it is missing or cannot be read. Blocks."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            # It stands in for the times of a damaged journal.
            written = status.st_mtime_ns // 1_000_000
            head = list(_head(file))
            tail = _tail(file, status.st_size)
            last_message = _last_message(file, status.st_size)
    except OSError:
        return None
    begun = next((record for record in head if record["type"] in ("session.created", "session.loaded")), None)
    last = _last_record(tail)
    started = _time(head[0] if head else last, written)
    return SessionSummary(
        id=path.stem,
        path=path,
        title=_title(head, tail),
        cwd=text_in(data_of(begun), "cwd"),
        started=started,
        last_message=_time(last_message, started),
        updated=_time(last, written),
        size=status.st_size,
        said=any(record["type"].startswith(CONVERSATION) for record in (*head, *([last] if last else []))),
        # The newest start counts: the branch may have changed since the first one.
        branch=text_in(data_of(_last_record(tail, LOADED) or begun), "branch"),
        cost=amount_in(data_of(_last_record(tail, USAGE)), "cost"),
        damaged=bool(status.st_size) and not head and last is None,
    )


def says(summary: SessionSummary, text: str) -> bool:
    """True if a session's title or a message contains the text, case-insensitive; blocks."""
    wanted = text.casefold()
    if wanted in summary.title.casefold():
        return True
    try:
        with summary.path.open("rb") as file:
            # Nearly all lines are something else, and parsing them would take most of the time.
            return any(wanted in _said(line).casefold() for line in file if _SAID in line)
    except OSError:
        return False


def _said(line: bytes) -> str:
    """Return the text of a complete message; empty for any other line."""
    return _text_in(_message_of(read_record(line)))


def _message_of(record: JsonObject | None) -> JsonObject:
    """Return the complete message of an event; empty for any other event."""
    message = data_of(record).get("message") if record is not None and record["type"] == "message.ended" else None
    return message if is_object(message) else {}


def data_of(record: JsonObject | None) -> JsonObject:
    """Return the fields of an event; none for a damaged one."""
    data = record.get("data") if record is not None else None
    return data if is_object(data) else {}


def text_in(data: JsonObject, name: str) -> str:
    """Return a field that is text; empty if it is missing or something else."""
    value = data.get(name)
    return value if isinstance(value, str) else ""


def count_in(data: JsonObject, name: str) -> int:
    """Return a field that counts things; 0 if it is missing or not a positive integer."""
    value = data.get(name)
    # `True` would be an instance of int.
    return value if type(value) is int and value > 0 else 0


def amount_in(data: JsonObject, name: str) -> float | None:
    """Return a field that is an amount; None if it is missing, negative or not a number."""
    value = data.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if value >= 0 else None


def _text_in(message: JsonObject) -> str:
    content = message.get("content")
    blocks = [block.get("text") for block in content if is_object(block)] if is_array(content) else []
    return "\n".join(block for block in blocks if isinstance(block, str))


def _head(file: BinaryIO) -> Iterator[JsonObject]:
    """Yield the first readable events, up to the first prompt."""
    # Without a limit, a damaged file without line feeds would be in memory as one line.
    for line in islice(iter(lambda: file.readline(LONGEST_LINE), b""), LINES_LOOKED_AT):
        record = read_record(line)
        if record is not None:
            yield record
            if record["type"] == FIRST_PROMPT:
                return


def _tail(file: BinaryIO, size: int) -> bytes:
    """Return the last lines; the first one may be incomplete."""
    file.seek(max(0, size - TAIL_SIZE))
    return file.read(TAIL_SIZE)


def _last_record(tail: bytes, event_type: str = "") -> JsonObject | None:
    """Return the last event, or the last one of a type, in some lines; None if there is none."""
    end = len(tail)
    while (found := tail.rfind(event_type.encode(), 0, end)) >= 0:
        begin, after = tail.rfind(b"\n", 0, found) + 1, tail.find(b"\n", found)
        record = read_record(tail[begin : after if after >= 0 else None])
        if record is not None and event_type in ("", record["type"]):
            return record
        if begin == 0:
            break
        end = begin - 1
    return None


def _last_message(file: BinaryIO, size: int) -> JsonObject | None:
    """Return the last event that added a message of the user to the conversation; None if there is none."""
    end = size
    while end > 0:
        begin = max(0, end - _PIECE)
        # The overlap finds an event type that two pieces share.
        file.seek(begin)
        found = file.read(end - begin + len(_SAID) - 1).rfind(_SAID)
        if found < 0:
            end = begin
            continue
        end = _begin_of_line(file, begin + found)
        file.seek(end)
        record = read_record(file.readline())
        if is_user_message(record):
            return record
    return None


def _begin_of_line(file: BinaryIO, place: int) -> int:
    """Return the offset of the line with the event type at `place`."""
    begin = max(0, place - _LINE_HEAD)
    file.seek(begin)
    return begin + file.read(place - begin).rfind(b"\n") + 1


def is_user_message(record: JsonObject | None) -> bool:
    """True if an event is a message of the user to the main agent, the output of a command of the user included."""
    return record is not None and _is_of(record, "user")


def _is_of(record: JsonObject, role: str) -> bool:
    """True if an event is a complete message of this role in the conversation of the main agent."""
    message = _message_of(record)
    return message.get("role") == role and message.get("kind") != "notice" and not record.get("depth")


def read_record(line: bytes) -> JsonObject | None:
    """Parse a line as an object with a type; None if it is not one."""
    record: object
    try:
        record = from_json(line)
    except ValueError:
        # It refuses single surrogates and a byte order mark.
        try:
            record = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return None
    return record if is_object(record) and isinstance(record.get("type"), str) else None


def _title(head: list[JsonObject], tail: bytes) -> str:
    renaming = next((record for record in reversed(head) if record["type"] == RENAMED), None)
    prompt = next((record for record in head if record["type"] == FIRST_PROMPT), None)
    named = text_in(data_of(_last_record(tail, RENAMED) or renaming), "title")
    title = " ".join((named or text_in(data_of(prompt), "input")).split())
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _time(record: JsonObject | None, otherwise: int) -> int:
    """Return the time of an event; `otherwise` if it is missing or invalid."""
    time = record.get("ts") if record is not None else None
    return time if isinstance(time, int) and 0 <= time <= LATEST_TIME else otherwise


# --- preview ----------------------------------------------------------------------------------------------------------


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
    """Read the preview from the two ends of a journal; None if it cannot be read. Blocks."""
    preview = SessionPreview()
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= HEAD_SIZE + PREVIEW_TAIL_SIZE:
                data = file.read(HEAD_SIZE + PREVIEW_TAIL_SIZE)
            else:
                preview.is_whole = False
                head = file.read(HEAD_SIZE)
                file.seek(size - PREVIEW_TAIL_SIZE)
                # The cut lines at the seam are not events and are skipped.
                data = b"%s\n%s" % (head, file.read(PREVIEW_TAIL_SIZE))
    except OSError:
        return None
    lines = [line for line in data.split(b"\n") if any(marker in line for marker in _PREVIEWED)]
    preview.prompt = next(filter(None, (_text_of(line, "user") for line in lines)), "")
    preview.answer = next(filter(None, (_text_of(line, "assistant") for line in reversed(lines))), "")
    for line in lines:
        if _PREVIEWED[1] in line and (record := read_record(line)) is not None and record["type"] == "file.changed":
            _add_change(preview, record)
    return preview


def _add_change(preview: SessionPreview, record: JsonObject) -> None:
    data = data_of(record)
    if path := text_in(data, "path"):
        changed = preview.files.setdefault(path, ChangedFile(path))
        changed.added += count_in(data, "added")
        changed.removed += count_in(data, "removed")


def _text_of(line: bytes, role: str) -> str:
    """Return the cut text of a message of the user or the main agent; empty for any other line."""
    # Most lines are messages of the other role: parsing each would cost many times as much.
    record = read_record(line) if role.encode() in line and _PREVIEWED[0] in line else None
    return "" if record is None or not _is_of(record, role) else _text_in(_message_of(record)).strip()[:LONGEST_TEXT]
