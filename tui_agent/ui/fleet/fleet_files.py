"""The fleet as its screen sees it: live from the driver, or from the files that it left."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from tui_agent.fleet.driver_client import LOOK_SECONDS, FleetConnection, Order, SendInput, StopUnits, connected
from tui_agent.fleet.fleet_directory import is_driven, read_status
from tui_agent.fleet.unit_events import UnitLines
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus
from tui_agent.protocol.messages import JsonObject

MOST_EVENTS = 500
"""Events that are parsed at once, so that the screen answers keys in between."""


@dataclass(frozen=True, slots=True)
class InputRejected:
    """Input of the user had no effect."""

    text: str
    """Reason, in words for the user."""


FleetUpdate: TypeAlias = FleetStatus | InputRejected
_GONE = InputRejected("No driver works on this fleet, so nothing was sent.")


class FleetFiles:
    """A fleet as its files show it, and its driver, if one works on it.

    Every method but the iterators and `serve` returns at once.
    """

    def __init__(self, out: Path, driver: FleetConnection | None = None) -> None:
        """Read nothing yet; `serve` does the work for the driver, without which the fleet takes no input."""
        self.return_command = f"tui-agent fleet status --watch {out}"
        """Command that shows this fleet again."""
        self._out = out
        self._driver = driver
        self._updates: asyncio.Queue[FleetUpdate | None] = asyncio.Queue()

    async def serve(self, driver: FleetConnection) -> None:
        """Follow the driver until it leaves. The files remain."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._take_refusals(driver))
                async for status in driver.states():
                    self._updates.put_nowait(self._with_advice(status))
        except* ConfigurationError as errors:
            self._updates.put_nowait(InputRejected(str(errors.exceptions[0])))
        finally:
            self._driver = None
            self._updates.put_nowait(None)

    async def _take_refusals(self, driver: FleetConnection) -> None:
        async for reason in driver.refusals():
            self._updates.put_nowait(InputRejected(reason))

    def _with_advice(self, status: FleetStatus) -> FleetStatus:
        """Say how units continue that no driver works on."""
        if status.running or all(row.ended for row in status.rows):
            return status
        text = f"No driver works on this fleet. To continue its units: tui-agent fleet retry {self._out}"
        return status.model_copy(update={"notices": (*status.notices, text)})

    async def updates(self) -> AsyncIterator[FleetUpdate]:
        """Yield the status whenever it changes, and refusals, until the driver leaves; without one, only refusals.

        The last status has `running=False`: every unit has ended, or no driver works on the fleet.

        Raises:
            TuiAgentError: the fleet cannot be read, or the connection was lost.
        """
        if self._driver is None:
            yield self._with_advice(await asyncio.to_thread(read_status, self._out))
        while (update := await self._updates.get()) is not None:
            yield update

    async def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        """Yield all events of a unit, deltas included, those in its journal first, until the driver leaves.

        Raises:
            OSError: they cannot be read.
        """
        unit = UnitLines(self._out / "units" / unit_id)
        try:
            is_driven = True
            while is_driven:
                is_driven = self._driver is not None
                lines = await asyncio.to_thread(unit.read)
                for start in range(0, len(lines), MOST_EVENTS):
                    part = lines[start : start + MOST_EVENTS]
                    # A few lines take less time than a thread.
                    yield _parsed(part) if len(part) < 20 else await asyncio.to_thread(_parsed, part)
                if is_driven:
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            unit.close()

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        """Send a command of stream-json to a unit; a refusal follows as an update."""
        self._order(SendInput(unit_id=unit_id, command=command))

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        """Stop units after their steps, or now; without ids all of them, which ends the fleet."""
        self._order(StopUnits(unit_ids=tuple(unit_ids), now=now))

    def _order(self, order: Order) -> None:
        if self._driver is None:
            self._updates.put_nowait(_GONE)
        else:
            self._driver.send(order)


def _parsed(lines: Sequence[bytes]) -> list[Envelope]:
    """Return the events of some lines; lines of a later version or damaged ones are left out."""
    events: list[Envelope] = []
    for line in lines:
        try:
            event = read_envelope(line)
        except ValueError:
            continue
        if event is not None:
            events.append(event)
    return events


@asynccontextmanager
async def open_fleet(out: Path) -> AsyncGenerator[FleetFiles]:
    """Open the files of a fleet, with its driver if one works on it."""
    if not await asyncio.to_thread(is_driven, out):
        yield FleetFiles(out)
        return
    async with connected(out) as driver, asyncio.TaskGroup() as group:
        files = FleetFiles(out, driver)
        service = group.create_task(files.serve(driver))
        try:
            yield files
        finally:
            service.cancel()
