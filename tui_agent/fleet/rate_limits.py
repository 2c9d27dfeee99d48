"""Rate limits of the model slow the whole fleet: a unit that meets one lets all wait."""

from collections.abc import Callable
from time import monotonic

FIRST_WAIT = 2.0
LONGEST_WAIT = 120.0
QUIET = 60.0
"""Seconds without a rate limit after which the next one counts as the first."""


class RateLimits:
    """Decides how long the fleet waits."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        """Store the clock, in seconds."""
        self._clock = clock
        self._wait = FIRST_WAIT
        self._until = 0.0
        self._last = float("-inf")

    @property
    def left(self) -> float:
        """Seconds that the fleet still waits."""
        return max(0.0, self._until - self._clock())

    def meet(self, wait: float) -> float | None:
        """Note a rate limit.

        Args:
            wait: seconds that the unit waits that met it.

        Returns:
            Seconds that the fleet waits from now; None if it waits that long already.
        """
        now = self._clock()
        if now - self._last > QUIET:
            self._wait = FIRST_WAIT
        elif now >= self._until:
            # Units that were asking already when the wait began tell nothing new.
            self._wait = min(LONGEST_WAIT, 2 * self._wait)
        self._last = now
        until = now + min(LONGEST_WAIT, max(wait, self._wait))
        if until <= self._until + 1.0:
            return None
        self._until = until
        return until - now
