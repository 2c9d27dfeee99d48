"""The driver's side of the private socket: serves viewers, each with what it asked for."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.background import run_service
from tui_agent.protocol.fleet_records import UnitRow

from .control_messages import (
    VIEWER_MESSAGES,
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
from .driver import FleetDriver
from .fleet_directory import journal_lines
from .fleet_feed import FeedSubscription
from .unit_events import seq_of

LONGEST_LINE = 4 * 1024 * 1024
"""Bytes of a viewer's message."""
PAUSE = 0.1
"""Seconds between two messages about changes."""
LINES_A_MESSAGE = 500


async def serve_viewers(driver: FleetDriver) -> None:
    """Serve viewers until cancelled; on cancellation, tell them the end of the fleet.

    Raises:
        OSError: the socket cannot be made.
    """
    path = await asyncio.to_thread(driver.directory.make_socket_path)
    async with asyncio.TaskGroup() as tasks:
        ending = asyncio.Event()
        viewers: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            viewer = tasks.create_task(_Viewer(driver, reader, writer).serve(ending))
            viewers.add(viewer)
            viewer.add_done_callback(viewers.discard)

        # Its directory is private, and so is the socket.
        server = await asyncio.start_unix_server(connected, path, limit=LONGEST_LINE)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            ending.set()
            if viewers:
                await asyncio.wait(viewers, timeout=1.0)
            await asyncio.to_thread(_remove, path, driver.directory.path / "control.sock")


def _remove(path: Path, address: Path) -> None:
    path.unlink(missing_ok=True)
    address.unlink(missing_ok=True)
    if path != address:
        path.parent.rmdir()


class _Viewer:
    """One connection."""

    def __init__(self, driver: FleetDriver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._driver = driver
        self._reader = reader
        self._writer = writer
        self._follows = False
        self._last: dict[str, int] = {}
        """Number of the last event sent of each watched unit."""

    async def serve(self, ending: asyncio.Event) -> None:
        """Serve the viewer until it leaves, or the driver ends."""
        try:
            with self._driver.feed.subscribed() as feed:
                async with asyncio.TaskGroup() as tasks:
                    work = [
                        tasks.create_task(self._guarded(self._read(feed))),
                        tasks.create_task(self._guarded(self._tell(feed))),
                        tasks.create_task(_wait(ending)),
                    ]
                    await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
                    for task in work:
                        task.cancel()
            if ending.is_set():
                with suppress(ConnectionError):
                    await self._send(FleetEnded(status=self._driver.status.model_copy(update={"running": False})))
        finally:
            self._writer.close()

    async def _guarded(self, work: Awaitable[None]) -> None:
        """Serve until the viewer leaves; an error ends this viewer, never the driver."""
        with suppress(ConnectionError):
            await run_service("viewer of the fleet", work)

    async def _read(self, feed: FeedSubscription) -> None:
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                return
            try:
                message = VIEWER_MESSAGES.validate_json(line)
            except ValidationError:
                await self._send(InputRefused(text="the message was not understood; nothing was done"))
                continue
            match message:
                case FollowRows():
                    self._follows = True
                    feed.changed.clear()
                    await self._send(StatusSent(status=self._driver.status))
                case WatchUnit():
                    await self._watch(message, feed)
                case SendInput(unit_id=unit_id, command=command):
                    if refusal := await self._driver.send_input(unit_id, command):
                        await self._send(InputRefused(text=refusal))
                case StopUnits(unit_ids=unit_ids, now=now):
                    await self._driver.stop(unit_ids, now=now)

    async def _watch(self, message: WatchUnit, feed: FeedSubscription) -> None:
        if not message.watching:
            feed.unwatch(message.unit_id)
            self._last.pop(message.unit_id, None)
        elif message.unit_id not in self._driver.units:
            await self._send(InputRefused(text=f"there is no unit {message.unit_id}"))
        else:
            self._last[message.unit_id] = message.since
            feed.watch(message.unit_id)
            feed.missed.add(message.unit_id)
            feed.awake.set()

    async def _tell(self, feed: FeedSubscription) -> None:
        """Send what changed, at most every `PAUSE` seconds."""
        while True:
            await feed.awake.wait()
            feed.awake.clear()
            for unit_id in tuple(feed.lines):
                await self._tell_events(unit_id, feed)
            if self._follows and (feed.changed or feed.notices):
                await self._send(self._changes(feed))
            await asyncio.sleep(PAUSE)

    def _changes(self, feed: FeedSubscription) -> RowsChanged:
        units = self._driver.units
        rows: tuple[UnitRow, ...] = tuple(units[unit_id].row for unit_id in feed.changed)
        notices = tuple(feed.notices)
        feed.changed.clear()
        feed.notices.clear()
        return RowsChanged(
            rows=rows,
            questions=self._driver.questions,
            paused_until=self._driver.paused_until,
            notices=notices,
        )

    async def _tell_events(self, unit_id: str, feed: FeedSubscription) -> None:
        """Send the events of a watched unit; those that could not wait come from its journal."""
        if unit_id in feed.missed and (since := self._last.get(unit_id)) is not None:
            feed.missed.discard(unit_id)
            path = self._driver.directory.unit(unit_id) / "journal.jsonl"
            await self._send_lines(unit_id, await asyncio.to_thread(partial(journal_lines, path, since)))
        # Meanwhile the viewer may have turned away.
        if lines := feed.lines.get(unit_id):
            feed.lines[unit_id] = []
            await self._send_lines(unit_id, lines)

    async def _send_lines(self, unit_id: str, lines: list[bytes]) -> None:
        last = self._last.get(unit_id)
        if last is None:
            return
        fresh = [line for line in lines if seq_of(line) > last]
        for start in range(0, len(fresh), LINES_A_MESSAGE):
            part = fresh[start : start + LINES_A_MESSAGE]
            texts = tuple(line.decode("utf-8", "replace") for line in part)
            if unit_id not in self._last:
                return
            self._last[unit_id] = max(self._last[unit_id], *(seq_of(line) for line in part))
            await self._send(EventsSent(unit_id=unit_id, lines=texts))

    async def _send(self, reply: DriverReply) -> None:
        self._writer.write(reply.model_dump_json().encode() + b"\n")
        await self._writer.drain()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
