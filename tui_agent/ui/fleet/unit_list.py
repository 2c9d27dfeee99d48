"""Selection of units to show: filter, search words, order and cursor. Pure."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

from tui_agent.protocol.fleet_records import UnitRow, UnitState

from .fleet_state import FleetState, seconds_of

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
