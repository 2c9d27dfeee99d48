"""The driver of a fleet: grants units to workers, saves what they report, and decides the end of each.

It alone writes to the fleet's directory. It takes a message only when those before are on the disk, and few can wait: a
full disk makes the whole fleet wait.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pydantic import ValidationError

from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus, UnitQuestion, UnitRow, UnitTask, WorkerSpan
from tui_agent.protocol.messages import JsonObject, is_array, is_object, now_ms

from .backend import Backend
from .fleet_directory import FleetDirectory, read_records
from .unit_events import DELTAS, seq_of, type_of
from .unit_progress import RateLimitMet, RateLimits, UnitProgress, result_files
from .worker_messages import (
    CommitReported,
    EventsReported,
    UnitAbandoned,
    UnitCancelled,
    UnitClaimed,
    UnitEnded,
    UnitGranted,
    UnitInput,
    UnitRefused,
    WorkerLost,
    WorkerMessage,
)

STATUS_PAUSE = 0.2
"""Seconds between two copies of the state for viewers."""
STATUS_SHARE = 4.0
"""Pause after a copy as a multiple of the time that it took, if that is longer."""
DISK_PAUSE = 2.0
QUESTION_PAUSE = 0.5
"""Seconds between two looks for requests for approval that no one answers."""
KEPT_NOTICES = 500
STOPPED = "stopped"
NOBODY = "no one watches this fleet, so no one can approve; the call was denied."
NO_ANSWER = "no one watches this fleet, so no one can answer"

T = TypeVar("T")


class FleetDriver:
    """Drives one fleet from its units' claims to their ends."""

    def __init__(self, directory: FleetDirectory, backend: Backend, tasks: tuple[UnitTask, ...]) -> None:
        """Store the arguments; `load` brings back what an earlier driver left. Nothing runs before `run`."""
        self.directory = directory
        self.units = {task.id: UnitProgress(task) for task in tasks}
        self.denies_questions = False
        """True to deny requests for approval while there is no viewer."""
        self.viewers = 0
        """Viewers that are connected; for them the driver writes deltas, too."""
        self.say: Callable[[str], object] = lambda _: None
        self._backend = backend
        self._started = now_ms()
        self._options: tuple[str, ...] = ()
        self._bases: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._claims: deque[UnitClaimed] = deque()
        self._stopping: set[str] = set()
        self._limits = RateLimits()
        self._notices: deque[str] = deque(maxlen=KEPT_NOTICES)
        self._writing = asyncio.Lock()
        self._over = asyncio.Event()
        self._granting = asyncio.Event()
        self._changed = asyncio.Event()

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def status(self) -> FleetStatus:
        """State of the whole fleet."""
        return FleetStatus(
            name=self.directory.path.name,
            started=self._started,
            running=not self._over.is_set(),
            rows=tuple(unit.row for unit in self.units.values()),
            questions=self.questions,
            paused_until=self.paused_until,
            notices=tuple(self._notices),
        )

    @property
    def paused_until(self) -> int:
        """Milliseconds since the epoch until which a rate limit delays the fleet; 0 for no delay."""
        return now_ms() + round(1000 * self._limits.left) if self._limits.left else 0

    @property
    def questions(self) -> tuple[UnitQuestion, ...]:
        """All open requests for approval."""
        return tuple(
            UnitQuestion(unit_id=unit.row.id, request=request)
            for unit in self.units.values()
            for request in unit.questions.values()
        )

    def load(self) -> None:
        """Bring back what earlier drivers left; every unit that is not done continues. Blocks.

        Raises:
            ConfigurationError: the end of a unit cannot be read from its record.
        """
        # Read before anything is written: it is the last moment at which an earlier driver was alive.
        last_sign = self.directory.last_sign()
        for record in read_records(self.directory.path):
            match record.get("type"):
                case "fleet":
                    self._options = _texts(record.get("options"))
                    self._started = _int(record.get("started")) or self._started
                case "base":
                    self._bases[str(record.get("unit"))] = str(record.get("commit"))
                case "granted" if unit := self.units.get(str(record.get("unit"))):
                    unit.row = unit.row.model_copy(update={"epoch": _int(record.get("epoch"))})
                    if spans := _spans(record.get("spans")):
                        unit.restore_spans(spans, last_sign)
                case "ended" if str(record.get("unit")) in self.units:
                    self._restore_end(record)
                case _:
                    pass
        for unit_id, unit in self.units.items():
            files = self.directory.load_unit(unit_id)
            row = unit.row
            # The journal counts them again, event by event.
            unit.row = row.model_copy(update={"step": 0, "unknown_effects": 0})
            for line in files.journal.splitlines():
                unit.apply(line)
            # Its events end in `verifying`: that its check passed is only in the record.
            if row.state == "done":
                unit.row = row
            if unit.row.state != "done":
                # Otherwise a reader would take the result of the earlier end for that of this run.
                self.directory.forget_result(unit_id)
                unit.queue()

    def _restore_end(self, record: JsonObject) -> None:
        unit = self.units[str(record.get("unit"))]
        try:
            unit.restore_end(UnitRow.model_validate({**_dict(record.get("row")), "unit": unit.row.unit}))
        except ValidationError as error:
            raise ConfigurationError(
                f"{self.directory.path}/driver.jsonl is damaged: the end of unit {unit.row.id} cannot be read. "
                "Nothing was started; remove that line to run the unit again"
            ) from error
        if unit.row.verified is False:
            output = str(record.get("verify_output") or "")
            self._notes[unit.row.id] = f"The check of your work failed:\n\n{output}\n\nContinue until it passes."

    # --- work ---------------------------------------------------------------------------------------------------------

    async def run(self, serve: Callable[["FleetDriver"], Coroutine[object, object, None]]) -> FleetStatus:
        """Run all units to their ends, and serve the viewers meanwhile.

        Raises:
            ConfigurationError: the backend cannot start.
        """
        async with self._backend.opened(), asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(serve(self)), tasks.create_task(self._keep_status())]
            helpers.append(tasks.create_task(self._grant_claims()))
            helpers.append(tasks.create_task(self._deny_questions()))
            helpers.append(tasks.create_task(self._receive()))
            for unit in self.units.values():
                if not unit.row.ended:
                    await self._backend.submit(unit.row.id)
            self._look_for_end()
            await self._over.wait()
            # Before viewers are disconnected, which then read it.
            await self._saved(partial(self.directory.save_status, self.status))
            for helper in helpers:
                helper.cancel()
        return self.status

    async def _receive(self) -> None:
        async for message in self._backend.messages():
            await self._handle(message)

    async def _handle(self, message: WorkerMessage) -> None:
        match message:
            case UnitClaimed():
                self._claims.append(message)
                self._granting.set()
            case EventsReported():
                if self._is_current(message.unit_id, message.epoch):
                    await self._save_events(message.unit_id, message.lines)
            case CommitReported():
                if self._is_current(message.unit_id, message.epoch):
                    await self._save_commit(message)
            case UnitEnded():
                if self._is_current(message.unit_id, message.epoch):
                    await self._end(message)
            case UnitAbandoned(unit_id=unit_id, reason=reason):
                if unit_id in self.units and not self.units[unit_id].row.ended:
                    await self._end(UnitEnded(unit_id, self.units[unit_id].row.epoch, None, reason))
            case WorkerLost(worker=worker, reason=reason):
                await self._lose(worker, reason)

    def _is_current(self, unit_id: str, epoch: int) -> bool:
        unit = self.units.get(unit_id)
        # A worker that was only out of reach may come back after another one has claimed its unit.
        return unit is not None and unit.row.epoch == epoch and not unit.row.ended

    async def _save_events(self, unit_id: str, lines: tuple[bytes, ...]) -> None:
        unit = self.units[unit_id]
        facts = tuple(line for line in lines if type_of(line) not in DELTAS and seq_of(line) > unit.last_seq)
        if facts or self.viewers:
            await self._saved(partial(self._write_events, unit_id, facts, lines if self.viewers else ()))
        for fact in facts:
            met = unit.apply(fact)
            if met is not None:
                await self._slow_down(met)
        if facts:
            self._changed.set()

    def _write_events(self, unit_id: str, facts: tuple[bytes, ...], shown: tuple[bytes, ...]) -> None:
        self.directory.append_events(unit_id, facts)
        if shown:
            self.directory.show_events(unit_id, shown)
        else:
            # A stream with gaps would mislead the next viewer.
            self.directory.hide_events(unit_id)

    async def _save_commit(self, message: CommitReported) -> None:
        unit_id, lines = message.unit_id, message.lines
        if message.bundle:
            last = self.units[unit_id].last_seq
            numbers = [seq_of(line) for line in lines if type_of(line) not in DELTAS] or [last]
            first, final = (numbers[0], numbers[-1]) if numbers[-1] > last else (last, last)
            await self._saved(lambda: self.directory.save_commit(unit_id, message.bundle, first, final))
        elif unit_id not in self._bases:
            self._bases[unit_id] = message.commit
            await self._record({"type": "base", "unit": unit_id, "commit": message.commit})
        await self._save_events(unit_id, lines)

    async def _end(self, message: UnitEnded) -> None:
        unit = self.units[message.unit_id]
        if message.unit_id in self._stopping:
            unit.end("stopped", replace(message, reason=STOPPED))
        else:
            unit.end("failed" if message.reason else "done", message)
        files = result_files(unit, message)
        await self._saved(lambda: self.directory.save_result(message.unit_id, files))
        await asyncio.to_thread(self.directory.hide_events, message.unit_id)
        row: JsonObject = json.loads(unit.row.model_dump_json(exclude={"unit"}))
        end: JsonObject = {"type": "ended", "unit": message.unit_id, "row": row}
        if message.verified is False:
            # Its end is what the model reads when the unit continues; the whole is in `verify.txt`.
            end["verify_output"] = message.verify_output[-4_000:]
        await self._record(end)
        self._changed.set()
        self._look_for_end()

    async def _lose(self, worker: str, reason: str) -> None:
        self.tell(f"worker {worker} is lost: {reason}")
        for unit in self.units.values():
            if not unit.row.ended and unit.row.spans and unit.row.spans[-1].worker == worker:
                unit.lose_worker()
                self._changed.set()
                if unit.row.id in self._stopping:
                    await self._end(UnitEnded(unit.row.id, unit.row.epoch, None, STOPPED))

    def _look_for_end(self) -> None:
        # Not when the queue is empty: a unit whose worker died is in no queue until Dask starts it again.
        if all(unit.row.ended for unit in self.units.values()):
            self._over.set()

    # --- grants -------------------------------------------------------------------------------------------------------

    async def _grant_claims(self) -> None:
        """Grant claims in their order; while a rate limit holds, none."""
        while True:
            await self._granting.wait()
            self._granting.clear()
            while self._claims:
                if left := self._limits.left:
                    await asyncio.sleep(left)
                    continue
                await self._grant(self._claims.popleft())

    async def _grant(self, claim: UnitClaimed) -> None:
        unit = self.units.get(claim.unit_id)
        if unit is None or unit.row.ended:
            await self._backend.send(claim.unit_id, UnitRefused(claim.claim))
            return
        # From here on, messages of an earlier start are ignored, so that its journal is complete.
        unit.begin(claim.worker, unit.row.epoch + 1)
        epoch = unit.row.epoch
        spans: list[JsonObject] = [span.model_dump(mode="json") for span in unit.row.spans]
        await self._record({"type": "granted", "unit": claim.unit_id, "epoch": epoch, "spans": spans})
        # Read only now: until the new epoch was recorded, the worker before could still add to it.
        files = await self._saved(lambda: self.directory.load_unit(claim.unit_id))
        if claim.unit_id in self._stopping:
            # Stopped meanwhile: a worker that has no grant yet does not know the unit.
            await self._backend.send(claim.unit_id, UnitRefused(claim.claim))
            if not unit.row.ended:
                await self._end(UnitEnded(claim.unit_id, epoch, None, STOPPED))
            return
        granted = UnitGranted(
            claim=claim.claim,
            epoch=epoch,
            task=unit.row.unit,
            options=self._options,
            journal=files.journal,
            base=self._bases.get(claim.unit_id, ""),
            # Once: if the worker is lost, the note is in the journal that the next start gets.
            note=self._notes.pop(claim.unit_id, ""),
            bundles=files.bundles,
            used=unit.used,
        )
        await self._backend.send(claim.unit_id, granted)
        self._changed.set()

    # --- the user -----------------------------------------------------------------------------------------------------

    async def send_input(self, unit_id: str, command: JsonObject) -> str:
        """Pass a command of stream-json to a unit; return why that was impossible, or an empty text.

        Does not wait until the unit has it.
        """
        unit = self.units.get(unit_id)
        if unit is None:
            return f"there is no unit {unit_id}"
        if unit.row.ended or not unit.row.spans or unit.row.spans[-1].ended is not None:
            return f"unit {unit_id} does not run"
        if unit.run_ended:
            return f"the run of unit {unit_id} has ended"
        await self._backend.send(unit_id, UnitInput(json.dumps(command).encode()))
        return ""

    async def stop(self, unit_ids: tuple[str, ...] = (), *, now: bool = False) -> None:
        """Stop units, or all if none is named: after their steps, or now. Does not wait for their ends.

        Units that no worker runs are stopped at once; unknown and ended ones are skipped.
        """
        for unit_id in unit_ids or tuple(self.units):
            unit = self.units.get(unit_id)
            if unit is None or unit.row.ended:
                continue
            self._stopping.add(unit_id)
            if not unit.row.spans or unit.row.spans[-1].ended is not None:
                await self._end(UnitEnded(unit_id, unit.row.epoch, None, STOPPED))
            # A unit without a process yet has no step after which it could stop.
            elif now or unit.row.state in ("starting", "resuming"):
                await self._backend.send(unit_id, UnitCancelled(STOPPED))
            else:
                await self._backend.send(unit_id, UnitInput(b'{"type":"stop"}'))

    def tell(self, notice: str) -> None:
        """Show the user a notice: in the status, and through `say`."""
        self._notices.append(notice)
        self._changed.set()
        self.say(notice)

    async def _deny_questions(self) -> None:
        """Deny what no one is there to answer."""
        denied: set[tuple[str, str]] = set()
        while self.denies_questions:
            # A viewer may be asking the user at this moment.
            questions = () if self.viewers else self.questions
            about = {(one.unit_id, one.request.request_id): one.request for one in questions}
            waiting = set(about)
            for unit_id, request_id in waiting - denied:
                answer = {"type": "approval", "request_id": request_id, "decision": "deny", "note": NOBODY}
                if about[unit_id, request_id].changes is not None:
                    # What the unit's rules and mode keep is kept; a no of the user would discard that, too.
                    answer |= {"by": "nobody", "note": NO_ANSWER}
                await self._backend.send(unit_id, UnitInput(json.dumps(answer).encode()))
            # Only these: a unit that continues elsewhere may ask under an id that it had before.
            denied = waiting
            await asyncio.sleep(QUESTION_PAUSE)

    # --- limits and disk ----------------------------------------------------------------------------------------------

    async def _slow_down(self, met: RateLimitMet) -> None:
        """Let the whole fleet wait."""
        seconds = self._limits.meet(met.wait)
        # Units that asked at the same time report the same limit once more.
        if seconds is None:
            return
        self.tell(f"a rate limit was met; the fleet waits {seconds:.0f} s")
        pause = json.dumps({"type": "pause", "seconds": round(seconds, 1)}).encode()
        for unit in self.units.values():
            # The others have no process yet, and their grants wait for the end of the pause.
            if unit.row.state in ("running", "asking"):
                await self._backend.send(unit.row.id, UnitInput(pause))

    async def _record(self, record: JsonObject) -> None:
        await self._saved(lambda: self.directory.record(record))

    async def _saved(self, write: Callable[[], T]) -> T:
        """Write in a thread; while the disk fails, wait and try again. No message is taken meanwhile."""
        told = False
        while True:
            try:
                async with self._writing:
                    return await asyncio.to_thread(write)
            except OSError as error:
                if not told:
                    self.tell(f"the fleet waits: {self.directory.path} cannot be written ({error.strerror or error})")
                    told = True
                await asyncio.sleep(DISK_PAUSE)

    async def _keep_status(self) -> None:
        """Write a copy of the state for readers, as long as it changes."""
        clock = asyncio.get_running_loop().time
        while True:
            self._changed.clear()
            began = clock()
            await self._saved(partial(self.directory.save_status, self.status))
            # In relation to its cost: a fleet of thousands of units would spend its time on copies.
            await asyncio.sleep(max(STATUS_PAUSE, STATUS_SHARE * (clock() - began)))
            await self._changed.wait()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if is_array(value) else ()


def _dict(value: object) -> JsonObject:
    return value if is_object(value) else {}


def _spans(value: object) -> tuple[WorkerSpan, ...]:
    try:
        return tuple(WorkerSpan.model_validate(span) for span in value) if is_array(value) else ()
    except ValidationError:
        return ()


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
