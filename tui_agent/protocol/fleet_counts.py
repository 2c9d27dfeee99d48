"""Sums over the rows of a fleet."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from .fleet_records import ENDED_STATES, UnitRow, UnitState


@dataclass(frozen=True, slots=True)
class FleetCounts:
    """Units by their state, and the sum of what they used so far."""

    states: Counter[UnitState]
    input_tokens: int
    output_tokens: int
    cost: float
    unknown_effects: int

    @property
    def units(self) -> int:
        """All units."""
        return self.states.total()

    @property
    def ended(self) -> int:
        """Units that ended."""
        return sum(self.states[state] for state in ENDED_STATES)

    @property
    def tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    @property
    def working(self) -> int:
        """Units on a worker."""
        return self.units - self.ended - self.states["queued"] - self.states["interrupted"]


def count_rows(rows: Iterable[UnitRow]) -> FleetCounts:
    """Return the sums."""
    states: Counter[UnitState] = Counter()
    read = written = unknown = 0
    cost = 0.0
    for row in rows:
        states[row.state] += 1
        read += row.input_tokens
        written += row.output_tokens
        cost += row.cost
        unknown += row.unknown_effects
    return FleetCounts(states, read, written, cost, unknown)
