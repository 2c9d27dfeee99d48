"""The end of a journal, shown while the whole journal loads."""

import os
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionRewound

from .journal_reader import parse_journal

FIRST_READ_SIZE = 128 * 1024
"""Bytes read first: many screens of an ordinary conversation."""
MAX_READ_SIZE = 4 * 1024 * 1024
"""Maximum bytes read, for longer runs."""
_PIECE = 1024 * 1024
_RUN, _ROOT, _CALL = b'"type":"run.started"', b'"depth":0', b'"type":"tool.queued"'


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The newest events; they begin with a run if one begins there."""

    envelopes: tuple[Envelope, ...]
    events_before: int
    """Approximate number of events before them."""
    calls_before: int
    """Approximate number of calls before them."""


def read_tail(path: Path) -> JournalTail | None:
    """Return the end of the journal at `path`; None if it has no events or contains a rewind, whose result depends on
    earlier events.

    Blocks only shortly: earlier events are counted, not parsed.
    """
    try:
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            look = FIRST_READ_SIZE
            while (start := _begin_of_run(_last(file.fileno(), size, look))) is None and look < min(
                size, MAX_READ_SIZE
            ):
                look *= 4
            tail = _last(file.fileno(), size, look)[start or 0 :]
            contents = parse_journal(tail)
            if not contents.envelopes or any(isinstance(one.event, SessionRewound) for one in contents.envelopes):
                return None
            events, calls = _counted(file.fileno(), size - len(tail))
    except OSError:
        return None
    return JournalTail(contents.envelopes, events, calls)


def _last(descriptor: int, size: int, look: int) -> bytes:
    """Return the whole lines within the last `look` bytes of a file."""
    begin = max(0, size - look)
    data = os.pread(descriptor, size - begin, begin)
    return data if begin == 0 else data[data.find(b"\n") + 1 :]


def _begin_of_run(data: bytes) -> int | None:
    """Return the offset of the first line that starts a run of the root agent; None if there is none."""
    found = data.find(_RUN)
    while found >= 0:
        line = data.rfind(b"\n", 0, found) + 1
        if data.find(_ROOT, line, found) >= 0:
            return line
        found = data.find(_RUN, found + 1)
    return None


def _counted(descriptor: int, end: int) -> tuple[int, int]:
    """Return the number of lines, and of queued calls, before an offset in a file."""
    lines = calls = place = 0
    rest = b""
    while place < end and (piece := os.pread(descriptor, min(_PIECE, end - place), place)):
        place += len(piece)
        lines += piece.count(b"\n")
        calls += (rest + piece).count(_CALL)
        rest = piece[-len(_CALL) + 1 :]
    return lines, calls
