"""The worker's side of a fleet on Dask: runs units on its event loop and carries their messages.

All units report through one queue of the scheduler, which holds a fixed number of messages: a slow driver slows the
units. Each start of a unit has another queue for the messages of the driver. A unit belongs to its Dask task: it ends
when the scheduler no longer wants the task, because the driver cancelled it or is gone.
"""

import asyncio
import pickle
import secrets
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from distributed import Queue, WorkerPlugin, get_client, get_worker  # pyright: ignore[reportUnknownVariableType]

from .backend import MOST_MESSAGES
from .worker_messages import DriverLink, DriverMessage, WorkerMessage

JobKey: TypeAlias = tuple[str, str, int]
"""Key of a Dask task: name of the fleet's queue, id of the unit, number of its submission."""
_PLUGIN = "tui-agent-fleet"


@dataclass(frozen=True, slots=True)
class Report:
    """A message of a unit on its way to the driver."""

    key: JobKey
    address: str
    worker: str
    inbox: str
    """Name of the queue for the messages of the driver."""
    message: WorkerMessage


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """The worker that a unit runs on."""

    name: str
    directory: Path
    """Directory of the worker's files, which Dask removes after the worker's end."""


UnitRun: TypeAlias = Callable[[str, DriverLink, WorkerPlace], Awaitable[None]]


class UnitJobs(WorkerPlugin):
    """Units that run on one worker; ends those whose tasks the scheduler cancels."""

    def __init__(self) -> None:
        self.running: dict[JobKey, asyncio.Task[None]] = {}

    def transition(self, key: Any, start: str, finish: str, **_kwargs: Any) -> None:
        """Receive a change of a task's state from Dask; `released` while it executes means a cancellation."""
        job = self.running.get(key)
        # Dask runs a coroutine to its end whatever becomes of its task, so that it is cancelled here.
        if job is not None and start in ("executing", "long-running") and finish == "released":
            job.cancel()

    async def run(self, run: UnitRun, key: JobKey, worker: Any) -> None:
        """Run a unit until it has ended, or until its task is cancelled."""
        place = WorkerPlace(str(worker.name), Path(worker.local_directory))
        link = await _linked(key, worker)
        # Waited for and not awaited: the task that runs a unit does not fail when the unit is cancelled.
        async with asyncio.TaskGroup() as group:
            self.running[key] = running = group.create_task(_run(run(key[1], link, place)))
            try:
                await asyncio.wait([running])
            finally:
                del self.running[key]


async def _linked(key: JobKey, worker: Any) -> DriverLink:
    """Return the connection of one start of a unit, on the worker's event loop."""
    client: Any = get_client()
    reports: Any = await Queue(key[0], client=client, maxsize=MOST_MESSAGES)
    # Each start has one of its own: what is meant for a worker that died reaches no other one.
    inbox: Any = await Queue(f"{key[0]}-{secrets.token_hex(8)}", client=client)

    async def send(message: WorkerMessage) -> None:
        report = Report(key, worker.address, str(worker.name), inbox.name, message)
        # Plain data, which the scheduler need not unpickle: tui-agent need not be installed there.
        await reports.put(pickle.dumps(report))

    async def receive() -> DriverMessage:
        return pickle.loads(await inbox.get())

    return DriverLink(send, receive)


def dask_setup(_worker: Any) -> None:
    """Leave ctrl+c to the driver, whose terminal a worker of its own cluster shares; Dask calls it at the start.

    Not ignored, which the commands of units would inherit.
    """
    signal.signal(signal.SIGINT, lambda _number, _frame: None)


async def carry_unit(run: UnitRun, key: JobKey) -> None:
    """Run a unit as the Dask task that is running now."""
    worker: Any = get_worker()
    await (await _jobs_of(worker)).run(run, key, worker)


async def count_jobs(queue: str, dask_worker: Any) -> int:
    """Return the number of units of a fleet that run on the worker."""
    return sum(1 for key in (await _jobs_of(dask_worker)).running if key[0] == queue)


async def _jobs_of(worker: Any) -> UnitJobs:
    """Return the units of a worker."""
    # By name: Dask keeps one plugin for the life of a worker, which may serve many fleets.
    if _PLUGIN not in worker.plugins:
        await worker.plugin_add(UnitJobs(), name=_PLUGIN)
    return worker.plugins[_PLUGIN]


async def _run(work: Awaitable[None]) -> None:
    """Make a coroutine of any awaitable."""
    await work
