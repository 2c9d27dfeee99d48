"""A small driver for units that only wait and report lines, to test a cluster without the program."""

import asyncio
import os
import secrets
import signal
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.fleet.dask_backend import DaskBackend
from tui_agent.fleet.dask_worker import WorkerPlace, carry_unit
from tui_agent.fleet.worker_messages import (
    DriverLink,
    EventsReported,
    UnitAbandoned,
    UnitCancelled,
    UnitClaimed,
    UnitEnded,
    UnitGranted,
    UnitRefused,
    WorkerLost,
)
from tui_agent.protocol.fleet_records import UnitTask


async def run_waiting_unit(topic: str, unit_id: str, number: int) -> None:
    """Dask task: claim, report `lines` lines of `size` bytes, each after `pause` seconds, and end."""
    await carry_unit(waiting_unit, (topic, unit_id, number))


async def waiting_unit(unit_id: str, link: DriverLink, place: WorkerPlace) -> None:
    """Run a unit; leave a file in the directory `trace` as soon as it ends in any way."""
    claim = secrets.token_hex(8)
    await link.send(UnitClaimed(unit_id, claim, place.name, sandboxed=False))
    answer = await link.receive()
    if not isinstance(answer, UnitGranted):
        return
    fields = answer.task.fields
    if fields.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if fields.get("crash"):
        raise RuntimeError("this unit cannot run")
    try:
        await _report_lines(unit_id, link, answer)
    finally:
        if trace := fields.get("trace"):
            (Path(trace) / f"{unit_id}-{answer.epoch}").touch()


async def _report_lines(unit_id: str, link: DriverLink, answer: UnitGranted) -> None:
    fields = answer.task.fields
    done = len(answer.journal.splitlines())
    for number in range(done, int(fields.get("lines", 1))):
        with suppress(TimeoutError):
            async with asyncio.timeout(float(fields.get("pause", 0))):
                while not isinstance(await link.receive(), UnitCancelled):
                    pass
                await link.send(UnitEnded(unit_id, answer.epoch, None, "cancelled"))
                return
        line = f"{number} {os.getpid()} ".encode().ljust(int(fields.get("size", 10)), b".")
        await link.send(EventsReported(unit_id, answer.epoch, (line,)))
    await link.send(UnitEnded(unit_id, answer.epoch, 0, ""))


@dataclass(slots=True)
class SmallDriver:
    """Grants units and collects what they report."""

    backend: DaskBackend
    fields: dict[str, str]
    lines: dict[str, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    ended: dict[str, str] = field(default_factory=dict)
    """Reason of each ended unit; empty for success."""
    lost: list[str] = field(default_factory=list)
    epochs: dict[str, int] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    """Worker of each running unit."""
    pace: float = 0.0
    """Seconds that each message takes."""

    async def run(self, ids: Iterable[str], until: "Callable[[SmallDriver], bool] | None" = None) -> None:
        """Submit units and drive them until all have ended, or until a condition holds."""
        waiting = list(ids)
        for unit_id in waiting:
            await self.backend.submit(unit_id)
        await self.drive(waiting, until)

    async def drive(self, ids: Iterable[str], until: "Callable[[SmallDriver], bool] | None" = None) -> None:
        """Drive units that were submitted."""
        waiting = set(ids)
        async for message in self.backend.messages():
            await asyncio.sleep(self.pace)
            match message:
                case UnitClaimed():
                    await self._answer(message)
                case EventsReported() if message.epoch == self.epochs[message.unit_id]:
                    self.lines[message.unit_id] += message.lines
                case UnitEnded() if message.epoch == self.epochs[message.unit_id]:
                    self._end(message.unit_id, message.reason)
                case UnitAbandoned():
                    self._end(message.unit_id, message.reason)
                case WorkerLost():
                    self.lost.append(message.worker)
                    self.workers = {unit: worker for unit, worker in self.workers.items() if worker != message.worker}
                case _:
                    pass
            if self.ended.keys() >= waiting or (until is not None and until(self)):
                return

    def _end(self, unit_id: str, reason: str) -> None:
        self.ended[unit_id] = reason
        self.workers.pop(unit_id, None)

    async def _answer(self, claim: UnitClaimed) -> None:
        unit_id = claim.unit_id
        if unit_id in self.ended or unit_id in self.workers:
            await self.backend.send(unit_id, UnitRefused(claim.claim))
            return
        self.epochs[unit_id] = self.epochs.get(unit_id, 0) + 1
        self.workers[unit_id] = claim.worker
        task = UnitTask(id=unit_id, task=unit_id, prompt="", repo="/", fields=self.fields)
        journal = b"".join(line + b"\n" for line in self.lines[unit_id])
        grant = UnitGranted(claim.claim, self.epochs[unit_id], task, (), journal)
        await self.backend.send(unit_id, grant)
