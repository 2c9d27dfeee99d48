"""Tells the agent's events with the place they come from, and the status that follows from them."""

from dataclasses import replace

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import AgentEvent, RunEnded

from .status import StatusState, fold_status, status_of


class Teller:
    """The agent's one publisher, also for the calls it runs: so that no event can miss the status."""

    def __init__(self, bus: EventBus, origin: Origin) -> None:
        self.bus = bus
        self.origin = origin
        """Where the agent is now; goes with each event."""
        self._state = StatusState()
        self._status = status_of(self._state)

    def move(self, *, run_id: str | None, turn: int | None = None, step: int | None = None) -> None:
        """The agent is somewhere else from here on."""
        self.origin = replace(self.origin, run_id=run_id, turn=turn, step=step)

    def publish(self, event: AgentEvent) -> None:
        """Tells one event, then the status if it changed; before `run.ended`, which is the last of its run."""
        state = fold_status(self._state, event)
        if state is self._state:
            self.bus.publish(event, self.origin)
            return
        self._state = state
        if isinstance(event, RunEnded):
            self._tell_status()
            self.bus.publish(event, self.origin)
        else:
            self.bus.publish(event, self.origin)
            self._tell_status()

    def _tell_status(self) -> None:
        status = status_of(self._state)
        if status != self._status:
            self._status = status
            self.bus.publish(status, self.origin)
