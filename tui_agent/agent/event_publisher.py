"""Publishes the agent's events with their origin, and the status that follows from them."""

from dataclasses import replace

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import AgentEvent, RunEnded

from .approval_wait_clock import ApprovalWaitClock
from .status import StatusState, fold_status, status_of


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
