"""Reading of recordings. Damaged entries are skipped and reported; other files are refused with a one-line error."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tui_agent.protocol.envelope import read_envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import is_object
from tui_agent.protocol.regular_file import read_regular_file

from .recording_format import ENTRY_KINDS, FORMAT, EntryKind, Recording, RecordingEntry, RecordingHeader

MOST_BYTES = 2 * 1024**3
"""Largest file in bytes: the whole recording is kept in memory."""
LONGEST = 366 * 86_400.0
"""Longest recording in seconds; a later entry counts as damaged."""

_KINDS: dict[bytes, EntryKind] = {kind.encode(): kind for kind in ENTRY_KINDS}
_ENTRY = re.compile(rb'\s*\{\s*"at"\s*:\s*([0-9.eE+-]+)\s*,\s*"([a-z]+)"\s*:\s*(\{.*\})\s*\}\s*', re.DOTALL)


def read_recording(path: Path) -> Recording:
    """Read a recording from a file. Blocks.

    Raises:
        ConfigurationError: the file cannot be read, is not a recording, or has another version; one line.
    """
    try:
        content = read_regular_file(str(path), MOST_BYTES)
    except FileNotFoundError:
        raise ConfigurationError(f"the recording {path} does not exist") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"the recording {path} cannot be read: {reason}") from error
    return parse_recording(content, str(path))


def parse_recording(content: bytes, name: str) -> Recording:
    """Parse the content of a recording file.

    Args:
        content: the whole content.
        name: name of the file in error messages.

    Raises:
        ConfigurationError: it is not a recording, or has another version; one line.
    """
    first, _, rest = content.partition(b"\n")
    head = _head(first, name)
    lines = rest.split(b"\n")
    torn = lines.pop()
    found = [_entry(line) for line in lines]
    entries = tuple(_in_order([entry for entry in found if entry is not None]))
    notices: list[str] = []
    if torn:
        notices.append("The recording ends in the middle of a line; it plays up to the last complete line.")
    if damaged := len(lines) - len(entries):
        notices.append(f"{damaged} damaged line{'s' if damaged > 1 else ''} of the recording skipped.")
    return Recording(head, entries, tuple(notices))


def _head(line: bytes, name: str) -> RecordingHeader:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not is_object(record) or "recording" not in record:
        raise ConfigurationError(f"{name} is not a recording of tui-agent")
    version = str(record["recording"])[:20]
    if version != str(FORMAT):
        raise ConfigurationError(f"{name} is a recording of version {version}; this program reads version {FORMAT}")
    try:
        return RecordingHeader.model_validate(record)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise ConfigurationError(
            f"the first line of the recording {name} is damaged: {place}: {fault['msg']}"
        ) from None


def _entry(line: bytes) -> RecordingEntry | None:
    """Parse one line; return None if it is damaged."""
    parts = _ENTRY.fullmatch(line)
    if parts is None:
        return None
    try:
        at, text = float(parts[1]), parts[3].decode("utf-8")
        kind = _KINDS.get(parts[2])
        if kind is None or not 0 <= at <= LONGEST:
            return None
        value: Any = read_envelope(text) if kind in ("event", "past") else json.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if value is None else RecordingEntry(at, kind, value)


def _in_order(entries: Sequence[RecordingEntry]) -> Iterator[RecordingEntry]:
    """Yield the entries except those with an impossible time: earlier than the previous or later than the next one."""
    last = 0.0
    for number, entry in enumerate(entries):
        following = entries[min(number + 1, len(entries) - 1)]
        is_too_late = last <= following.at < entry.at
        if entry.at >= last and not is_too_late:
            last = entry.at
            yield entry
