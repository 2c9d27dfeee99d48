"""The fleet as its screen sees it: live from a real driver over its socket, then from the files that it left."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

from tests.fleet.test_control_server import DELTA, played
from tests.fleet.test_driver import STEP, DrivenFleet
from tests.fleet.test_unit_progress import line_of
from tests.support.forked_program import PROGRAM
from tests.support.terminal import Terminal
from tui_agent.fleet.driver_control import FleetConnection
from tui_agent.fleet.fleet_directory import FleetDirectory
from tui_agent.fleet.worker_messages import EventsReported, UnitEnded, UnitInput
from tui_agent.protocol.fleet_records import FleetStatus
from tui_agent.ui.fleet.fleet_state import FleetFiles, FleetUpdate, InputRejected


async def until(updates: AsyncIterator[FleetUpdate], kind: type[FleetUpdate]) -> FleetUpdate:
    """Return the next update of a kind."""
    return await anext(update async for update in updates if isinstance(update, kind))


async def test_the_screen_follows_a_driver_and_its_files_afterwards(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)

    async def play(viewer: FleetConnection) -> None:
        files = FleetFiles(fleet.directory.path, viewer)
        async with asyncio.TaskGroup() as group:
            group.create_task(files.serve(viewer))
            updates = files.updates()
            first = await anext(updates)
            assert isinstance(first, FleetStatus)
            assert first.running
            await fleet.granted("1")
            await fleet.saved("1", 1, line_of(STEP, 1))
            changed = await anext(updates)
            assert isinstance(changed, FleetStatus)
            assert changed.rows[0].epoch == 1

            events = files.events("1")
            assert [one.seq for one in await anext(events)] == [1]
            fleet.backend.report(EventsReported("1", 1, (DELTA,)))
            assert [one.type for one in await anext(events)] == ["message.delta"]

            files.send("1", {"type": "user", "text": "also this"})
            _, sent = await fleet.backend.next(UnitInput)
            assert json.loads(sent.line) == {"type": "user", "text": "also this"}
            files.send("9", {"type": "stop"})
            assert await until(updates, InputRejected)

            files.stop((), now=False)
            await fleet.backend.next(UnitInput)
            fleet.backend.report(UnitEnded("1", 1, 0, ""))
            *_, last = [update async for update in updates]
            assert isinstance(last, FleetStatus)
            assert not last.running
            assert last.rows[0].state == "stopped"
            assert [batch async for batch in events] == [], "a conversation ends with the driver"
        assert [[one.seq for one in batch] async for batch in files.events("1")] == [[1]]

    await played(fleet, play)


def left_with_q(out: Path) -> int:
    """Show a fleet in a terminal, leave, and return the exit code."""
    environment = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"]}
    command = [str(PROGRAM), "fleet", "status", "--watch", str(out)]
    with Terminal(command, cwd=out, environment=environment, forked=True) as terminal:
        terminal.wait_for("leave")
        terminal.press("q")
        return terminal.wait_for_end()


async def test_a_closed_screen_tells_with_its_exit_code_how_the_fleet_ended(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 2)
    codes: list[int] = []

    async def play(_: FleetConnection) -> None:
        codes.append(await asyncio.to_thread(left_with_q, tmp_path / "out"))
        for unit_id in ("1", "2"):
            await fleet.granted(unit_id)
            fleet.backend.report(UnitEnded(unit_id, 1, 0, "" if unit_id == "1" else "it failed"))

    await played(fleet, play)
    codes.append(await asyncio.to_thread(left_with_q, tmp_path / "out"))
    directory = FleetDirectory.open(tmp_path / "out")
    rows = tuple(row.model_copy(update={"state": "done"}) for row in fleet.driver.status.rows)
    directory.save_status(fleet.driver.status.model_copy(update={"rows": rows}))
    directory.close()
    codes.append(await asyncio.to_thread(left_with_q, tmp_path / "out"))

    assert codes == [0, 1, 0]


async def test_a_fleet_without_a_driver_is_read_only_and_names_the_command_that_continues_it(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 2)
    fleet.directory.close()
    files = FleetFiles(tmp_path / "out")
    updates = files.updates()

    status = await anext(updates)
    files.send("1", {"type": "stop"})
    files.stop((), now=True)

    assert isinstance(status, FleetStatus)
    assert not status.running
    assert len(status.rows) == 2
    assert f"tui-agent fleet retry {tmp_path / 'out'}" in status.notices[0]
    assert isinstance(await anext(updates), InputRejected)
    assert isinstance(await anext(updates), InputRejected)
    assert [batch async for batch in files.events("1")] == []
