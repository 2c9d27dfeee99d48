"""State of the screen of a fleet: its last status, and sums over its units."""

from collections.abc import Sequence
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
    """The rows of all units, in the order of the tasks, with questions and notices."""

    def __init__(self) -> None:
        self.name = ""
        """Name of the fleet; empty until its status is known."""
        self.started = 0
        """Milliseconds since the epoch."""
        self.running = False
        """True while a driver works on it."""
        self.paused_until = 0
        """Milliseconds since the epoch until which a rate limit delays the fleet; 0 for no delay."""
        self.rows: dict[str, UnitRow] = {}
        """Rows by the id of their unit, in the order of the tasks."""
        self.questions: tuple[UnitQuestion, ...] = ()
        """Open questions, the oldest first; those of a fleet without a driver cannot be answered and are left out."""
        self.notices: list[str] = []
        """Last notices, the oldest first."""

    @property
    def known(self) -> bool:
        """True once the status has arrived."""
        return bool(self.started or self.name)

    def apply(self, status: FleetStatus) -> None:
        """Take the status of the fleet."""
        self.name, self.started, self.running = status.name, status.started, status.running
        self.rows = {row.id: row for row in status.rows}
        self.notices = list(status.notices)
        self.questions = status.questions if self.running else ()
        self.paused_until = status.paused_until

    def leave(self, now: int) -> None:
        """Note that no driver can be reached any more, at a time in milliseconds since the epoch; the rows stay."""
        self.running, self.questions, self.paused_until = False, (), 0
        self.rows = {row.id: row.without_driver(now) for row in self.rows.values()}

    def end(self, now: int) -> int:
        """Return the time up to which there is something to show: now, or the end of the last unit."""
        if self.running:
            return now
        return max((span.ended or span.started for row in self.rows.values() for span in row.spans), default=now)

    def totals(self, now: int) -> FleetTotals:
        """Return the sums at a time in milliseconds since the epoch."""
        rows = self.rows.values()
        counts = count_rows(rows)
        begin = max(self.started, now - RATE_MINUTES * 60_000)
        ends = [row.spans[-1].ended for row in rows if row.ended and row.spans]
        recent = sum(1 for end in ends if end is not None and end >= begin)
        minutes = (now - begin) / 60_000
        rate = recent / minutes if recent >= LEAST_ENDS and minutes > 0 and self.running else None
        left = counts.units - counts.ended
        return FleetTotals(counts, rate, left / rate * 60 if rate and left else None)


def seconds_of(row: UnitRow, now: int) -> float:
    """Return the seconds that a unit has spent on workers."""
    return sum(max(0, (span.ended if span.ended is not None else now) - span.started) for span in row.spans) / 1000


UnitFilter: TypeAlias = Literal["all", "running", "needs you", "failed", "stopped", "done", "queued"]
UnitOrder: TypeAlias = Literal["task", "state", "cost", "time"]

FILTERS: tuple[UnitFilter, ...] = get_args(UnitFilter)
ORDERS: tuple[UnitOrder, ...] = get_args(UnitOrder)

_PASSING: dict[UnitFilter, frozenset[UnitState]] = {
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


class UnitList:
    """The units that pass filter and search, in order, and the one at the cursor."""

    def __init__(self, state: FleetState) -> None:
        """Create the list of a state; `update` reads it."""
        self.filter: UnitFilter = "all"
        """Present filter."""
        self.order: UnitOrder = "task"
        """Present order."""
        self.shown: Sequence[UnitRow] = ()
        """Rows in their order."""
        self.place = 0
        """Index of the row at the cursor; 0 if there is none."""
        self._state = state
        self._words: tuple[str, ...] = ()
        self._texts: dict[str, str] = {}

    @property
    def chosen(self) -> UnitRow | None:
        """The row at the cursor; None if no unit is shown."""
        return self.shown[self.place] if self.place < len(self.shown) else None

    @property
    def is_part(self) -> bool:
        """True if a filter or a search may hide units."""
        return self.filter != "all" or bool(self._words)

    def update(self, now: int) -> None:
        """Read the rows again; the cursor stays on its unit, or near the place of one that is no longer shown."""
        chosen = self.chosen
        passing = _PASSING.get(self.filter)
        rows = [row for row in self._state.rows.values() if passing is None or row.state in passing]
        if self._words:
            rows = [row for row in rows if self._matches(row)]
        match self.order:
            case "task":
                pass
            case "state":
                rows.sort(key=lambda row: _RANKS[row.state])
            case "cost":
                rows.sort(key=lambda row: -row.cost)
            case "time":
                rows.sort(key=lambda row: -seconds_of(row, now))
        self.shown = rows
        self.place = min(self.place, max(0, len(rows) - 1))
        if chosen is not None and not (rows and rows[self.place].id == chosen.id):
            self.place = next((place for place, row in enumerate(rows) if row.id == chosen.id), self.place)

    def move(self, by: int) -> None:
        """Move the cursor, at most to an end."""
        self.place = min(max(0, self.place + by), max(0, len(self.shown) - 1))

    def search(self, text: str, now: int) -> None:
        """Show only units in which all words of a text occur."""
        self._words = tuple(text.casefold().split())
        self.update(now)

    def turn_filter(self, by: int, now: int) -> None:
        """Use the next or the previous filter."""
        self.filter = FILTERS[(FILTERS.index(self.filter) + by) % len(FILTERS)]
        self.update(now)

    def turn_order(self, now: int) -> None:
        """Use the next order."""
        self.order = ORDERS[(ORDERS.index(self.order) + 1) % len(ORDERS)]
        self.update(now)

    def show_all(self, now: int) -> None:
        """Remove filter and search."""
        self.filter, self._words = "all", ()
        self.update(now)

    def _matches(self, row: UnitRow) -> bool:
        fixed = self._texts.get(row.id)
        if fixed is None:
            unit = row.unit
            parts = (unit.id, unit.repo, unit.ref, *unit.fields.values(), unit.prompt[:_SEARCHED])
            fixed = self._texts[row.id] = " ".join(parts).casefold()
        worker = row.spans[-1].worker if row.spans else ""
        text = f"{fixed} {row.state} {worker} {row.activity} {row.reason}".casefold()
        return all(word in text for word in self._words)
