"""Runners of the units of a fleet: processes of this machine, or a Dask cluster, with the choice between them.

It is without Dask, so that a start without a cluster does not pay for it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tui_agent.protocol.errors import TuiAgentError
from tui_agent.protocol.messages import FrozenModel

from .unit_runner import UnitHost, run_unit
from .worker_messages import DriverLink, DriverMessage, WorkerMessage


class TlsFiles(FrozenModel):
    """Files in PEM format for the connections to a cluster; None for those of Dask's configuration."""

    ca: Path | None = None
    """Certificate of the authority that signed all certificates of the cluster."""
    cert: Path | None = None
    key: Path | None = None


class ClusterChoice(FrozenModel):
    """A cluster for one run of a fleet."""

    scheduler: str = ""
    """Address of a scheduler; empty to start a cluster on this machine."""
    workers: int = 1
    """Processes of a cluster that is started; each runs one unit at a time."""
    tls: TlsFiles = TlsFiles()


MOST_MESSAGES = 64
"""Messages of units that wait for the driver; while there are more, the units wait. Their processes merge deltas then,
and keep their facts."""


class Backend(Protocol):
    """Places units on workers and carries messages. It decides nothing about a unit."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Connect, or start workers; on exit end every unit that runs.

        Raises:
            ConfigurationError: the cluster cannot be reached, or its address is not safe.
        """
        ...

    @property
    def places(self) -> int:
        """Units that can run at the same time now."""
        ...

    async def submit(self, unit_id: str) -> None:
        """Queue a unit. A worker claims it when it has room; again if its worker dies."""
        ...

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        """Send a message to the worker that claimed the unit last; without one, or if it died, do nothing."""
        ...

    def messages(self) -> AsyncIterator[WorkerMessage]:
        """Yield the messages of all workers, those of one unit in order. The caller's pace limits the units.

        Raises:
            BackendLostError: the scheduler is gone.
        """
        ...


class BackendLostError(TuiAgentError):
    """The scheduler is gone: no unit runs any more, and what was reported is kept."""


class LocalBackend:
    """Runs units in this process' event loop; implements `Backend`."""

    def __init__(self, places: int, host: UnitHost) -> None:
        self._places = places
        self._host = host
        self._units: asyncio.Queue[str] = asyncio.Queue()
        self._messages: asyncio.Queue[WorkerMessage] = asyncio.Queue(MOST_MESSAGES)
        self._inboxes: dict[str, asyncio.Queue[DriverMessage]] = {}

    @property
    def places(self) -> int:
        return self._places

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        async with asyncio.TaskGroup() as tasks:
            places = [tasks.create_task(self._serve(number)) for number in range(1, self._places + 1)]
            try:
                yield
            finally:
                for place in places:
                    place.cancel()

    async def submit(self, unit_id: str) -> None:
        await self._units.put(unit_id)

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        if inbox := self._inboxes.get(unit_id):
            inbox.put_nowait(message)

    async def messages(self) -> AsyncIterator[WorkerMessage]:
        while True:
            yield await self._messages.get()

    async def _serve(self, number: int) -> None:
        # A name of its own for each place, so that a row names where its unit runs.
        host = replace(self._host, worker=f"{self._host.worker}-{number}")
        while True:
            unit_id = await self._units.get()
            # One for each start, as on a cluster: what was meant for an earlier one is not read.
            inbox = self._inboxes[unit_id] = asyncio.Queue[DriverMessage]()
            try:
                await run_unit(unit_id, DriverLink(self._messages.put, inbox.get), host)
            finally:
                del self._inboxes[unit_id]
