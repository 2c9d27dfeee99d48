"""Units as processes of this machine: as many places as the user named, without a cluster."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from .backend import MOST_MESSAGES
from .unit_runner import UnitHost, run_unit
from .worker_messages import DriverLink, DriverMessage, WorkerMessage


class LocalBackend:
    """Runs units in this process' event loop; implements `Backend`."""

    def __init__(self, places: int, host: UnitHost) -> None:
        """
        Args:
            places: units at the same time.
            host: this machine; each place gets a name of its own.
        """
        self._places = places
        self._host = host
        self._units: asyncio.Queue[str] = asyncio.Queue()
        self._messages: asyncio.Queue[WorkerMessage] = asyncio.Queue(MOST_MESSAGES)
        self._inboxes: dict[str, asyncio.Queue[DriverMessage]] = {}

    @property
    def places(self) -> int:
        """Units at the same time."""
        return self._places

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Start the places; on exit end every unit that runs."""
        async with asyncio.TaskGroup() as tasks:
            places = [tasks.create_task(self._serve(number)) for number in range(1, self._places + 1)]
            try:
                yield
            finally:
                for place in places:
                    place.cancel()

    async def submit(self, unit_id: str) -> None:
        """Queue a unit."""
        await self._units.put(unit_id)

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        """Send a message to the place that runs a unit."""
        if inbox := self._inboxes.get(unit_id):
            inbox.put_nowait(message)

    async def messages(self) -> AsyncIterator[WorkerMessage]:
        """Yield the messages of all places."""
        while True:
            yield await self._messages.get()

    async def _serve(self, number: int) -> None:
        host = replace(self._host, worker=f"{self._host.worker}-{number}")
        while True:
            unit_id = await self._units.get()
            inbox = self._inboxes[unit_id] = asyncio.Queue[DriverMessage]()
            try:
                await run_unit(unit_id, DriverLink(self._messages.put, inbox.get), host)
            finally:
                del self._inboxes[unit_id]
