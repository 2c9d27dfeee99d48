"""Counts of journals for lists, and the sums of all of them: tokens and cost by day, model and folder.

The counts are kept in a file: each byte of a journal is read once for them.
"""

import os
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from tui_agent.protocol.amounts import money_text, share_text, tokens_text
from tui_agent.protocol.messages import JsonObject, is_object

from .journal import FILE_MODE
from .summary import amount_in, count_in, data_of, is_user_message, read_record, text_in

FILE_NAME = "message-counts.json"
MAX_FILE_SIZE = 64 * 1024 * 1024
"""Bytes of the largest file that is read."""
_FIGURES_WIDTH = 46
"""Cells of the figures of a row."""
_LEAST_NAME = 10
UNKNOWN = "unknown"
"""Name of a model or folder that a journal does not state."""

_MARKERS = (b'"message.ended"', b'"user"')
_USAGE = re.compile(rb'"type":\s*"(?:usage\.updated|run\.started|session\.(?:created|loaded|forked))"')


TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
"""Fields of sums that are counts."""


@dataclass(slots=True, kw_only=True)
class _Sums:
    """Tokens and cost."""

    input_tokens: int = 0
    """Tokens read at the full price."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None
    """Estimated dollars; None if no price is known."""

    def add(self, counts: Mapping[str, int], cost: float | None) -> None:
        """Add counts by the names of their fields, and a cost."""
        for name, count in counts.items():
            setattr(self, name, getattr(self, name) + count)
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    @property
    def counts(self) -> dict[str, int]:
        """The counts by the names of their fields."""
        return {name: getattr(self, name) for name in TOKENS}


@dataclass(slots=True, kw_only=True)
class DayUsage(_Sums):
    """Sums of one day of local time with one model in one folder."""

    day: str
    """`YYYY-MM-DD`."""
    model: str
    folder: str


@dataclass(slots=True)
class JournalCounts:
    """The counts of one journal, up to a place in it."""

    inode: int
    read: int = 0
    """Bytes of whole lines that were counted. A journal only grows, so they stay as they are."""
    messages: int = 0
    """Number of the user's messages."""
    usage: list[DayUsage] = field(default_factory=list[DayUsage])
    model: str = UNKNOWN
    """Model of the newest run of the main agent."""
    folder: str = UNKNOWN
    cost: float | None = None
    """Cost of the session so far in dollars; None if no price is known."""

    def add(self, line: bytes) -> None:
        """Count one line."""
        self.read += len(line)
        if all(marker in line for marker in _MARKERS):
            self.messages += is_user_message(read_record(line))
        elif _USAGE.search(line) and (record := read_record(line)) is not None:
            self._add_event(record, data_of(record))

    def _add_event(self, record: JsonObject, data: JsonObject) -> None:
        match record["type"]:
            case "run.started" if not record.get("depth"):
                self.model = text_in(data, "model") or self.model
            case "session.created" | "session.loaded":
                self.folder = text_in(data, "cwd") or self.folder
            case "session.forked":
                # What a copy has from its original counts there.
                self.usage = []
            case "usage.updated":
                before, self.cost = self.cost, amount_in(data, "cost")
                self._add_usage(record, data, before)
            case _:
                pass

    def _add_usage(self, record: JsonObject, data: JsonObject, before: float | None) -> None:
        delta: object = data.get("delta")
        counts = {name: count_in(delta, name) for name in TOKENS} if is_object(delta) else {}
        day = _day(record)
        if day is None or not any(counts.values()):
            return
        key = (day, text_in(data, "model") or self.model, self.folder)
        # Nearly always the newest: a session rarely changes its day, model or folder.
        row = next((one for one in reversed(self.usage) if (one.day, one.model, one.folder) == key), None)
        if row is None:
            self.usage.append(row := DayUsage(day=day, model=key[1], folder=self.folder))
        # An event has the cost of the session so far; a price that became unknown takes nothing away.
        row.add(counts, None if self.cost is None else max(self.cost - (before or 0.0), 0.0))


@dataclass(slots=True)
class _File:
    version: Literal[2]
    counts: dict[str, JournalCounts]


@cache
def _format() -> TypeAdapter[_File]:
    return TypeAdapter(_File)


class CountsFile:
    """The counts of the journals of one directory. Its methods block, and may run in any thread."""

    def __init__(self, root: Path) -> None:
        """Load the counts of earlier programs, if there are any."""
        self._path = root / FILE_NAME
        self._counts = _load(self._path)
        self._was_changed = False
        self._lock = Lock()

    def known(self, path: Path) -> JournalCounts | None:
        """Return the counts of a journal without reading it; None if it has changed since, or was never counted."""
        counts = self._counts.get(path.stem)
        try:
            status = path.stat()
        except OSError:
            return None
        # The inode counts, too: a restored backup may have the same size.
        is_current = counts is not None and (counts.inode, counts.read) == (status.st_ino, status.st_size)
        return counts if is_current else None

    def count(self, path: Path) -> JournalCounts | None:
        """Return the counts, reading what was added since the last time; None if the journal cannot be read."""
        with self._lock:
            return self._count(path)

    def _count(self, path: Path) -> JournalCounts | None:
        if (counts := self.known(path)) is not None:
            return counts
        counts = self._counts.get(path.stem)
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                if counts is None or counts.inode != status.st_ino or counts.read > status.st_size:
                    counts = JournalCounts(status.st_ino)
                file.seek(counts.read)
                for line in file:
                    # The writer may still be writing the last line.
                    if line.endswith(b"\n"):
                        counts.add(line)
        except OSError:
            return None
        self._counts[path.stem] = counts
        self._was_changed = True
        return counts

    def save(self) -> None:
        """Write the counts of the journals that still exist. A failure costs only time at the next start."""
        with self._lock:
            if self._was_changed:
                self._save()

    def _save(self) -> None:
        # Otherwise the numbers of deleted sessions would stay forever.
        kept = {name: counts for name, counts in self._counts.items() if self._path.with_name(f"{name}.jsonl").exists()}
        content = _format().dump_json(_File(2, kept))
        # Two programs may save at the same time: each writes its own file, and the later one stays.
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


def _load(path: Path) -> dict[str, JournalCounts]:
    """Return the stored counts; none if the file is missing, damaged or of another version."""
    try:
        with path.open("rb") as file:
            # Strict: a number that is written as text is damage.
            return _format().validate_json(file.read(MAX_FILE_SIZE), strict=True).counts
    except (OSError, ValidationError):
        return {}


def _day(record: JsonObject) -> str | None:
    try:
        return datetime.fromtimestamp(record["ts"] / 1000).date().isoformat()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


# --- statistics -------------------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class UsageFigures(_Sums):
    """Sums of one day, model or folder, or of all."""

    sessions: set[str] = field(default_factory=set[str])
    """Ids of the sessions."""

    @property
    def read_tokens(self) -> int:
        """All tokens that models read, from the cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def to_json(self) -> JsonObject:
        """Return the sums as JSON."""
        return {"sessions": len(self.sessions), **self.counts, "cost_usd": self.cost}


@dataclass(slots=True)
class UsageStatistics:
    """Sums over sessions."""

    total: UsageFigures = field(default_factory=UsageFigures)
    days: defaultdict[str, UsageFigures] = field(default_factory=lambda: defaultdict(UsageFigures))
    """By day of local time, as `YYYY-MM-DD`."""
    models: defaultdict[str, UsageFigures] = field(default_factory=lambda: defaultdict(UsageFigures))
    folders: defaultdict[str, UsageFigures] = field(default_factory=lambda: defaultdict(UsageFigures))

    def to_json(self) -> JsonObject:
        """Return the sums as JSON: days from the newest, models and folders from the one with most tokens."""
        return {
            "total": self.total.to_json(),
            "days": [{"day": name, **figures.to_json()} for name, figures in self._by_day()],
            "models": [{"model": name, **figures.to_json()} for name, figures in _by_size(self.models)],
            "folders": [{"folder": name, **figures.to_json()} for name, figures in _by_size(self.folders)],
        }

    def lines(self, width: int) -> list[str]:
        """Return the sums as lines for a screen of `width` cells, a table for days, models and folders each."""
        if not self.total.sessions:
            return ["No saved session has used any tokens."]
        tables = (("Day", self._by_day()), ("Model", _by_size(self.models)), ("Folder", _by_size(self.folders)))
        head = f"{'sessions':>8}  {'read':>7}  {'cached':>6}  {'written':>7}  {'cost':>8}"
        room = max(width - _FIGURES_WIDTH, _LEAST_NAME)
        found = [f"{'':<{room}}  {head}", _row("All", self.total, room)]
        for title, rows in tables:
            found += ["", title, *(_row(name, figures, room) for name, figures in rows)]
        return found

    def _by_day(self) -> list[tuple[str, UsageFigures]]:
        return sorted(self.days.items(), reverse=True)


def read_statistics(root: Path, paths: Iterable[Path], since: date | None = None) -> UsageStatistics:
    """Return the sums over some journals. Blocks: reads of each what was added since the last time.

    Args:
        root: the directory of the sessions, where the counts are kept.
        paths: the journals; those that cannot be read are left out.
        since: first day to count; None: all days.
    """
    found, counts, first = UsageStatistics(), CountsFile(root), "" if since is None else since.isoformat()
    for path in paths:
        journal = counts.count(path)
        for row in journal.usage if journal is not None else ():
            if row.day >= first:
                for figures in (found.total, found.days[row.day], found.models[row.model], found.folders[row.folder]):
                    figures.sessions.add(path.stem)
                    figures.add(row.counts, row.cost)
    counts.save()
    return found


def _row(name: str, figures: UsageFigures, room: int) -> str:
    shown = name if len(name) <= room else f"…{name[1 - room :]}"
    cached = share_text(figures.cache_read_tokens, figures.read_tokens) or "–"
    read, written = tokens_text(figures.read_tokens), tokens_text(figures.output_tokens)
    cost = money_text(figures.cost) or "–"
    return f"{shown:<{room}}  {len(figures.sessions):>8,}  {read:>7}  {cached:>6}  {written:>7}  {cost:>8}"


def _by_size(groups: dict[str, UsageFigures]) -> list[tuple[str, UsageFigures]]:
    return sorted(groups.items(), key=lambda group: (-group[1].read_tokens - group[1].output_tokens, group[0]))
