"""Tokens and cost of all sessions by day, model and folder, read from their journals."""

import re
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from tui_agent.protocol.amounts import money_text, share_text, tokens_text
from tui_agent.protocol.messages import JsonObject, is_object

from .summary import read_record

UNKNOWN = "unknown"
"""Name of a model or folder that a journal does not state."""

_WANTED = re.compile(rb'"type":\s*"(?:usage\.updated|run\.started|session\.(?:created|loaded|forked))"')
_FIGURES_WIDTH = 46
"""Cells of the figures of a row."""
_LEAST_NAME = 10
_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(slots=True)
class UsageFigures:
    """Sums of one day, model or folder, or of all."""

    sessions: set[str] = field(default_factory=set[str])
    """Ids of the sessions."""
    input_tokens: int = 0
    """Tokens read at the full price."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None
    """Estimated dollars; None if no price is known."""

    @property
    def read_tokens(self) -> int:
        """All tokens that models read, from the cache or not."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def to_json(self) -> JsonObject:
        """Return the sums as JSON."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return {"sessions": len(self.sessions), **counts, "cost_usd": self.cost}


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
        """Return the sums as lines of text of a width, a table for days, models and folders each."""
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


def read_statistics(paths: Iterable[Path], since: date | None = None) -> UsageStatistics:
    """Return the sums over some journals. Blocks: reads each of them whole.

    Args:
        paths: the journals; those that cannot be read are left out.
        since: first day to count; None: all days.
    """
    found = UsageStatistics()
    for path in paths:
        with suppress(OSError):
            _add_journal(found, path, since)
    return found


@dataclass(slots=True)
class _Reader:
    """State of the reader at a place in a journal."""

    model: str = UNKNOWN
    folder: str = UNKNOWN
    cost: float | None = None
    """Cost of the session up to here."""


def _add_journal(found: UsageStatistics, path: Path, since: date | None) -> None:
    """Add one session. What a copy has from its original is not counted again."""
    with path.open("rb") as file:
        records = [record for line in file if _WANTED.search(line) and (record := read_record(line)) is not None]
    forks = [place for place, record in enumerate(records) if record["type"] == "session.forked"]
    copied, state = (forks[-1] if forks else -1), _Reader()
    for place, record in enumerate(records):
        data: object = record.get("data")
        if not is_object(data):
            continue
        match record["type"]:
            case "run.started" if not record.get("depth"):
                state.model = _text(data, "model") or state.model
            case "session.created" | "session.loaded" | "session.forked":
                state.folder = _text(data, "cwd") or state.folder
            case "usage.updated":
                before, state.cost = state.cost, _amount(data.get("cost"))
                day = _day(record)
                if place > copied and day is not None and (since is None or day >= since):
                    _add(found, path.stem, data, day, state, before)
            case _:
                pass


def _add(
    found: UsageStatistics, session: str, data: JsonObject, day: date, state: _Reader, before: float | None
) -> None:
    delta: object = data.get("delta")
    counts = {name: _count(delta.get(name)) for name in _COUNTS} if is_object(delta) else {}
    if not any(counts.values()):
        return
    cost = None if state.cost is None else max(state.cost - (before or 0.0), 0.0)
    model = _text(data, "model") or state.model
    groups = (found.days[day.isoformat()], found.models[model], found.folders[state.folder])
    for figures in (found.total, *groups):
        figures.sessions.add(session)
        for name, count in counts.items():
            setattr(figures, name, getattr(figures, name) + count)
        if cost is not None:
            figures.cost = (figures.cost or 0.0) + cost


def _row(name: str, figures: UsageFigures, room: int) -> str:
    shown = name if len(name) <= room else f"…{name[1 - room :]}"
    cached = share_text(figures.cache_read_tokens, figures.read_tokens) or "–"
    read, written = tokens_text(figures.read_tokens), tokens_text(figures.output_tokens)
    cost = money_text(figures.cost) or "–"
    return f"{shown:<{room}}  {len(figures.sessions):>8,}  {read:>7}  {cached:>6}  {written:>7}  {cost:>8}"


def _by_size(groups: dict[str, UsageFigures]) -> list[tuple[str, UsageFigures]]:
    return sorted(groups.items(), key=lambda group: (-group[1].read_tokens - group[1].output_tokens, group[0]))


def _day(record: JsonObject) -> date | None:
    try:
        return datetime.fromtimestamp(record["ts"] / 1000).date()
    except (KeyError, TypeError, ValueError, OverflowError, OSError):
        return None


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _amount(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(data: JsonObject, name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
