"""Viewers of a fleet: orders over the private socket, and its state and events from the files of its directory."""

import asyncio
import json
import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tui_agent.fleet.driver_control import FleetConnection, SendInput, StopUnits, connected, serve_viewers
from tui_agent.fleet.unit_events import UnitLines, seq_of
from tui_agent.fleet.worker_messages import EventsReported, UnitEnded, UnitInput
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.fleet_records import FleetStatus

from .test_driver import STEP, DrivenFleet
from .test_unit_progress import line_of

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
            while not fleet.driver.viewers:
                await asyncio.sleep(0.01)
            await play(viewer)
    fleet.directory.close()
    assert not os.path.lexists(address)
    return running.result()


async def next_lines(unit: UnitLines) -> list[bytes]:
    """Wait for the next events of a unit."""
    while not (lines := unit.read()):
        await asyncio.sleep(0.01)
    return lines


async def test_a_viewer_sees_changes_and_events_and_sends_input(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 2)
    home = tmp_path / "out" / "units" / "1"

    async def play(viewer: FleetConnection) -> None:
        assert stat.S_IMODE(fleet.directory.path.stat().st_mode) == 0o700
        states, refusals = viewer.states(), viewer.refusals()
        assert [row.state for row in (await anext(states)).rows] == ["queued", "queued"]
        await fleet.granted("1")
        await fleet.saved("1", 1, line_of(STEP, 1), line_of(STEP, 2))
        while (await anext(states)).rows[0].step < 2:
            pass

        unit = UnitLines(home)
        assert await next_lines(unit) == [line_of(STEP, 1), line_of(STEP, 2)]
        fleet.backend.report(EventsReported("1", 1, (DELTA,)))
        assert await next_lines(unit) == [DELTA], "deltas are live"
        await fleet.saved("1", 1, line_of(STEP, 4))
        assert await next_lines(unit) == [line_of(STEP, 4)]
        assert stat.S_IMODE((home / "stream.jsonl").stat().st_mode) == 0o600

        viewer.send(SendInput(unit_id="1", command={"type": "user", "text": "also this"}))
        _, sent = await fleet.backend.next(UnitInput)
        assert json.loads(sent.line) == {"type": "user", "text": "also this"}
        viewer.send(SendInput(unit_id="2", command={"type": "stop"}))
        assert await anext(refusals) == "unit 2 does not run"
        viewer.send(SendInput(unit_id="9", command={"type": "stop"}))
        assert await anext(refusals) == "there is no unit 9"

        viewer.send(StopUnits())
        _, sent = await fleet.backend.next(UnitInput)
        assert json.loads(sent.line) == {"type": "stop"}
        fleet.backend.report(UnitEnded("1", 1, 0, ""))
        *_, ended = [status async for status in states]
        assert [row.state for row in ended.rows] == ["stopped", "stopped"]
        assert not ended.running
        assert unit.read() == []
        assert not (home / "stream.jsonl").exists()

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
        viewer.send(StopUnits())

    status = await played(fleet, play)

    assert [row.state for row in status.rows] == ["stopped"]


def test_a_viewer_misses_no_fact_whenever_the_stream_begins_ends_or_starts_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui_agent.fleet.fleet_directory.LARGEST_STREAM", 2_000)
    directory = DrivenFleet(tmp_path / "out", 1).directory
    unit = UnitLines(directory.unit("1"))
    seen: list[bytes] = []
    for number in range(1, 200):
        fact = line_of(STEP, 2 * number)
        delta = line_of(MessageDelta(message_id="m", kind="text", delta="x"), 2 * number + 1)
        directory.append_events("1", [fact])
        if number // 40 % 2:
            directory.show_events("1", [fact, delta])
        else:
            directory.hide_events("1")
        if number % 3 == 0:
            seen += unit.read()
    seen += unit.read()
    unit.close()
    directory.close()

    facts = [line_of(STEP, 2 * number) for number in range(1, 200)]
    assert [line for line in seen if line in facts] == facts
    assert seen == sorted(seen, key=seq_of)
    assert len(seen) > len(facts), "deltas are live"
