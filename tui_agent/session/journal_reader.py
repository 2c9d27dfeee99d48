"""Reader of journals, damaged ones included: returns every whole event, reports the rest, changes nothing.

Only a line feed ends a line: U+2028, U+0085 and other line separators may occur in a text.
"""

import gc
import json
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Literal

from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.errors import SessionError
from tui_agent.protocol.events import SessionLoaded, SessionRewound, ToolQueued
from tui_agent.protocol.past_session import PADDING, LazyEvents
from tui_agent.protocol.regular_file import read_regular_file

MOST_BYTES = 8 * 1024**3
"""Maximum size of a journal in bytes: a session is loaded into memory."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

ProblemKind = Literal["torn", "unreadable", "unknown", "order"]
"""`torn`: the last line is incomplete; `unknown`: events of a later version; `order`: numbers that do not increase."""

FIRST_READ_SIZE = 128 * 1024
"""Bytes of a tail to read first: many screens of an ordinary conversation."""
MAX_READ_SIZE = 4 * 1024 * 1024
"""Maximum bytes of a tail, for longer runs."""
_PIECE = 1024 * 1024
_RUN, _ROOT = b'"type":"run.started"', b'"depth":0'
_CALL = re.compile(rb'"step":(null|\d+),"type":"tool\.queued","data":\{"call_id":("(?:[^"\\]|\\.)*")')
_QUEUED = b',"type":"tool.queued","data":{"call_id":"'
_RESUMED = b'"step":null' + _QUEUED
_LONGEST_CALL = 1024
"""Bytes of the longest match of `_CALL` that is found across two pieces of a file."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a journal."""

    kind: ProblemKind
    line: int
    """Number of the first line with the problem, from 1."""
    text: str
    """One sentence for the user."""


@dataclass(frozen=True, slots=True)
class JournalContents:
    """Content of a journal."""

    envelopes: Sequence[Envelope]
    """Every readable event, in the order of the file."""
    problems: tuple[Problem, ...]
    size: int
    """Number of bytes read."""
    published_until: int = 0
    """Line of the newest `session.loaded`; that resume reported the problems before it."""
    last_seq: int = 0
    """The highest number in use; 0 if there are no events."""


def read_journal(path: Path) -> JournalContents:
    """Read the file at `path` and all its events; blocks.

    Raises:
        SessionError: the file cannot be read at all.
    """
    data = _bytes_of(path)
    with _gc_paused():
        return parse_journal(data)


def scan_journal(path: Path, each: Callable[[Envelope], None]) -> JournalContents:
    """Read the file at `path`, pass each event on, and keep only the lines, which are parsed at each access; blocks.

    Raises:
        SessionError: the file cannot be read at all.
    """
    data = _bytes_of(path)
    lines = LazyEvents(data)

    def take(start: int, envelope: Envelope) -> None:
        lines.add(start, envelope)
        each(envelope)

    with _gc_paused():
        contents = _scanned(data, take)
    return replace(contents, envelopes=lines if len(lines) else ())


def _bytes_of(path: Path) -> bytes:
    try:
        return read_regular_file(str(path), MOST_BYTES)
    except OSError as error:
        raise SessionError(f"{path} cannot be read: {error.strerror or error}.") from error


def parse_journal(data: bytes) -> JournalContents:
    """Parse a journal; never raises."""
    envelopes: list[Envelope] = []
    contents = _scanned(data, lambda _, envelope: envelopes.append(envelope))
    return replace(contents, envelopes=tuple(envelopes))


def _scanned(data: bytes, take: Callable[[int, Envelope], None]) -> JournalContents:
    """Pass each event of a journal on, with the offset of its line; return the rest of the contents."""
    problems: list[Problem] = []
    unknown: list[int] = []
    unordered: list[int] = []
    newest = published_until = 0
    file = BytesIO(data)
    end = file.seek(len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0)
    # Such a file splits its bytes at line feeds only.
    for number, line in enumerate(file, start=1):
        start, end = end, end + len(line)
        content = line.strip(PADDING)
        if not content:
            # File systems may fill what was not written before a crash with zero bytes.
            if b"\0" in line:
                problems.append(Problem("unreadable", number, f"Line {number} has only zero bytes."))
            continue
        try:
            envelope = read_envelope(content)
        except ValueError as error:
            problems.append(_bad_line(number, error, is_last=not line.endswith(b"\n")))
            continue
        if envelope is None:
            unknown.append(number)
            continue
        if envelope.seq <= newest:
            unordered.append(number)
        # New events get higher numbers than all of these, also if a line is out of order.
        newest = max(newest, envelope.seq)
        if isinstance(envelope.event, SessionLoaded):
            published_until = number
        take(start, envelope)
    if unknown:
        words = "1 event has a type" if len(unknown) == 1 else f"{len(unknown)} events have types"
        problems.append(Problem("unknown", unknown[0], f"{words} that this version does not know."))
    if unordered:
        others = f", and {len(unordered) - 1} more lines" if len(unordered) > 1 else ""
        text = f"Line {unordered[0]}{others}: repeated or out of order; their events are used."
        problems.append(Problem("order", unordered[0], text))
    return JournalContents((), tuple(problems), len(data), published_until, newest)


@contextmanager
def _gc_paused() -> Generator[None, None, None]:
    """Pause the garbage collector and exempt the events from later collections: all are kept, and scanning costs
    seconds."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()


def _bad_line(number: int, error: Exception, *, is_last: bool) -> Problem:
    """Return the problem of a line that is not an event; a last line without line feed is incomplete."""
    if is_last:
        return Problem("torn", number, f"Line {number}, the last, is incomplete.")
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    # The reason may quote the line, however long that is.
    return Problem("unreadable", number, f"Line {number} is not an event ({reason[:120]}).")


@dataclass(frozen=True, slots=True)
class JournalTail:
    """The newest events, shown while the whole journal loads; they begin with a run if one begins there."""

    envelopes: Sequence[Envelope]
    events_before: int
    """Approximate number of events before them."""
    calls_before: int
    """Number of calls before them."""
    numbers: Mapping[str, int]
    """Numbers of those of them that are resumed in the tail, by call id."""


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
                # Few looks at a long run: each reads its end again.
                look *= 4
            tail = _last(file.fileno(), size, look)[start or 0 :]
            contents = parse_journal(tail)
            if not contents.envelopes or any(isinstance(one.event, SessionRewound) for one in contents.envelopes):
                return None
            queued = (one for one in contents.envelopes if isinstance(one.event, ToolQueued))
            resumes = any(one.origin.step is None for one in queued)
            events, calls, numbers = _counted(file.fileno(), size - len(tail), named=resumes)
    except OSError:
        return None
    resumed = (
        one.event.call_id for one in contents.envelopes if isinstance(one.event, ToolQueued) and one.origin.step is None
    )
    return JournalTail(contents.envelopes, events, calls, {name: numbers[name] for name in resumed if name in numbers})


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


def _counted(descriptor: int, end: int, *, named: bool) -> tuple[int, int, dict[str, int]]:
    """Return the number of lines and of calls before an offset in a file, and the newest number of each call id.

    A call that is queued again outside a step is resumed and keeps its number. Unless the numbers are `named`, calls
    are only counted if none of them is resumed, which is several times as fast; there are no ids then.
    """
    if not named:
        lines, calls, resumes = _counted_only(descriptor, end)
        if not resumes:
            return lines, calls, {}
    lines = calls = place = 0
    numbers: dict[bytes, int] = {}
    rest = b""
    while place < end and (piece := os.pread(descriptor, min(_PIECE, end - place), place)):
        place += len(piece)
        lines += piece.count(b"\n")
        for found in _CALL.finditer(rest + piece):
            step, name = found.groups()
            # Those within the rest were counted with the piece before.
            if found.end() > len(rest) and not (step == b"null" and name in numbers):
                calls += 1
                numbers[name] = calls
        # A call may begin in one piece and end in the next.
        rest = (rest + piece)[-_LONGEST_CALL:]
    return lines, calls, {json.loads(name): number for name, number in numbers.items()}


def _counted_only(descriptor: int, end: int) -> tuple[int, int, bool]:
    """Return the number of lines and of calls before an offset in a file; True if a call may have been resumed."""
    lines = calls = place = 0
    while place < end and (piece := os.pread(descriptor, min(_PIECE, end - place), place)):
        # Whole lines; of one that is longer than a piece only the beginning matters.
        size = piece.rfind(b"\n") + 1 or len(piece)
        place += size
        lines += piece.count(b"\n", 0, size)
        calls += piece.count(_QUEUED, 0, size)
        if piece.find(_RESUMED, 0, size) >= 0:
            return lines, calls, True
    return lines, calls, False
