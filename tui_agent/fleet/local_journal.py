"""The journal of a unit's process on its worker: it tells which calls have begun before the process' output does."""

import os
from pathlib import Path

from .unit_events import fields_of, seq_of, type_of


class LocalJournal:
    """Reads what was appended since the last look."""

    def __init__(self, path: Path, size: int) -> None:
        """
        Args:
            path: the journal; it may not exist yet.
            size: bytes that are known already.
        """
        self._path = path
        self._place = size

    def last_begun_call(self) -> int:
        """Return the number of the last new `tool.started` of a call with effects; 0 if there is none. Blocks.

        The process saves this event before it executes the call.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return 0
        with open(descriptor, "rb") as file:
            file.seek(self._place)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._place += len(whole)
        begun = (line for line in whole.splitlines() if type_of(line) == "tool.started")
        return max((seq_of(line) for line in begun if not fields_of(line).get("read_only")), default=0)
