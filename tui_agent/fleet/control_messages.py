"""Messages between the driver of a fleet and its viewers, one JSON object a line over a private Unix socket.

A viewer is the fleet screen, `fleet events`, `fleet stop` or `fleet status`. The driver works on without one.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from tui_agent.protocol.fleet_records import FleetStatus, UnitQuestion, UnitRow
from tui_agent.protocol.messages import FrozenModel, JsonObject


class FollowRows(FrozenModel):
    """Send the status now, then every change, at most ten times a second."""

    type: Literal["follow"] = "follow"


class WatchUnit(FrozenModel):
    """Send all events of a unit from a number on, deltas included, until `watching` is false."""

    type: Literal["watch"] = "watch"
    unit_id: str
    since: int = 0
    """Number (`seq`) of the last event that the viewer has."""
    watching: bool = True


class SendInput(FrozenModel):
    """Send a command of stream-json to a unit: a steering message, an answer, an interrupt."""

    type: Literal["input"] = "input"
    unit_id: str
    command: JsonObject


class StopUnits(FrozenModel):
    """Stop units after their steps, or now."""

    type: Literal["stop"] = "stop"
    unit_ids: tuple[str, ...] = ()
    """Units; empty for all, which ends the fleet."""
    now: bool = False


ViewerMessage: TypeAlias = FollowRows | WatchUnit | SendInput | StopUnits


class StatusSent(FrozenModel):
    """The whole state."""

    type: Literal["status"] = "status"
    status: FleetStatus


class RowsChanged(FrozenModel):
    """Rows that changed, and all open questions."""

    type: Literal["rows"] = "rows"
    rows: tuple[UnitRow, ...]
    questions: tuple[UnitQuestion, ...]
    paused_until: int = 0
    notices: tuple[str, ...] = ()
    """Notices since the last message."""


class EventsSent(FrozenModel):
    """Events of a watched unit."""

    type: Literal["events"] = "events"
    unit_id: str
    lines: tuple[str, ...]
    """Envelopes as JSON."""


class InputRefused(FrozenModel):
    """A message of the viewer had no effect."""

    type: Literal["refused"] = "refused"
    text: str
    """Reason, in words for the user."""


class FleetEnded(FrozenModel):
    """Every unit has ended; the driver leaves."""

    type: Literal["ended"] = "ended"
    status: FleetStatus


DriverReply: TypeAlias = StatusSent | RowsChanged | EventsSent | InputRefused | FleetEnded

VIEWER_MESSAGES: TypeAdapter[ViewerMessage] = TypeAdapter(Annotated[ViewerMessage, Field(discriminator="type")])
DRIVER_REPLIES: TypeAdapter[DriverReply] = TypeAdapter(Annotated[DriverReply, Field(discriminator="type")])
