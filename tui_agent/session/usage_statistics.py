"""Tokens and cost of all sessions by day, model and folder, read from their journals."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tui_agent.protocol.amounts import money_text, share_text, tokens_text
from tui_agent.protocol.messages import JsonObject

from .journal_counts import TOKENS, CountsFile, DayUsage

_FIGURES_WIDTH = 46
"""Cells of the figures of a row."""
_LEAST_NAME = 10


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
        counts = {name: getattr(self, name) for name in TOKENS}
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
                _add(found, path.stem, row)
    counts.save()
    return found


def _add(found: UsageStatistics, session: str, row: DayUsage) -> None:
    for figures in (found.total, found.days[row.day], found.models[row.model], found.folders[row.folder]):
        figures.sessions.add(session)
        for name in TOKENS:
            setattr(figures, name, getattr(figures, name) + getattr(row, name))
        if row.cost is not None:
            figures.cost = (figures.cost or 0.0) + row.cost


def _row(name: str, figures: UsageFigures, room: int) -> str:
    shown = name if len(name) <= room else f"…{name[1 - room :]}"
    cached = share_text(figures.cache_read_tokens, figures.read_tokens) or "–"
    read, written = tokens_text(figures.read_tokens), tokens_text(figures.output_tokens)
    cost = money_text(figures.cost) or "–"
    return f"{shown:<{room}}  {len(figures.sessions):>8,}  {read:>7}  {cached:>6}  {written:>7}  {cost:>8}"


def _by_size(groups: dict[str, UsageFigures]) -> list[tuple[str, UsageFigures]]:
    return sorted(groups.items(), key=lambda group: (-group[1].read_tokens - group[1].output_tokens, group[0]))
