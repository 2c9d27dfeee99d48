"""Runs the units of a fleet on a Dask cluster.

Each unit is one Dask task whose arguments are ids only. When a worker dies, Dask starts its tasks again elsewhere, and
each start claims its unit anew. Workers publish under a topic that belongs to one connection; if the connection breaks,
the backend makes another one and submits the unfinished units again, and those of the old connection end.
"""

import asyncio
import logging
import pickle
import secrets
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from distributed import KilledWorker
from distributed.utils import silence_logging_cmgr

from tui_agent.protocol.background import reason_of
from tui_agent.protocol.errors import ConfigurationError

from .backend import BackendLostError
from .cluster_choice import ClusterChoice
from .dask_cluster import Scheduler, connect, is_loopback, open_cluster
from .dask_worker import Delivery, JobKey, count_jobs, deliver
from .worker_messages import DriverMessage, UnitAbandoned, UnitClaimed, WorkerLost, WorkerMessage

RECONNECT_SECONDS = 60.0
"""Longest search for a scheduler that was lost."""
MOST_SUBMISSIONS = 4
"""Submissions of a unit whose workers died; before the next one it is given up."""
POLL_SECONDS = 0.25
"""Time between two looks at the connection and at the tasks."""
LEAVE_SECONDS = 20.0
"""Longest wait for the end of units when the fleet leaves the cluster."""
KEPT_BYTES = 16 * 1024 * 1024
"""Bytes of events after which the scheduler is asked to forget what was taken."""

_LOG = logging.getLogger(__name__)

DaskJob = Callable[[str, str, int], Awaitable[None]]
"""Function of a module that is installed on the workers; runs a unit by `carry_unit` with its arguments as the key."""


@dataclass(slots=True)
class _Unit:
    """A unit that has not ended."""

    id: str
    number: int = 0
    """Number of its last submission."""
    future: Any = None
    """Dask's handle of the submission; None before it."""
    address: str = ""
    """Worker that claimed it last."""
    ended: bool = False
    """True if its task has ended; its last messages may still wait."""


@dataclass(slots=True)
class _Worker:
    """A worker of the cluster, and the post for it."""

    name: str = ""
    """Name in the messages of its units; empty before the first one."""
    threads: int = 0
    post: dict[JobKey, list[DriverMessage]] = field(default_factory=dict[JobKey, list[DriverMessage]])
    taken: Counter[JobKey] = field(default_factory=Counter[JobKey])
    """Bytes that the driver took and the units do not know of yet."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    sender: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class _Batch:
    """Messages of a unit as they came in."""

    key: JobKey
    address: str
    messages: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _TaskEnded:
    """End of a unit's task, behind its last messages."""

    unit_id: str
    abandoned: str = ""
    """Reason, if the cluster cannot run it."""


_Item: TypeAlias = _Batch | _TaskEnded | WorkerLost | BackendLostError


class DaskBackend:
    """Units as tasks of a Dask cluster; see `Backend`."""

    def __init__(
        self, choice: ClusterChoice, job: DaskJob, scratch: Path, *, reconnect_seconds: float = RECONNECT_SECONDS
    ) -> None:
        """
        Args:
            choice: the cluster.
            job: function that a worker runs for a unit.
            scratch: private directory for the files of a cluster that is started; made and removed.
            reconnect_seconds: longest search for a scheduler that was lost.
        """
        self._scratch = scratch
        self._choice = choice
        self._job = job
        self._reconnect_seconds = reconnect_seconds
        self._scheduler = Scheduler("", None)
        self._client: Any = None
        self._topic = ""
        """Name of this connection: topic of the messages and first part of the keys."""
        self._units: dict[str, _Unit] = {}
        self._workers: dict[str, _Worker] = {}
        self._changed = False
        """True if workers came or left since the last look."""
        self._kept = 0
        """Bytes that the scheduler keeps although they were taken."""
        self._incoming: deque[_Item] = deque()
        self._arrived = asyncio.Event()
        self._group = asyncio.TaskGroup()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Connect to the cluster or start one; on exit end all units and leave.

        Raises:
            ConfigurationError: the cluster cannot be reached, is not safe, or has other versions.
        """
        try:
            async with AsyncExitStack() as stack:
                # The driver tells in its own words of what the cluster's processes would log on its standard error.
                stack.enter_context(silence_logging_cmgr(logging.CRITICAL + 1))
                self._scheduler = await stack.enter_async_context(open_cluster(self._choice, self._scratch))
                await self._connect()
                stack.push_async_callback(self._leave)
                self._group = await stack.enter_async_context(asyncio.TaskGroup())
                watching = self._group.create_task(self._watch())
                try:
                    yield
                finally:
                    watching.cancel()
                    for worker in self._workers.values():
                        if worker.sender is not None:
                            worker.sender.cancel()
        except BaseExceptionGroup as group:
            # No task of this group fails on its own, so this is an error of the caller, which expects no group.
            raise group.exceptions[0] from None

    @property
    def places(self) -> int:
        """Threads of all workers; each can run one unit."""
        return sum(worker.threads for worker in self._workers.values())

    async def submit(self, unit_id: str) -> None:
        """Queue a unit; without a connection it is queued as soon as there is one."""
        unit = self._units.setdefault(unit_id, _Unit(unit_id))
        if self._client.status == "running":
            self._submit(unit)

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        """Send a message to the worker that claimed the unit last; without one, or if it died, do nothing."""
        unit = self._units.get(unit_id)
        if unit is not None and (worker := self._workers.get(unit.address)) is not None:
            worker.post.setdefault((self._topic, unit.id, unit.number), []).append(message)
            self._post(unit.address, worker)

    async def messages(self) -> AsyncIterator[WorkerMessage]:
        """Yield the messages of all workers; see `Backend.messages`."""
        while True:
            while not self._incoming:
                self._arrived.clear()
                await self._arrived.wait()
            item = self._incoming.popleft()
            if isinstance(item, BackendLostError):
                raise item
            for message in self._messages_of(item):
                yield message
            if isinstance(item, _Batch):
                self._acknowledge(item)

    def _messages_of(self, item: _Batch | _TaskEnded | WorkerLost) -> list[WorkerMessage]:
        match item:
            case _Batch():
                return self._opened_batch(item)
            case _TaskEnded(unit_id, abandoned):
                del self._units[unit_id]
                return [UnitAbandoned(unit_id, abandoned)] if abandoned else []
            case WorkerLost():
                return [item]

    def _opened_batch(self, batch: _Batch) -> list[WorkerMessage]:
        """Return the messages of a batch; none if it belongs to a submission that was given up."""
        unit = self._units.get(batch.key[1])
        if unit is None or batch.key != (self._topic, unit.id, unit.number):
            return []
        messages: list[WorkerMessage] = [pickle.loads(data) for data in batch.messages]
        if any(isinstance(message, UnitClaimed) for message in messages):
            unit.address = batch.address
        return messages

    def _acknowledge(self, batch: _Batch) -> None:
        size = sum(map(len, batch.messages))
        self._kept += size
        if (worker := self._workers.get(batch.address)) is not None and batch.key[0] == self._topic:
            worker.taken[batch.key] += size
            self._post(batch.address, worker)

    def _put(self, item: _Item) -> None:
        self._incoming.append(item)
        self._arrived.set()

    # Connection

    async def _connect(self) -> None:
        """Connect, and submit what has not ended.

        Raises:
            ConfigurationError: there is no scheduler, or a worker does not fit.
        """
        self._client = await connect(self._scheduler)
        self._topic = f"tui-agent-fleet-{secrets.token_hex(8)}"
        self._client.subscribe_topic(self._topic, self._receive)
        self._client.subscribe_topic("all", self._note_worker)
        await self._look_at_workers()
        for unit in self._units.values():
            if not unit.ended:
                self._submit(unit)

    def _submit(self, unit: _Unit) -> None:
        unit.number += 1
        unit.address = ""
        key: JobKey = (self._topic, unit.id, unit.number)
        unit.future = self._client.submit(self._job, *key, key=key, pure=False, retries=0)

    async def _watch(self) -> None:
        """Look at the connection, the tasks and the workers until the fleet leaves."""
        try:
            while True:
                await asyncio.sleep(POLL_SECONDS)
                if self._client.status != "running" or not await self._look_at_units():
                    await self._reconnect()
                if self._changed:
                    with suppress(OSError):
                        await self._look_at_workers()
                if self._kept > KEPT_BYTES:
                    self._kept = 0
                    await self._forget_events()
        except BackendLostError as error:
            self._put(error)
        except ConfigurationError as error:
            self._put(BackendLostError(str(error)))

    async def _reconnect(self) -> None:
        """Find the scheduler again.

        Raises:
            BackendLostError: it is gone, or its workers do not fit.
        """
        _LOG.warning("the connection to the scheduler at %s was lost", self._scheduler.address)
        for address in list(self._workers):
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
        """Note which units ended, and submit those again whose workers died; return False without a connection."""
        for unit in [unit for unit in self._units.values() if not unit.ended]:
            status = "cancelled" if unit.future is None else unit.future.status
            if status == "finished":
                self._end(unit)
            elif status == "error":
                await self._look_at_failure(unit)
            elif status in ("cancelled", "lost"):
                return False
        return True

    async def _look_at_failure(self, unit: _Unit) -> None:
        error = await unit.future.exception()
        if not isinstance(error, KilledWorker):
            reason = f"the worker could not run it: {reason_of(error)}"
        elif unit.number < MOST_SUBMISSIONS:
            return self._submit(unit)
        else:
            reason = f"workers died {unit.number * (error.allowed_failures + 1)} times while they had it"
        return self._end(unit, reason)

    def _end(self, unit: _Unit, abandoned: str = "") -> None:
        """Forget a unit behind its last messages."""
        unit.ended = True
        unit.future = None
        self._put(_TaskEnded(unit.id, abandoned))

    # Workers

    def _receive(self, event: tuple[float, Any]) -> None:
        """Take a batch from the topic."""
        (topic, unit_id, number), address, name, messages = event[1]
        worker = self._workers.setdefault(address, _Worker())
        worker.name = name
        self._put(_Batch((topic, unit_id, number), address, tuple(messages)))

    def _note_worker(self, event: tuple[float, Any]) -> None:
        """Take a message of the scheduler about the cluster."""
        note: Any = event[1]
        action = note.get("action")
        if action == "remove-worker":
            self._lose(note["worker"], "it died or does not answer")
        self._changed = self._changed or action in ("add-worker", "remove-worker")

    async def _look_at_workers(self) -> None:
        """Learn the workers and their threads.

        Raises:
            ConfigurationError: a worker is on another machine and the connections are not encrypted.
        """
        # Workers that come while the answer is on its way are not in it.
        known = set(self._workers)
        self._changed = False
        threads: dict[str, int] = await self._client.nthreads()
        for address in known - threads.keys():
            self._lose(address, "it left the cluster")
        for address, count in threads.items():
            self._workers.setdefault(address, _Worker()).threads = count
            if self._scheduler.security is None and not is_loopback(address):
                raise ConfigurationError(
                    f"the worker at {address} is on another machine, and the cluster's connections are not encrypted"
                )

    def _lose(self, address: str, reason: str) -> None:
        """Forget a worker, and tell the driver if it ran units of this fleet."""
        worker = self._workers.pop(address, None)
        if worker is None:
            return
        if worker.sender is not None:
            worker.sender.cancel()
        if worker.name:
            self._put(WorkerLost(worker.name, reason))

    # Post

    def _post(self, address: str, worker: _Worker) -> None:
        """Have the post of a worker sent."""
        worker.arrived.set()
        if worker.sender is None:
            worker.sender = self._group.create_task(self._send_post(address, worker))

    async def _send_post(self, address: str, worker: _Worker) -> None:
        """Send the post of a worker, one delivery at a time, until the worker is lost."""
        while True:
            await worker.arrived.wait()
            worker.arrived.clear()
            keys = {**worker.post, **worker.taken}
            deliveries = tuple(Delivery(key, worker.taken[key], tuple(worker.post.get(key, ()))) for key in keys)
            worker.post.clear()
            worker.taken.clear()
            while not await self._deliver(address, pickle.dumps(deliveries)):
                await asyncio.sleep(POLL_SECONDS)

    async def _deliver(self, address: str, post: bytes) -> bool:
        """Bring post to a worker; return False if it did not arrive."""
        try:
            answers = await self._client.run(deliver, post, workers=[address], on_error="return")
        except OSError:
            return False
        return not isinstance(answers.get(address), Exception)

    # End

    async def _forget_events(self) -> None:
        """Have the scheduler forget the events of the topic, which it would keep for later requests."""
        topic = self._topic

        # Inside, so that it is sent whole: tui-agent need not be installed with the scheduler.
        def forget(dask_scheduler: Any) -> None:
            dask_scheduler._broker.truncate(topic)

        try:
            await self._client.run_on_scheduler(forget)
        except (AttributeError, OSError, ValueError) as error:
            _LOG.warning("the scheduler keeps the last events: %s", error)

    async def _leave(self) -> None:
        """End the units that still run, and the connection."""
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(LEAVE_SECONDS):
                futures = [unit.future for unit in self._units.values() if unit.future is not None]
                self._units.clear()
                if self._client.status == "running":
                    await self._client.cancel(futures, force=True)
                    while any((await self._client.run(count_jobs, self._topic, on_error="ignore")).values()):
                        await asyncio.sleep(0.05)
                    await self._forget_events()
        await self._close_client()

    async def _close_client(self) -> None:
        if self._client.status == "running":
            self._client.unsubscribe_topic("all")
            self._client.unsubscribe_topic(self._topic)
        with suppress(OSError, TimeoutError):
            await self._client.close(timeout=1)
