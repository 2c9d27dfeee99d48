"""Publishes the agent's events with their origin, the status that follows from them, and the time spent waiting for the
user.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import AgentEvent, ApprovalRequested, ApprovalResolved, RunEnded

from .status import StatusState, fold_status, status_of


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


class EventPublisher:
    """The only publisher of an agent and its calls, so that every event updates the status."""

    def __init__(self, bus: EventBus, origin: Origin, waits: ApprovalWaitClock | None = None) -> None:
        self.bus = bus
        self.origin = origin
        """The current run and step of the agent; part of each event."""
        self.waits = waits or ApprovalWaitClock()
        """The time spent waiting for the user."""
        self._state = StatusState()
        self._status = status_of(self._state)

    def move(self, *, run_id: str | None, turn: int | None = None, step: int | None = None) -> None:
        """Set the origin of the following events."""
        self.origin = replace(self.origin, run_id=run_id, turn=turn, step=step)

    def publish(self, event: AgentEvent) -> None:
        """Publish an event, then the status if it changed.

        `run.ended` is the last event of its run: the status comes before it, and events published in response to it
        belong to no run.
        """
        self.waits.note(event)
        origin, before = self.origin, self._state
        self._state = fold_status(before, event)
        if isinstance(event, RunEnded):
            self._publish_status(origin)
            self.move(run_id=None)
            self.bus.publish(event, origin)
            return
        self.bus.publish(event, origin)
        if self._state is not before:
            self._publish_status(origin)

    def _publish_status(self, origin: Origin) -> None:
        status = status_of(self._state)
        if status != self._status:
            self._status = status
            self.bus.publish(status, origin)
