"""The part of a run that a timeline shows."""

from dataclasses import dataclass, replace

from tui_agent.ui.state.run_times import RunTimes

SHORTEST = 0.1
"""Least seconds that the width stands for."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A part of the run."""

    start: float = 0.0
    """Seconds from the start of the run."""
    span: float = 0.0
    """Seconds; 0 for the whole run."""
    follows: bool = True
    """True if it ends at the present moment."""

    def seen(self, length: float) -> tuple[float, float]:
        """Return the first second and the number of seconds to show of a run of this length."""
        whole = max(length, SHORTEST)
        span = min(self.span, whole) if self.span else whole
        start = whole - span if self.follows else min(max(0.0, self.start), whole - span)
        return start, span

    def zoomed(self, factor: float, length: float) -> "TimeWindow":
        """Return a window that shows `factor` times as much, with the same middle unless it follows."""
        start, span = self.seen(length)
        wanted = max(SHORTEST, span * factor)
        if wanted >= max(length, SHORTEST):
            return TimeWindow(follows=self.follows)
        return replace(self, start=start + (span - wanted) / 2, span=wanted)

    def panned(self, steps: int, length: float) -> "TimeWindow":
        """Return a window that is moved by quarters; it no longer follows, unless it reaches the end."""
        start, span = self.seen(length)
        moved = min(max(0.0, start + steps * span / 4), max(length, SHORTEST) - span)
        at_end = steps > 0 and moved + span >= length
        return TimeWindow(moved, span, follows=at_end)


def length_of(times: RunTimes, now: float) -> float:
    """Return the seconds of the run so far."""
    return 0.0 if times.started is None else max(0.0, (now if times.ended is None else times.ended) - times.started)
