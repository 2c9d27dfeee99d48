"""Runs the units of a fleet on a Dask cluster.

Each unit is one Dask task whose arguments are ids only. When a worker dies, Dask starts its tasks again elsewhere, and
each start claims its unit anew. Units report through a queue of the scheduler that belongs to one connection; if the
connection breaks, the backend makes another one and submits the unfinished units again, and those of the old end.
"""

import asyncio
import logging
import pickle
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from distributed import KilledWorker, Queue
from distributed.utils import silence_logging_cmgr

from tui_agent.protocol.background import first_error, reason_of
from tui_agent.protocol.errors import ConfigurationError

from .backend import MOST_MESSAGES, BackendLostError, ClusterChoice
from .dask_connection import Scheduler, connect, is_loopback, open_cluster
from .dask_worker import JobKey, Report, count_jobs
from .worker_messages import DriverMessage, UnitAbandoned, UnitClaimed, UnitEnded, WorkerLost, WorkerMessage

RECONNECT_SECONDS = 60.0
"""Longest search for a scheduler that was lost."""
MOST_SUBMISSIONS = 4
"""Submissions of a unit whose workers died; before the next one it is given up."""
POLL_SECONDS = 0.25
"""Time between two looks at the connection and at the tasks."""
LEAVE_SECONDS = 20.0
"""Longest wait for the end of units when the fleet leaves the cluster."""

_LOG = logging.getLogger(__name__)

DaskJob = Callable[[str, str, int], Awaitable[None]]
"""Function of a module that is installed on the workers; runs a unit by `carry_unit` with its arguments as the key."""


@dataclass(slots=True)
class _Unit:
    """A unit of the fleet. One that has ended stays: a start that Dask repeats must be refused."""

    id: str
    number: int = 0
    future: Any = None
    """Dask's handle of the submission; None before it, and after its end."""
    inbox: Any = None
    """Queue of its last start; None before the start."""
    ended: bool = False


_LOST = (OSError, KeyError)
"""Errors of a queue if the scheduler is gone, or was replaced by another one."""
_Item: TypeAlias = Report | WorkerLost | BackendLostError


class DaskBackend:
    """Units as tasks of a Dask cluster; see `Backend`."""

    def __init__(
        self, choice: ClusterChoice, job: DaskJob, scratch: Path, *, reconnect_seconds: float = RECONNECT_SECONDS
    ) -> None:
        """Store the function that a worker runs for a unit; connect to nothing.

        `scratch` is for the files of a cluster that is started: private, made and removed.
        """
        self._scratch = scratch
        self._choice = choice
        self._job = job
        self._reconnect_seconds = reconnect_seconds
        self._scheduler = Scheduler("", None)
        self._client: Any = None
        self._queue: Any = None
        """Queue of this connection; its name is the first part of the keys."""
        self._units: dict[str, _Unit] = {}
        self._threads: dict[str, int] = {}
        """Threads of each worker, by its address."""
        self._names: dict[str, str] = {}
        """Name of each worker that ran units of this fleet, by its address."""
        self._changed = False
        """True if workers came or left since the last look."""
        self._incoming: asyncio.Queue[_Item] = asyncio.Queue()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        try:
            async with AsyncExitStack() as stack:
                # The driver reports in its own words what the cluster's processes would log on its standard error.
                stack.enter_context(silence_logging_cmgr(logging.CRITICAL + 1))
                self._scheduler = await stack.enter_async_context(open_cluster(self._choice, self._scratch))
                await self._connect()
                stack.push_async_callback(self._leave)
                group = await stack.enter_async_context(asyncio.TaskGroup())
                watching = group.create_task(self._watch())
                try:
                    yield
                finally:
                    watching.cancel()
        except BaseExceptionGroup as group:
            # No task of this group fails on its own, so this is an error of the caller, which expects no group.
            raise group.exceptions[0] from None

    @property
    def places(self) -> int:
        """Threads of all workers; each can run one unit."""
        return sum(self._threads.values())

    async def submit(self, unit_id: str) -> None:
        unit = self._units.setdefault(unit_id, _Unit(unit_id))
        if self._client.status == "running":
            self._submit(unit)

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        unit = self._units.get(unit_id)
        if unit is not None and unit.inbox is not None and self._client.status == "running":
            # If the connection is lost, so is the start of the unit.
            with suppress(*_LOST):
                await unit.inbox.put(pickle.dumps(message))

    async def messages(self) -> AsyncIterator[WorkerMessage]:
        while True:
            item = await self._incoming.get()
            if isinstance(item, BackendLostError):
                raise item
            try:
                if isinstance(item, WorkerLost):
                    yield item
                elif await self._is_current(item):
                    yield item.message
            finally:
                self._incoming.task_done()

    async def _is_current(self, report: Report) -> bool:
        """Return False for a message of a submission that was given up; note the start or the end of a unit."""
        unit = self._units.get(report.key[1])
        if unit is None or report.key != (self._queue.name, unit.id, unit.number):
            return False
        match report.message:
            case UnitClaimed():
                self._names[report.address] = report.worker
                with suppress(*_LOST):
                    unit.inbox = await Queue(report.inbox, client=self._client)
            case UnitAbandoned():
                unit.ended = True
            case UnitEnded():
                # Not at the end of an earlier start, whose worker was out of reach.
                unit.ended = unit.inbox is not None and unit.inbox.name == report.inbox
            case _:
                pass
        return True

    # Connection

    async def _connect(self) -> None:
        """Connect, and submit what has not ended."""
        self._client = await connect(self._scheduler)
        # A new name for each connection: messages of units of the old one reach no one.
        name = f"tui-agent-fleet-{secrets.token_hex(8)}"
        self._queue = await Queue(name, client=self._client, maxsize=MOST_MESSAGES)
        # The scheduler publishes each worker that comes or goes; asking it for them every time would cost a round trip.
        self._client.subscribe_topic("all", self._note_worker)
        await self._look_at_workers()
        for unit in self._units.values():
            if not unit.ended:
                self._submit(unit)

    async def _read(self, queue: Any) -> None:
        """Take messages from the queue, a few at a time and no more than the driver takes, until it is gone."""
        # The watch looks after the connection.
        with suppress(*_LOST):
            while True:
                first = await queue.get()
                for data in (first, *await queue.get(batch=True)):
                    self._incoming.put_nowait(pickle.loads(data))
                # Only then the next: what waits here is no longer counted by the queue, whose limit slows the units.
                await self._incoming.join()

    def _submit(self, unit: _Unit) -> None:
        unit.number += 1
        unit.inbox = None
        key: JobKey = (self._queue.name, unit.id, unit.number)
        # Retries are for exceptions of a task; after the death of a worker, Dask repeats it anyway.
        unit.future = self._client.submit(self._job, *key, key=key, pure=False, retries=0)

    async def _watch(self) -> None:
        """Read the queue and keep the connection until the fleet leaves."""
        try:
            while True:
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(self._read(self._queue))
                    await self._watch_connection()
                    reading.cancel()
                await self._reconnect()
        except* (BackendLostError, ConfigurationError) as group:
            self._incoming.put_nowait(BackendLostError(str(first_error(group))))

    async def _watch_connection(self) -> None:
        """Look at the connection, the tasks and the workers until the connection is lost."""
        while self._client.status == "running" and await self._look_at_units():
            if self._changed:
                with suppress(OSError):
                    await self._look_at_workers()
            await asyncio.sleep(POLL_SECONDS)

    async def _reconnect(self) -> None:
        """Find the scheduler again."""
        _LOG.warning("the connection to the scheduler at %s was lost", self._scheduler.address)
        # The new scheduler knows none of them, and no other message would end the spans of their units.
        for address in list(self._threads):
            self._lose(address, "the connection to the scheduler was lost")
        deadline = asyncio.get_running_loop().time() + self._reconnect_seconds
        await self._close_client()
        while True:
            try:
                return await self._connect()
            except ConfigurationError as error:
                if asyncio.get_running_loop().time() > deadline:
                    raise BackendLostError(f"the connection to the cluster is lost: {error}") from None
            await asyncio.sleep(1)

    async def _look_at_units(self) -> bool:
        """Submit units again whose workers died; return False without a connection."""
        for unit in [unit for unit in self._units.values() if unit.future is not None]:
            match unit.future.status:
                case "finished":
                    # Its last messages may still wait.
                    unit.future = None
                case "error" if unit.ended:
                    unit.future = None
                case "error":
                    await self._look_at_failure(unit)
                case "cancelled" | "lost":
                    return False
                case _:
                    pass
        return True

    async def _look_at_failure(self, unit: _Unit) -> None:
        error = await unit.future.exception()
        if not isinstance(error, KilledWorker):
            reason = f"the worker could not run it: {reason_of(error)}"
        # The workers may have died of something else than this unit.
        elif unit.number < MOST_SUBMISSIONS:
            return self._submit(unit)
        else:
            reason = f"workers died {unit.number * (error.allowed_failures + 1)} times while they had it"
        unit.future = None
        # Behind its last messages.
        report = Report((self._queue.name, unit.id, unit.number), "", "", "", UnitAbandoned(unit.id, reason))
        with suppress(*_LOST):
            await self._queue.put(pickle.dumps(report))
        return None

    # Workers

    def _note_worker(self, event: tuple[float, Any]) -> None:
        """Take a message of the scheduler about the cluster."""
        note: Any = event[1]
        action = note.get("action")
        if action == "remove-worker":
            self._lose(note["worker"], "it died or does not answer")
        self._changed = self._changed or action in ("add-worker", "remove-worker")

    async def _look_at_workers(self) -> None:
        """Learn the workers and their threads."""
        # Workers that come while the answer is on its way are not in it.
        known = set(self._threads)
        self._changed = False
        threads: dict[str, int] = await self._client.nthreads()
        for address in known - threads.keys():
            self._lose(address, "it left the cluster")
        self._threads |= threads
        for address in threads:
            if self._scheduler.security is None and not is_loopback(address):
                raise ConfigurationError(
                    f"the worker at {address} is on another machine, and the cluster's connections are not encrypted"
                )

    def _lose(self, address: str, reason: str) -> None:
        """Forget a worker, and tell the driver if it ran units of this fleet."""
        self._threads.pop(address, None)
        if name := self._names.pop(address, None):
            self._incoming.put_nowait(WorkerLost(name, reason))

    # End

    async def _forget_messages(self) -> None:
        """Have the scheduler forget the fleet's queues, which it would keep for the sake of workers that died."""
        fleet = self._queue.name

        # Inside, so that it is sent whole: tui-agent need not be installed with the scheduler.
        def forget(dask_scheduler: Any) -> None:
            queues = dask_scheduler.extensions["queues"]
            for known in (queues.queues, queues.client_refcount):
                for name in [name for name in known if name.startswith(fleet)]:
                    del known[name]

        try:
            await self._client.run_on_scheduler(forget)
        except (AttributeError, KeyError, OSError) as error:
            _LOG.warning("the scheduler keeps the last messages: %s", error)

    async def _leave(self) -> None:
        """End the units that still run, and the connection."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LEAVE_SECONDS):
                futures = [unit.future for unit in self._units.values() if unit.future is not None]
                for unit in self._units.values():
                    unit.inbox = None
                # From here on, a message of a unit is of none that is known, and is dropped.
                self._units.clear()
                if self._client.status == "running":
                    await self._client.cancel(futures, force=True)
                    while any((await self._client.run(count_jobs, self._queue.name, on_error="ignore")).values()):
                        await asyncio.sleep(0.05)
                    await self._forget_messages()
        await self._close_client()

    async def _close_client(self) -> None:
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")
        with suppress(OSError, TimeoutError):
            await self._client.close(timeout=1)
