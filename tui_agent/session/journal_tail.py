"""The end of a journal, for whoever cannot wait until all of it is read; what it says is a glimpse and no more."""

import os
from dataclasses import dataclass
from pathlib import Path

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionRewound

from .journal_reader import parse_journal

FIRST_READ_SIZE = 128 * 1024
"""Bytes looked at: many screens of an ordinary conversation."""
MAX_READ_SIZE = 4 * 1024 * 1024
"""Bytes looked at where runs are longer than that."""
_PIECE = 1024 * 1024
_RUN, _ROOT, _CALL = b'"type":"run.started"', b'"depth":0', b'"type":"tool.queued"'


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The newest events, from the beginning of a run on where one begins there."""

    envelopes: tuple[Envelope, ...]
    events_before: int
    """About how many events come before them."""
    calls_before: int
    """About how many calls."""


def read_tail(path: Path) -> JournalTail | None:
    """The end of the journal at `path`; None where there is nothing to be seen of it, or it alone would mislead.

    That is where a person went back in it: what counts then is not what stands at the end. Blocks, but not for long:
    what comes before is counted, not read.
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
    """The whole lines within the last bytes of a file."""
    begin = max(0, size - look)
    data = os.pread(descriptor, size - begin, begin)
    return data if begin == 0 else data[data.find(b"\n") + 1 :]


def _begin_of_run(data: bytes) -> int | None:
    """Where the first line stands with which a run of the root agent begins; None where none does."""
    found = data.find(_RUN)
    while found >= 0:
        line = data.rfind(b"\n", 0, found) + 1
        if data.find(_ROOT, line, found) >= 0:
            return line
        found = data.find(_RUN, found + 1)
    return None


def _counted(descriptor: int, end: int) -> tuple[int, int]:
    """The lines before a place in a file, and how many of them tell of a call."""
    lines = calls = place = 0
    rest = b""
    while place < end and (piece := os.pread(descriptor, min(_PIECE, end - place), place)):
        place += len(piece)
        lines += piece.count(b"\n")
        calls += (rest + piece).count(_CALL)
        rest = piece[-len(_CALL) + 1 :]
    return lines, calls
