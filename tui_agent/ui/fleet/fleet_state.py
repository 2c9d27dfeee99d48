"""State of the screen of a fleet: its last status, sums over its units, and which of them are shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from tui_agent.protocol.fleet_records import FleetCounts, FleetStatus, UnitQuestion, UnitRow, UnitState, count_rows

RATE_MINUTES = 10
"""Minutes whose ends give the rate."""
LEAST_ENDS = 3
"""Ends without which a rate says nothing."""


@dataclass(frozen=True, slots=True)
class FleetTotals:
    """Sums over all units."""

    counts: FleetCounts
    rate: float | None
    """Units that end in a minute; None if too few have ended."""
    seconds_left: float | None
    """Time until all have ended at this rate; None without a rate, or if none is left."""


class FleetState:
    """Last status of a fleet, with the rows of its units by their id."""

    def __init__(self) -> None:
        self.status = FleetStatus(name="", started=0, running=False, rows=())
        """Last status; empty until one is known."""
        self.rows: dict[str, UnitRow] = {}
        """Rows by the id of their unit, in the order of the tasks."""

    @property
    def known(self) -> bool:
        """True once the status has arrived."""
        return bool(self.status.started or self.status.name)

    @property
    def running(self) -> bool:
        """True while a driver works on it."""
        return self.status.running

    @property
    def questions(self) -> tuple[UnitQuestion, ...]:
        """Open questions, the oldest first; those of a fleet without a driver cannot be answered and are left out."""
        return self.status.questions if self.running else ()

    def apply(self, status: FleetStatus) -> None:
        """Take the status of the fleet."""
        self.status, self.rows = status, {row.id: row for row in status.rows}

    def leave(self, now: int) -> None:
        """Note that no driver can be reached any more, at a time in milliseconds since the epoch; the rows stay."""
        self.apply(self.status.without_driver(now))

    def end(self, now: int) -> int:
        """Return the time up to which there is something to show: now, or the end of the last unit."""
        if self.running:
            return now
        return max((span.ended or span.started for row in self.rows.values() for span in row.spans), default=now)

    def totals(self, now: int) -> FleetTotals:
        """Return the sums at a time in milliseconds since the epoch."""
        rows = self.rows.values()
        counts = count_rows(rows)
        begin = max(self.status.started, now - RATE_MINUTES * 60_000)
        ends = [row.spans[-1].ended for row in rows if row.ended and row.spans]
        recent = sum(1 for end in ends if end is not None and end >= begin)
        minutes = (now - begin) / 60_000
        rate = recent / minutes if recent >= LEAST_ENDS and minutes > 0 and self.running else None
        left = counts.units - counts.ended
        return FleetTotals(counts, rate, left / rate * 60 if rate and left else None)


def seconds_of(row: UnitRow, now: int) -> float:
    """Return the seconds that a unit has spent on workers."""
    return sum(max(0, (span.ended if span.ended is not None else now) - span.started) for span in row.spans) / 1000


StateFilter: TypeAlias = Literal["all", "running", "needs you", "failed", "stopped", "done", "queued"]
UnitOrder: TypeAlias = Literal["task", "state", "cost", "time"]

FILTERS: tuple[StateFilter, ...] = get_args(StateFilter)
ORDERS: tuple[UnitOrder, ...] = get_args(UnitOrder)

_PASSING: dict[StateFilter, frozenset[UnitState]] = {
    "running": frozenset(("starting", "running", "asking", "verifying", "resuming")),
    "needs you": frozenset(("asking",)),
    "failed": frozenset(("failed",)),
    "stopped": frozenset(("stopped", "interrupted")),
    "done": frozenset(("done",)),
    "queued": frozenset(("queued",)),
}
_BY_STATE: tuple[UnitState, ...] = (
    *("asking", "resuming", "verifying", "running", "starting"),
    *("failed", "interrupted", "stopped", "queued", "done"),
)
_RANKS = {state: rank for rank, state in enumerate(_BY_STATE)}
_SEARCHED = 2_000
"""Characters of a prompt that are searched."""


class UnitFilter:
    """Filter, search words and order of the units that are shown."""

    def __init__(self) -> None:
        self.states: StateFilter = "all"
        """Present filter."""
        self.order: UnitOrder = "task"
        """Present order."""
        self._words: tuple[str, ...] = ()
        self._texts: dict[str, str] = {}

    @property
    def is_part(self) -> bool:
        """True if a filter or a search may hide units."""
        return self.states != "all" or bool(self._words)

    def shown(self, rows: Iterable[UnitRow], now: int) -> list[UnitRow]:
        """Return those of some rows that pass, in order, at a time in milliseconds since the epoch."""
        passing = _PASSING.get(self.states)
        shown = [row for row in rows if passing is None or row.state in passing]
        if self._words:
            shown = [row for row in shown if self._matches(row)]
        match self.order:
            case "task":
                pass
            case "state":
                shown.sort(key=lambda row: _RANKS[row.state])
            case "cost":
                shown.sort(key=lambda row: -row.cost)
            case "time":
                shown.sort(key=lambda row: -seconds_of(row, now))
        return shown

    def search(self, text: str) -> None:
        """Let only units pass in which all words of a text occur."""
        self._words = tuple(text.casefold().split())

    def turn_filter(self, by: int) -> None:
        """Use the next or the previous filter."""
        self.states = FILTERS[(FILTERS.index(self.states) + by) % len(FILTERS)]

    def turn_order(self) -> None:
        """Use the next order."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]

    def clear(self) -> None:
        """Remove filter and search."""
        self.states, self._words = "all", ()

    def _matches(self, row: UnitRow) -> bool:
        fixed = self._texts.get(row.id)
        if fixed is None:
            unit = row.unit
            parts = (unit.id, unit.repo, unit.ref, *unit.fields.values(), unit.prompt[:_SEARCHED])
            fixed = self._texts[row.id] = " ".join(parts).casefold()
        worker = row.spans[-1].worker if row.spans else ""
        text = f"{fixed} {row.state} {worker} {row.activity} {row.reason}".casefold()
        return all(word in text for word in self._words)
