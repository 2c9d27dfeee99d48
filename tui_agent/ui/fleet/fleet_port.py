"""Connection between the screen of a fleet and its driver, or the files that a driver left."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.fleet_records import FleetStatus
from tui_agent.protocol.messages import JsonObject


@dataclass(frozen=True, slots=True)
class InputRejected:
    """Input of the user had no effect."""

    text: str
    """Reason, in words for the user."""


FleetUpdate: TypeAlias = FleetStatus | InputRejected


class FleetPort(Protocol):
    """The fleet as its screen sees it. Every method but the iterators returns at once."""

    @property
    def return_command(self) -> str:
        """Command that shows this fleet again after its screen was closed."""
        ...

    def updates(self) -> AsyncIterator[FleetUpdate]:
        """Yield the status whenever it has changed; end when it cannot change.

        The last status has `running=False`: every unit has ended, or no driver works on the fleet.

        Raises:
            TuiAgentError: the fleet cannot be read, or the connection was lost.
        """
        ...

    def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        """Yield all events of a unit from the first one on, deltas included; end when none can follow.

        Raises:
            TuiAgentError: they cannot be read.
        """
        ...

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        """Send a command of stream-json to a unit; a refusal follows as an update."""
        ...

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        """Stop units after their steps, or now; without ids all of them, which ends the fleet."""
        ...
