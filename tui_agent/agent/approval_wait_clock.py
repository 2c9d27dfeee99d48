"""The time an agent and its sub-agents spent waiting for the user."""

import time
from collections.abc import Callable

from tui_agent.protocol.events import AgentEvent, ApprovalRequested, ApprovalResolved


class ApprovalWaitClock:
    """Sums the time in which at least one approval request of an agent or its sub-agents was open."""

    def __init__(self, above: "ApprovalWaitClock | None" = None, *, now: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            above: the clock of the parent agent.
            now: returns the time in seconds.
        """
        self._above = above
        self._now = now
        self._open = 0
        self._since = 0.0
        self._total = 0.0

    @property
    def ms(self) -> float:
        """Milliseconds so far."""
        return (self._total + (self._now() - self._since if self._open else 0.0)) * 1000

    def note(self, event: AgentEvent) -> None:
        """Take the next event of the agent."""
        if isinstance(event, ApprovalRequested):
            self._begin()
        elif isinstance(event, ApprovalResolved):
            self._end()

    def _begin(self) -> None:
        if not self._open:
            self._since = self._now()
        self._open += 1
        if self._above is not None:
            self._above._begin()

    def _end(self) -> None:
        self._open -= 1
        if not self._open:
            self._total += self._now() - self._since
        if self._above is not None:
            self._above._end()
