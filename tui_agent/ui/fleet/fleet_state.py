"""State of the screen of a fleet: its last status, and sums over its units."""

from dataclasses import dataclass

from tui_agent.protocol.fleet_counts import FleetCounts, count_rows
from tui_agent.protocol.fleet_records import FleetStatus, UnitQuestion, UnitRow

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
