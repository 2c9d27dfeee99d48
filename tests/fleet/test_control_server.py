"""Viewers of a fleet: state, changes, the events of a unit, input and stops over the private socket."""

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tui_agent.fleet.control_client import FleetConnection, connected
from tui_agent.fleet.control_messages import (
    DriverReply,
    EventsSent,
    FleetEnded,
    FollowRows,
    InputRefused,
    RowsChanged,
    SendInput,
    StatusSent,
    StopUnits,
    WatchUnit,
)
from tui_agent.fleet.control_server import serve_viewers
from tui_agent.fleet.worker_messages import EventsReported, UnitEnded, UnitInput
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.fleet_records import FleetStatus

from .test_driver import STEP, DrivenFleet
from .test_unit_progress import line_of

Reply = TypeVar("Reply", bound=DriverReply)
DELTA = line_of(MessageDelta(message_id="m", kind="text", delta="live"), 3)


async def played(fleet: DrivenFleet, play: Callable[[FleetConnection], Awaitable[None]]) -> FleetStatus:
    """Run a fleet with one viewer until every unit has ended."""
    out = fleet.directory.path
    address = out / "control.sock"
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(fleet.driver.run(serve_viewers))
        while not address.exists():
            await asyncio.sleep(0.01)
        async with connected(out) as viewer:
            await play(viewer)
    fleet.directory.close()
    assert not os.path.lexists(address)
    return running.result()


async def reply(viewer: FleetConnection, kind: type[Reply]) -> Reply:
    """Wait for the next reply of a kind."""
    async for found in viewer.replies():
        if isinstance(found, kind):
            return found
    raise AssertionError("the driver is gone")


async def test_a_viewer_sees_changes_and_events_and_sends_input(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 2)

    async def play(viewer: FleetConnection) -> None:
        assert stat.S_IMODE(fleet.directory.path.stat().st_mode) == 0o700
        await viewer.send(FollowRows())
        assert [row.state for row in (await reply(viewer, StatusSent)).status.rows] == ["queued", "queued"]
        await fleet.granted("1")
        await fleet.saved("1", 1, line_of(STEP, 1), line_of(STEP, 2))
        rows = (await reply(viewer, RowsChanged)).rows
        assert {row.id for row in rows} == {"1"}

        await viewer.send(WatchUnit(unit_id="1", since=1))
        assert (await reply(viewer, EventsSent)).lines == (line_of(STEP, 2).decode(),), "only what it does not have"
        fleet.backend.report(EventsReported("1", 1, (DELTA,), 0))
        assert (await reply(viewer, EventsSent)).lines == (DELTA.decode(),), "deltas are live"

        await viewer.send(SendInput(unit_id="1", command={"type": "user", "text": "also this"}))
        _, sent = await fleet.backend.next(UnitInput)
        assert json.loads(sent.line) == {"type": "user", "text": "also this"}
        await viewer.send(SendInput(unit_id="2", command={"type": "stop"}))
        assert (await reply(viewer, InputRefused)).text == "unit 2 does not run"
        await viewer.send(WatchUnit(unit_id="9"))
        assert (await reply(viewer, InputRefused)).text == "there is no unit 9"

        await viewer.send(StopUnits())
        _, sent = await fleet.backend.next(UnitInput)
        assert json.loads(sent.line) == {"type": "stop"}
        fleet.backend.report(UnitEnded("1", 1, 0, ""))
        ended = await reply(viewer, FleetEnded)
        assert [row.state for row in ended.status.rows] == ["stopped", "stopped"]
        assert not ended.status.running

    await played(fleet, play)

    with pytest.raises(ConfigurationError, match="no driver runs"):
        async with connected(tmp_path / "out"):
            pass


async def test_a_wrong_message_is_refused_and_the_fleet_works_on(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / ("long-name-" * 12), 1)

    async def play(viewer: FleetConnection) -> None:
        reader, writer = await asyncio.open_unix_connection((fleet.directory.path / "control.sock").resolve())
        writer.write(b'{"type": "drop everything"}\n')
        assert b"not understood" in await reader.readline()
        writer.close()
        await writer.wait_closed()
        await viewer.send(StopUnits())
        await reply(viewer, FleetEnded)

    status = await played(fleet, play)

    assert [row.state for row in status.rows] == ["stopped"]


async def test_a_viewer_that_turns_away_at_once_does_not_end_the_fleet(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)

    async def play(viewer: FleetConnection) -> None:
        await fleet.granted("1")
        await fleet.saved("1", 1, *(line_of(STEP, number) for number in range(1, 2_000)))
        for _ in range(20):
            await viewer.send(WatchUnit(unit_id="1"))
            await asyncio.sleep(0.02)
            await viewer.send(WatchUnit(unit_id="1", watching=False))
            await asyncio.sleep(0.02)
        await viewer.send(StopUnits())
        await fleet.backend.next(UnitInput)
        fleet.backend.report(UnitEnded("1", 1, 0, ""))
        await reply(viewer, FleetEnded)

    status = await played(fleet, play)

    assert [row.state for row in status.rows] == ["stopped"]
