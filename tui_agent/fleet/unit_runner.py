"""Runs one unit on a worker: claims it, works in its own worktree, reports everything, verifies the result.

`--local` and Dask run the same program. It asks the driver for a unit's present state and keeps nothing itself: a unit
whose worker died is resumed from what the driver has.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui_agent.protocol.background import run_service
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.regular_file import make_private_directories

from .unit_events import DELTAS, JournalTail, UnitEvents, depth_of, fields_of, last_begun_call, seq_of, type_of
from .unit_process import (
    GRACE,
    KEPT_OUTPUT,
    LARGEST_EVENT,
    UnitFailureError,
    UnitProcess,
    first_message,
    journal_path,
    run_shell,
    start_process,
    unit_argv,
    unit_environment,
    without_secrets,
)
from .unit_worktree import UnitWorktree, open_worktree, resolve_ref, updated_mirror
from .worker_messages import (
    DriverLink,
    UnitCancelled,
    UnitClaimed,
    UnitEnded,
    UnitGranted,
    UnitInput,
    UnitRefused,
)

PACE = 0.03
"""Seconds for which events are collected before they are sent."""
IDLE = 0.05
"""Seconds after the end of a run without another one before the input of the process is closed."""
FINISH_TIMEOUT = 120.0
"""Seconds to record the last state of a worktree and to make its patch."""
GOOD_ENDS = ("done", "stopped", "terminated")
"""Reasons of `run.ended` after which a unit is verified."""


@dataclass(frozen=True, slots=True)
class UnitHost:
    """The worker that a unit runs on."""

    worker: str
    work: Path
    """Private directory of this fleet on this host; it exists."""
    mirrors: Path
    """Private directory of the host's mirrors; it exists."""
    program: tuple[str, ...]
    confine: Callable[[Path], tuple[str, ...]] | None = None
    """Returns, for a directory, the start of a command line that runs the rest of it in the sandbox; it blocks. None:
    the sandbox does not work here."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Environment of the units; it has the key."""


async def run_unit(unit_id: str, link: DriverLink, host: UnitHost) -> None:
    """Claim a unit and run it to its end; return at once if the driver refuses.

    On cancellation its processes are killed and its files removed.
    """
    # Random: an answer to an earlier start of this unit may still be in the inbox.
    claim = secrets.token_hex(8)
    await link.send(UnitClaimed(unit_id, claim, host.worker, host.confine is not None))
    while True:
        answer = await link.receive()
        if isinstance(answer, UnitRefused) and answer.claim == claim:
            return
        if isinstance(answer, UnitGranted) and answer.claim == claim:
            break
    await _UnitRun(answer, link, host).run()


class _UnitRun:
    """One start of a unit on one worker."""

    def __init__(self, granted: UnitGranted, link: DriverLink, host: UnitHost) -> None:
        self._granted = granted
        self._task: UnitTask = granted.task
        self._link = link
        self._host = host
        self._home = host.work / f"{granted.task.id}-{granted.epoch}"
        self._events = UnitEvents(granted.task.id, granted.epoch, link.send)
        self._worktree: UnitWorktree | None = None
        self._process: UnitProcess | None = None
        self._early_input: list[bytes] = []
        self._with_effects: set[str] = set()
        """Running calls that may change files."""
        self._run_failure = ""
        self._ended = UnitEnded(granted.task.id, granted.epoch, None, "")

    async def run(self) -> None:
        """Run the unit, report its end, and remove its files."""
        try:
            async with asyncio.TaskGroup() as tasks:
                work = tasks.create_task(self._guarded(self._work_in_time(tasks)))
                listening = tasks.create_task(self._listen(work))
                # Waited for and not awaited: a cancel of the unit must not end the record of what it did.
                await asyncio.wait([work])
                await asyncio.wait([tasks.create_task(self._guarded(self._finish()))])
                listening.cancel()
            await self._link.send(self._ended)
        finally:
            await asyncio.to_thread(shutil.rmtree, self._home, ignore_errors=True)

    async def _guarded(self, work: Coroutine[object, object, None]) -> None:
        """Await work, and keep the reason if it fails, whatever it is: the other units continue."""
        await run_service(f"unit {self._task.id}", work, self._fail)

    def _fail(self, reason: str) -> None:
        """Keep the first reason."""
        if not self._ended.reason:
            self._ended = replace(self._ended, reason=reason)

    async def _work_in_time(self, tasks: asyncio.TaskGroup) -> None:
        began = asyncio.get_running_loop().time()
        limit = self._task.timeout
        try:
            async with asyncio.timeout(limit) as deadline:
                worktree = await self._prepare()
                if limit is not None:
                    # Not before: even if no time is left, what earlier starts did becomes a patch.
                    deadline.reschedule(began + limit - self._granted.used)
                await self._work(tasks, worktree)
        except TimeoutError:
            raise UnitFailureError(f"its time limit of {self._task.timeout:g} s is over") from None

    async def _work(self, tasks: asyncio.TaskGroup, worktree: UnitWorktree) -> None:
        message = first_message(self._granted)
        if message is not None:
            await self._run_process(tasks, worktree, message)
        if self._task.verify and not self._ended.reason:
            await self._verify(worktree)

    async def _prepare(self) -> UnitWorktree:
        """Make the worktree, in the state of the last report."""
        task, granted = self._task, self._granted
        # The prompt of a fleet reaches repositories of strangers, whose text may ask for what the rules allow.
        if task.permissions.allow and self._host.confine is None:
            raise UnitFailureError("its rules allow calls, which needs a sandbox, and there is none on this worker")
        await asyncio.to_thread(_make_home, self._home)
        # One copy for each repository and worker: a hundred units fetch once.
        mirror = await updated_mirror(self._host.mirrors, task.repo, self._host.work)
        base = granted.base or await resolve_ref(mirror, task.ref)
        worktree = await open_worktree(self._home, mirror, task.id, task.repo, base)
        await worktree.restore(granted.bundles, self._home)
        if not granted.base:
            await self._events.commit(base, b"")
        # Only now: half-restored files must never be recorded.
        self._worktree = worktree
        return worktree

    async def _run_process(self, tasks: asyncio.TaskGroup, worktree: UnitWorktree, message: bytes) -> None:
        environment = await asyncio.to_thread(unit_environment, self._task, self._host.environment, self._home)
        # From the end of what it resumes, whose calls are recorded already.
        journal = JournalTail(journal_path(self._task, environment), len(self._granted.journal))
        process = await self._start(worktree, message, environment)
        pump = tasks.create_task(self._guarded(self._pump(process, worktree, journal)))
        try:
            await asyncio.wait([pump])
            if not self._ended.reason:
                code = await process.ended()
                self._ended = replace(self._ended, exit_code=code)
                if code or self._run_failure:
                    raise UnitFailureError(self._run_failure or f"its process ended with code {code}")
        finally:
            await process.end()
            await asyncio.wait([pump], timeout=GRACE)
            pump.cancel()
            self._process = None
            errors = await asyncio.to_thread(_end_of_file, self._home / "stderr.log")
            self._ended = replace(self._ended, stderr=without_secrets(errors, self._host.environment))

    async def _start(self, worktree: UnitWorktree, message: bytes, environment: Mapping[str, str]) -> UnitProcess:
        if self._granted.journal:
            path = journal_path(self._task, environment)
            await asyncio.to_thread(_write_private, path, self._granted.journal)
        argv = unit_argv(self._host.program, self._granted)
        process = await start_process(argv, worktree.path, environment, self._home / "stderr.log")
        self._process = process
        # What the user sent while the worktree was made follows the prompt.
        for line in (message, *self._early_input):
            process.put(line)
        return process

    async def _pump(self, process: UnitProcess, worktree: UnitWorktree, journal: JournalTail) -> None:
        """Send the events of the process until its output ends."""
        idle = False
        while True:
            wait = IDLE if idle else PACE if self._events.waiting else None
            try:
                async with asyncio.timeout(wait):
                    line = await _next_event(process)
            except TimeoutError:
                await self._events.flush()
                if idle:
                    idle = False
                    # A headless program ends with its input, and not with its run.
                    await process.close_input()
                continue
            if line is None:
                break
            # Effects before ends: what a call did may be in the files before its end is known, never the reverse.
            if self._ends_effects(line):
                await self._events.flush()
                self._events.hold(line)
                await self._save_worktree(process, worktree, journal)
            else:
                idle = self._stays_idle(line) if idle else self._has_ended(line)
                await self._events.add(line)
        await self._events.flush()

    async def _save_worktree(self, process: UnitProcess, worktree: UnitWorktree, journal: JournalTail) -> None:
        """Send the state of the worktree with the events that are held back.

        No end of a call is sent without its effect, and no effect without the start of its call: calls that began
        meanwhile are in the process' journal before they are in its output.
        """
        again = True
        while again:
            again = False
            await worktree.record(f"after event {self._events.last_seq}")
            begun = last_begun_call(await asyncio.to_thread(journal.lines))
            while self._events.last_seq < begun and (line := await _next_event(process)) is not None:
                again |= self._ends_effects(line)
                self._events.hold(line)
        await self._events.commit(worktree.last, await worktree.bundle())

    def _ends_effects(self, line: bytes) -> bool:
        """True if an event is the end of a call that may have changed files."""
        match type_of(line):
            case "tool.started":
                data = fields_of(line)
                if not data.get("read_only"):
                    self._with_effects.add(str(data.get("call_id")))
            case "tool.ended":
                call_id = str(fields_of(line).get("call_id"))
                if call_id in self._with_effects:
                    self._with_effects.discard(call_id)
                    return True
            case _:
                pass
        return False

    def _has_ended(self, line: bytes) -> bool:
        """True if an event is the end of the run; keep its failure."""
        if type_of(line) != "run.ended" or depth_of(line):
            return False
        data = fields_of(line)
        self._run_failure = "" if data.get("reason") in GOOD_ENDS else _failure(data)
        return True

    def _stays_idle(self, line: bytes) -> bool:
        """True if no other run has begun after the end of one."""
        return type_of(line) != "run.started"

    async def _listen(self, work: "asyncio.Task[None]") -> None:
        """Pass on what the driver sends."""
        while True:
            match await self._link.receive():
                case UnitInput(line=line):
                    if self._process is None:
                        self._early_input.append(line)
                    else:
                        self._process.put(line)
                case UnitCancelled(reason=reason):
                    self._fail(reason)
                    work.cancel()
                case _:
                    pass

    async def _verify(self, worktree: UnitWorktree) -> None:
        confine = self._host.confine
        sandbox = await asyncio.to_thread(confine, worktree.path) if confine is not None else ()
        code, output = await run_shell(self._task.verify, worktree.path, self._host.environment, sandbox)
        output = without_secrets(output, self._host.environment)
        self._ended = replace(self._ended, verified=code == 0, verify_output=output)
        if code:
            raise UnitFailureError(f"verify ended with code {code}")

    async def _finish(self) -> None:
        """Record the last state and make the patch."""
        if self._worktree is None:
            return
        # The time limit may be over by then, and the work would be lost with it.
        async with asyncio.timeout(FINISH_TIMEOUT):
            await self._worktree.record("end")
            if (bundle := await self._worktree.bundle()) or self._events.waiting:
                await self._events.commit(self._worktree.last, bundle)
            patch, changes = await self._worktree.patch(_subject(self._task))
        self._ended = replace(self._ended, patch=patch, changes=changes)


async def _next_event(process: UnitProcess) -> bytes | None:
    """Return the next event; None at the end of the output."""
    while (line := await process.lines.next()) is not None and line.too_long:
        if (kind := type_of(line)) not in DELTAS:
            # Without it, a resumed unit would not know what it did.
            raise UnitFailureError(
                f"event {seq_of(line)} ({kind}) is larger than {LARGEST_EVENT // 1024 // 1024} MiB, so it is lost, "
                "and the unit was ended; what it did before is kept"
            )
    return line


def _failure(data: JsonObject) -> str:
    reason, error = data.get("reason"), data.get("error")
    return str(error) if error else f"the run ended early ({reason})"


def _subject(task: UnitTask) -> str:
    """Return the message of the commit that a patch makes."""
    return f"{task.prompt.strip().splitlines()[0][:72]}\n\nUnit {task.id} of a fleet of tui-agent.\n"


def _make_home(home: Path) -> None:
    """Make the directory of this start; remove those of earlier ones, whose worker was killed."""
    # A worker that was killed could not remove its own.
    for old in home.parent.glob(f"{home.name.rpartition('-')[0]}-*"):
        shutil.rmtree(old, ignore_errors=True)
    home.mkdir(mode=0o700)


def _end_of_file(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - KEPT_OUTPUT))
        return file.read().decode("utf-8", "replace")


def _write_private(path: Path, content: bytes) -> None:
    make_private_directories(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
