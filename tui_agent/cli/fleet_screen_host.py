"""The fleet screen of `fleet run`, `retry` and `status --watch`: live from the driver, or from the files it left."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

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
    ViewerMessage,
    WatchUnit,
)
from tui_agent.fleet.fleet_directory import is_driven, journal_lines, read_status, read_tasks
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.messages import JsonObject, now_ms
from tui_agent.settings import Locations
from tui_agent.ui.base.terminal_environment import TerminalEnvironment
from tui_agent.ui.fleet.fleet_app import FleetApp
from tui_agent.ui.fleet.fleet_port import FleetChange, FleetUpdate, InputRejected

from .process.log_file import LOG_NAME

MOST_EVENTS = 500
"""Events that are parsed at once, so that the screen answers keys in between."""
_GONE = InputRejected("No driver works on this fleet, so nothing was sent.")


class StoredFleet:
    """A fleet without a driver, as its files show it. It takes no input; implements `FleetPort`."""

    def __init__(self, out: Path) -> None:
        """Read nothing yet.

        Args:
            out: the directory of the fleet.
        """
        self.return_command = f"tui-agent fleet status --watch {out}"
        """Command that shows this fleet again."""
        self._out = out
        text = f"No driver works on this fleet. To continue its units: tui-agent fleet retry {out}"
        self._unfinished = FleetChange(notices=(text,))
        self._updates: asyncio.Queue[FleetUpdate | None] = asyncio.Queue()

    async def updates(self) -> AsyncIterator[FleetUpdate]:
        """Yield the stored status, then refusals."""
        stored = await asyncio.to_thread(read_status, self._out)
        yield stored
        if any(not row.ended for row in stored.rows):
            yield self._unfinished
        while (update := await self._updates.get()) is not None:
            yield update

    async def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the events of a unit's journal."""
        path = self._out / "units" / unit_id / "journal.jsonl"
        lines = await asyncio.to_thread(journal_lines, path, 0)
        for start in range(0, len(lines), MOST_EVENTS):
            yield await asyncio.to_thread(_parsed, lines[start : start + MOST_EVENTS])

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        """Refuse a command."""
        self._updates.put_nowait(_GONE)

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        """Refuse to stop: nothing runs."""
        self._updates.put_nowait(_GONE)


class DrivenFleet(StoredFleet):
    """A fleet with a driver; implements `FleetPort`. When the driver leaves, the files remain."""

    def __init__(self, out: Path, driver: FleetConnection) -> None:
        """Create the port; `serve` does its work.

        Args:
            out: the directory of the fleet.
            driver: the connection to its driver.
        """
        super().__init__(out)
        self._driver = driver
        self._messages: asyncio.Queue[ViewerMessage] = asyncio.Queue()
        self._watched: dict[str, asyncio.Queue[Sequence[str] | None]] = {}
        self._is_over = self._has_ended = False

    async def serve(self) -> None:
        """Carry messages both ways until the driver leaves."""
        self._messages.put_nowait(FollowRows())
        sender: asyncio.Task[None] | None = None
        try:
            async with asyncio.TaskGroup() as group:
                sender = group.create_task(self._send_messages())
                async for reply in self._driver.replies():
                    self._take(reply)
                sender.cancel()
        finally:
            self._is_over = True
            for lines in self._watched.values():
                lines.put_nowait(None)
            if not self._has_ended:
                self._updates.put_nowait(self._unfinished)
            self._updates.put_nowait(None)

    async def _send_messages(self) -> None:
        try:
            while True:
                await self._driver.send(await self._messages.get())
        except ConnectionError:
            return  # The replies end, too, and with them everything else.

    def _take(self, reply: DriverReply) -> None:
        match reply:
            case StatusSent(status=status):
                self._updates.put_nowait(status)
            case FleetEnded(status=status):
                self._has_ended = True
                self._updates.put_nowait(status.without_driver(now_ms()))
            case RowsChanged(rows=rows, questions=questions, paused_until=paused_until, notices=notices):
                self._updates.put_nowait(FleetChange(rows, questions, paused_until, notices))
            case InputRefused(text=text):
                self._updates.put_nowait(InputRejected(text))
            case EventsSent(unit_id=unit_id, lines=lines):
                if (waiting := self._watched.get(unit_id)) is not None:
                    waiting.put_nowait(lines)

    async def updates(self) -> AsyncIterator[FleetUpdate]:
        """Yield the driver's status and changes until it leaves."""
        while (update := await self._updates.get()) is not None:
            yield update

    async def events(self, unit_id: str, /) -> AsyncIterator[Sequence[Envelope]]:
        """Yield the events of a unit, those in its journal first."""
        if self._is_over:
            async for stored in super().events(unit_id):
                yield stored
            return
        waiting = self._watched[unit_id] = asyncio.Queue[Sequence[str] | None]()
        self._messages.put_nowait(WatchUnit(unit_id=unit_id))
        try:
            while (lines := await waiting.get()) is not None:
                for start in range(0, len(lines), MOST_EVENTS):
                    part = lines[start : start + MOST_EVENTS]
                    # A few lines take less time than a thread.
                    parsed = _parsed(part) if len(part) < 20 else await asyncio.to_thread(_parsed, part)
                    yield parsed
        finally:
            if self._watched.get(unit_id) is waiting:
                del self._watched[unit_id]
                self._messages.put_nowait(WatchUnit(unit_id=unit_id, watching=False))

    def send(self, unit_id: str, command: JsonObject, /) -> None:
        """Send a command to a unit."""
        self._order(SendInput(unit_id=unit_id, command=command))

    def stop(self, unit_ids: Sequence[str], /, *, now: bool) -> None:
        """Stop units, or the whole fleet."""
        self._order(StopUnits(unit_ids=tuple(unit_ids), now=now))

    def _order(self, message: ViewerMessage) -> None:
        if self._is_over:
            self._updates.put_nowait(_GONE)
        else:
            self._messages.put_nowait(message)


def show_fleet(out: Path) -> int:
    """Show the screen of a fleet until the user leaves.

    Returns:
        The exit code: 1 if the fleet has ended and a unit is not done, 0 if all are, or if the fleet continues.

    Raises:
        ConfigurationError: there is no fleet.
    """
    read_tasks(out)
    return asyncio.run(_show(out))


async def _show(out: Path) -> int:
    if not await asyncio.to_thread(is_driven, out):
        return await _run_app(StoredFleet(out), out)
    async with connected(out) as driver:
        port = DrivenFleet(out, driver)
        async with asyncio.TaskGroup() as group:
            service = group.create_task(port.serve())
            try:
                return await _run_app(port, out)
            finally:
                service.cancel()


async def _run_app(port: StoredFleet, out: Path) -> int:
    locations = Locations.of_user(os.environ)
    app = FleetApp(
        port,
        theme="auto",
        themes_dirs=(locations.user_themes_dir,),
        surroundings=TerminalEnvironment.of_environment(os.environ),
        log_file=locations.log_dir / LOG_NAME,
        notifications="auto",
        name=out.name,
    )
    await app.run_async()
    fleet = app.fleet.state
    unfinished = not fleet.running and any(row.state != "done" for row in fleet.rows.values())
    return app.return_code or int(unfinished)


def _parsed(lines: Sequence[str] | Sequence[bytes]) -> list[Envelope]:
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
