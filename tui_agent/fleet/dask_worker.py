"""The worker's side of a fleet on Dask: runs units on its event loop and carries their messages.

Messages to the driver are published in batches under a topic of the scheduler; `deliver` brings those of the driver. A
unit publishes only as many bytes as the driver took, so a slow driver slows the unit, not the scheduler. A unit belongs
to its Dask task: it ends when the scheduler no longer wants the task, because the driver cancelled it or is gone.
"""

import asyncio
import pickle
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from distributed import WorkerPlugin, get_worker

from .worker_messages import DriverMessage, WorkerMessage

BATCH_SECONDS = 0.05
"""Shortest time between two batches of a unit."""
BATCH_BYTES = 64 * 1024
"""Size from which a batch is published at once."""
WINDOW = 1024 * 1024
"""Bytes of a unit that wait on the worker, and as many on their way; a larger message goes alone."""

JobKey: TypeAlias = tuple[str, str, int]
"""Key of a Dask task: topic of the fleet, id of the unit, number of its submission."""
_PLUGIN = "tui-agent-fleet"


@dataclass(frozen=True, slots=True)
class Delivery:
    """Post of the driver for one unit."""

    key: JobKey
    taken: int
    """Bytes of published messages that the driver took since the last delivery."""
    messages: tuple[DriverMessage, ...]


class DaskLink:
    """Connection between one start of a unit and the driver, on the worker's event loop."""

    def __init__(self, key: JobKey, worker: Any) -> None:
        self._key = key
        self._worker = worker
        self._waiting: list[bytes] = []
        self._size = 0
        """Bytes in `_waiting`."""
        self._on_their_way = 0
        self._closed = False
        self._changed = asyncio.Condition()
        self._received: asyncio.Queue[DriverMessage] = asyncio.Queue()

    async def send(self, message: WorkerMessage, /) -> None:
        """Queue a message; wait while `WINDOW` bytes are queued already."""
        data = pickle.dumps(message)
        async with self._changed:
            await self._changed.wait_for(lambda: self._size < WINDOW)
            self._waiting.append(data)
            self._size += len(data)
            self._changed.notify_all()

    async def receive(self) -> DriverMessage:
        """Wait for the next message for this unit."""
        return await self._received.get()

    async def take(self, delivery: Delivery) -> None:
        """Receive post of the driver."""
        for message in delivery.messages:
            self._received.put_nowait(message)
        async with self._changed:
            self._on_their_way -= delivery.taken
            self._changed.notify_all()

    async def close(self) -> None:
        """Let `publish` end when it has published the rest."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()

    async def publish(self) -> None:
        """Publish batches until the link is closed and empty."""
        while True:
            async with self._changed:
                await self._changed.wait_for(self._can_go_on)
                if not self._waiting:
                    return
                batch = tuple(self._waiting)
                self._waiting.clear()
                self._on_their_way += self._size
                self._size = 0
                self._changed.notify_all()
            self._publish(batch)
            await self._gather()

    def _can_go_on(self) -> bool:
        return self._on_their_way < WINDOW if self._waiting else self._closed

    def _publish(self, messages: tuple[bytes, ...]) -> None:
        """Hand a batch to the scheduler as plain data, which it need not unpickle."""
        event = (self._key, self._worker.address, str(self._worker.name), messages)
        self._worker.log_event(self._key[0], event)

    async def _gather(self) -> None:
        """Wait until the next batch is large, old enough, or the last."""
        try:
            async with asyncio.timeout(BATCH_SECONDS), self._changed:
                await self._changed.wait_for(lambda: self._closed or self._size >= BATCH_BYTES)
        except TimeoutError:
            pass


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """The worker that a unit runs on."""

    name: str
    """Name, unique in the cluster."""
    directory: Path
    """Directory of the worker's files, which Dask removes after the worker's end."""


UnitRun: TypeAlias = Callable[[str, DaskLink, WorkerPlace], Awaitable[None]]
"""Runs a unit with an id."""


@dataclass(frozen=True, slots=True)
class _Job:
    """A unit that runs here."""

    link: DaskLink
    tasks: tuple[asyncio.Task[None], ...]


class UnitJobs(WorkerPlugin):
    """Units that run on one worker; ends those whose tasks the scheduler cancels."""

    def __init__(self) -> None:
        self.jobs: dict[JobKey, _Job] = {}

    def transition(self, key: Any, start: str, finish: str, **_kwargs: Any) -> None:
        """Receive a change of a task's state from Dask; `released` while it executes means a cancellation."""
        job = self.jobs.get(key)
        if job is not None and start in ("executing", "long-running") and finish == "released":
            for task in job.tasks:
                task.cancel()

    async def run(self, run: UnitRun, key: JobKey, worker: Any) -> None:
        """Run a unit until it ended and everything is published, or until its task is cancelled."""
        link = DaskLink(key, worker)
        place = WorkerPlace(str(worker.name), Path(worker.local_directory))
        async with asyncio.TaskGroup() as group:
            running = group.create_task(_run(run(key[1], link, place)))
            publishing = group.create_task(link.publish())
            self.jobs[key] = _Job(link, (running, publishing))
            try:
                await asyncio.wait([running])
                await link.close()
                await asyncio.wait([publishing])
            finally:
                del self.jobs[key]


def dask_setup(_worker: Any) -> None:
    """Leave ctrl+c to the driver, whose terminal a worker of its own cluster shares; Dask calls it at the start.

    Not ignored, which the commands of units would inherit.
    """
    signal.signal(signal.SIGINT, lambda _number, _frame: None)


async def carry_unit(run: UnitRun, key: JobKey) -> None:
    """Run a unit as the Dask task that is running now."""
    worker: Any = get_worker()
    jobs = await _jobs_of(worker)
    await jobs.run(run, key, worker)


async def deliver(post: bytes, dask_worker: Any) -> None:
    """Hand post of the driver to its units: a pickled tuple of `Delivery`. Units that have ended get nothing.

    Dask calls it on the worker, and would log the post of a call that raises.
    """
    jobs = await _jobs_of(dask_worker)
    deliveries: tuple[Delivery, ...] = pickle.loads(post)
    for delivery in deliveries:
        if (job := jobs.jobs.get(delivery.key)) is not None:
            await job.link.take(delivery)


async def count_jobs(topic: str, dask_worker: Any) -> int:
    """Return the number of units of a fleet that run on the worker."""
    return sum(1 for key in (await _jobs_of(dask_worker)).jobs if key[0] == topic)


async def _jobs_of(worker: Any) -> UnitJobs:
    """Return the units of a worker."""
    if _PLUGIN not in worker.plugins:
        await worker.plugin_add(UnitJobs(), name=_PLUGIN)
    return worker.plugins[_PLUGIN]


async def _run(work: Awaitable[None]) -> None:
    """Make a coroutine of any awaitable."""
    await work
