"""Numbers of the user's messages in journals, kept in a file: each byte of a journal is read once for them."""

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from threading import Lock

from tui_agent.protocol.messages import is_array, is_object

from .journal import FILE_MODE
from .summary import is_user_message, read_record

FILE_NAME = "message-counts.json"
MAX_FILE_SIZE = 16 * 1024 * 1024
"""Bytes of the largest file that is read."""

_VERSION = 1
_MARKERS = (b'"message.ended"', b'"user"')


@dataclass(frozen=True, slots=True)
class _Count:
    inode: int
    read: int
    """Bytes of whole lines that were counted. A journal only grows, so they stay as they are."""
    messages: int


class MessageCounts:
    """The numbers for the journals of one directory. Its methods block, and may run in any thread."""

    def __init__(self, root: Path) -> None:
        """Load the numbers of earlier programs, if there are any."""
        self._path = root / FILE_NAME
        self._counts = _load(self._path)
        self._was_changed = False
        self._lock = Lock()

    def known(self, path: Path) -> int | None:
        """Return the number of messages if the journal has not changed since it was counted; None otherwise."""
        count = self._counts.get(path.stem)
        try:
            status = path.stat()
        except OSError:
            return None
        is_current = count is not None and (count.inode, count.read) == (status.st_ino, status.st_size)
        return count.messages if count is not None and is_current else None

    def count(self, path: Path) -> int | None:
        """Return the number of messages, reading what was added since the last time; None if it cannot be read."""
        with self._lock:
            return self._count(path)

    def _count(self, path: Path) -> int | None:
        before = self._counts.get(path.stem)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                is_same = before is not None and before.inode == status.st_ino and before.read <= status.st_size
                read, messages = (before.read, before.messages) if before is not None and is_same else (0, 0)
                file.seek(read)
                for line in file:
                    # The writer may still be writing the last line.
                    if line.endswith(b"\n"):
                        read += len(line)
                        messages += all(marker in line for marker in _MARKERS) and is_user_message(read_record(line))
        except OSError:
            return None
        after = _Count(status.st_ino, read, messages)
        if after != before:
            self._counts[path.stem] = after
            self._was_changed = True
        return messages

    def save(self) -> None:
        """Write the numbers of the journals that still exist. A failure costs only time at the next start."""
        with self._lock:
            if self._was_changed:
                self._save()

    def _save(self) -> None:
        kept = {name: count for name, count in self._counts.items() if self._path.with_name(f"{name}.jsonl").exists()}
        rows = {name: [count.inode, count.read, count.messages] for name, count in kept.items()}
        content = json.dumps({"version": _VERSION, "counts": rows}).encode()
        unfinished = self._path.with_name(f".{FILE_NAME}.{secrets.token_hex(8)}.tmp")
        try:
            with open(unfinished, "xb", opener=lambda name, flags: os.open(name, flags, FILE_MODE)) as file:
                file.write(content)
            unfinished.replace(self._path)
        except OSError:
            with suppress(OSError):
                unfinished.unlink()
            return
        self._was_changed = False


def _load(path: Path) -> dict[str, _Count]:
    """Return the stored numbers; none if the file is missing, damaged or of another version."""
    try:
        with path.open("rb") as file:
            content: object = json.loads(file.read(MAX_FILE_SIZE))
    except (OSError, ValueError, RecursionError):
        return {}
    if not is_object(content) or content.get("version") != _VERSION or not is_object(rows := content.get("counts")):
        return {}
    return {name: count for name, row in rows.items() if (count := _count_of(row)) is not None}


def _count_of(row: object) -> _Count | None:
    """Return one stored number; None if it is damaged."""
    numbers = [one for one in row if type(one) is int and one >= 0] if is_array(row) else []
    return _Count(*numbers) if len(numbers) == len(fields(_Count)) else None
