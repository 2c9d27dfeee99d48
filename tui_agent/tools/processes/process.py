"""Running of one program: a thread reads its output, and everything it started is ended with it.

The thread keeps a flood of output away from the event loop. It also makes the end independent of the pipes: a
grandchild that holds one open delays nothing, and asyncio's `wait`, which on Python 3.11 never returns while one of
asyncio's own pipes is open (https://github.com/python/cpython/issues/119710), has no pipe to wait for.
"""

import asyncio
import os
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psutil

from tui_agent.protocol.background import run_shielded_in_thread
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.programs import open_script
from tui_agent.protocol.tool import StartedProcess

from .child_environment import child_environment
from .command_launcher import wrap_argv
from .detached_commands import GUARD, Keeper, detach, is_detached, record_of
from .orphans import call_running, is_kept, led_by, unclaimed_orphans
from .output_pump import OutputPump, Sink
from .process_tree import TreeMark, end_tree, left_running, process_name, some_of, topmost

GRACE = 0.8
"""Seconds between TERM and KILL; with the times below, a result arrives well within its time limit plus 2 s."""

DRAIN_TIME = 0.3
"""Seconds to wait for more output after the program itself has ended."""

_REAP_TIME = 0.3

_LEAVE_TIME = 0.2
"""Seconds that a process which ends after the program may take before it counts as left running."""
_LOOK_AGAIN = 0.5
"""Seconds between two looks at the processes that were left running."""

Ending = Literal["exited", "timeout", "cancelled", "enough", "let go"]
"""End of a program: by itself, or ended because of its time limit, a cancellation, or a sink that had enough. `let go`:
it still runs, and belongs to this program no more."""


@dataclass(slots=True)
class Release:
    """Means to let a program go while it runs."""

    wanted: asyncio.Event
    """Set to let it go."""
    output: Callable[[], tuple[Path, int]]
    """Returns the file that has its output and gets the rest, and its most bytes. May raise OSError."""
    give_away: Callable[[], None]
    """Called when all output was read that does not go to the file by itself."""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once it was let go, or cannot be."""
    problem: str = ""
    """Reason why it cannot be let go; it runs on as before."""
    pid: int = 0
    """Id of the program once it runs."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """Description of a program to run."""

    argv: tuple[str, ...]
    cwd: Path
    environment: Mapping[str, str]
    limit: float | None
    """Seconds it may run; None: no limit."""
    script: str | None = None
    """Text for a shell whose command line is that of `script_argv`; None: the program is another one."""
    descriptors: tuple[int, ...] = ()
    """Descriptors it inherits in addition to the standard ones."""
    is_wrapped: bool = False
    """True if the program is only a wrapper that kills the real one when it gets TERM: then it gets none."""
    ends_all: bool = False
    """True if a wrapper ends everything that the program started: nothing is left to look for once it has ended by
    itself."""
    extra_seconds: Callable[[], float] | None = None
    """Returns seconds by which the limit has grown since the start."""
    is_command: bool = False
    """True for a command that may start anything: it is killed when this program dies, and its children are marked."""
    release: Release | None = None
    """Lets the program go; None: it never outlives this one."""
    on_left: "Callable[[ProcessOutcome], bool] | None" = None
    """Called on the event loop when the program has ended by itself and left others running, which `ended` names. True:
    they may run on, and the program counts as running until they have ended; False, and without it: they are ended."""


@dataclass(frozen=True, slots=True)
class ProcessOutcome:
    """Result of running a program."""

    ending: Ending
    returncode: int | None
    """Exit code; negative: the number of the signal that ended it; None: it could not be ended, or collected."""
    seconds: float
    ended: tuple[str, ...] = ()
    """Name and id of each other process that it had started and that was still running and was ended."""


async def run_worker(
    program: Path,
    arguments: Sequence[str],
    data: bytes,
    stdout: Sink,
    stderr: Sink,
    seconds: float,
    cancellation: CancellationToken,
) -> ProcessOutcome:
    """Run one of our own programs for some seconds at most, with `data` in a file.

    The number of the file's descriptor is the last argument of the program.

    Raises:
        OSError, CancelledError: as for `run_process`.
    """

    def fill() -> None:
        file.write(data)
        file.seek(0)

    with tempfile.TemporaryFile() as file:
        await asyncio.to_thread(fill)
        argv = (sys.executable, "-I", "-B", "-W", "ignore", str(program), *arguments, str(file.fileno()))
        environment = child_environment(os.environ)
        spec = ProcessSpec(argv, Path("/"), environment, seconds, descriptors=(file.fileno(),))
        return await run_process(spec, stdout, stderr, cancellation)


async def run_process(
    spec: ProcessSpec,
    stdout: Sink,
    stderr: Sink | None,
    cancellation: CancellationToken,
    on_data: Callable[[], None] | None = None,
    on_start: Callable[[StartedProcess], None] | None = None,
    mark: TreeMark | None = None,
) -> ProcessOutcome:
    """Run a program in a session of its own, without input; when this returns or raises, all its processes have ended.

    Args:
        stdout: takes its output, in a thread.
        stderr: takes its error output; None: it goes to `stdout`, interleaved.
        on_data: called on the event loop after new output, seldom enough to be cheap.
        on_start: called on the event loop once the program runs, with a record to find it after a crash of this one.
        mark: mark for everything it starts; None: a new one.

    Raises:
        OSError: the program could not be started.
        CancelledError: the calling task was cancelled; the program has been ended.
    """
    mark = mark or TreeMark.new()
    if spec.is_command and not (spec.ends_all and GUARD.is_there):
        # Looking for the programs and starting the guard blocks for some milliseconds.
        spec = replace(spec, argv=await asyncio.to_thread(_wrapped, spec, mark))
    pump = OutputPump([sink for sink in (stdout, stderr) if sink is not None], on_data)
    late: tuple[str, ...] = ()
    try:
        with call_running(mark.limit, leaves_orphans=not spec.ends_all):
            outcome = await _run(spec, mark, pump, cancellation, partial(_started, spec, mark, on_start))
    finally:
        # One that was let go has its mark still.
        if not is_kept(mark.limit) and unclaimed_orphans(mark.limit):
            # Calls that ended at the same time may each have left an orphan to the other.
            late = await run_shielded_in_thread(partial(end_tree, None, mark, grace=GRACE))
    return replace(outcome, ended=(*outcome.ended, *late)) if late else outcome


async def _run(
    spec: ProcessSpec,
    mark: TreeMark,
    pump: OutputPump,
    cancellation: CancellationToken,
    on_start: Callable[[int], None],
) -> ProcessOutcome:
    started = time.monotonic()
    try:
        process = await _spawn(spec, mark, pump.write_ends)
    except BaseException as error:
        pump.stop()
        if isinstance(error, asyncio.CancelledError):
            # The program may run already, known by its mark alone.
            await run_shielded_in_thread(partial(end_tree, None, mark, grace=0))
        raise
    ended: tuple[str, ...] = ()
    left: _Left | None = None
    is_gone = False
    try:
        pump.start()
        on_start(process.pid)
        began = asyncio.get_running_loop().time()
        while True:
            ending = await _wait_for_end(left or process, pump, cancellation, spec, began)
            if ending == "let go" and spec.release is not None:
                if await _detach(process, mark, pump, spec.release):
                    return ProcessOutcome(ending, None, time.monotonic() - started)
                continue
            if ending == "exited" and left is None:
                await pump.wait(DRAIN_TIME)
                ending = "enough" if pump.sated.is_set() else ending
                # Only a command that ended by itself has put away on purpose what still runs.
                left = await _find_left(process, mark, spec) if ending == "exited" else None
                is_gone = ending == "exited" and left is None and (spec.ends_all or spec.on_left is not None)
                seconds = time.monotonic() - started
                if left is not None and spec.on_left is not None:
                    names = tuple(map(process_name, topmost(left.processes)))
                    if spec.on_left(ProcessOutcome(ending, process.returncode, seconds, names)):
                        if not any(map(partial(_is_in_group, process.pid), left.processes)):
                            # Its number may become another one's.
                            GUARD.forget(process.pid)
                        continue
            break
    finally:
        try:
            # The id of a program that ended long ago may be another one's.
            leader, known = (process.pid, ()) if left is None else (None, left.processes)
            end = partial(end_tree, leader, mark, grace=GRACE, spares_leader=spec.is_wrapped, known=known)
            # A look at every process of the machine takes longer than many a command: never a second one.
            ended = () if is_gone or is_detached(process) else await run_shielded_in_thread(end)
            await pump.wait(DRAIN_TIME)
        finally:
            pump.stop()
        GUARD.forget(process.pid)
        await pump.wait(DRAIN_TIME)
        if not is_detached(process):
            await _collect(process)
    return ProcessOutcome(ending, process.returncode, time.monotonic() - started, ended)


def _is_in_group(group: int, process: psutil.Process) -> bool:
    with suppress(OSError):
        return os.getpgid(process.pid) == group
    return False


class _Left:
    """Processes that a program has left running; they end like one."""

    def __init__(self, processes: tuple[psutil.Process, ...], mark: TreeMark, returncode: int | None) -> None:
        self.processes = processes
        self._mark = mark
        self._code = returncode
        self.returncode: int | None = None
        """Exit code of the program; None while any of them runs."""

    async def wait(self) -> None:
        """Wait until the last one has ended."""
        while processes := await asyncio.to_thread(some_of, self._mark, self.processes):
            self.processes = processes
            await asyncio.sleep(_LOOK_AGAIN)
        self.returncode = self._code


async def _find_left(process: Process, mark: TreeMark, spec: ProcessSpec) -> _Left | None:
    """Return what a program has left running, for as long as it takes to know that it lasts; None: nothing."""
    if spec.on_left is None:
        return None
    look = partial(left_running, process.pid, mark)
    processes = await run_shielded_in_thread(look)
    if processes:
        await asyncio.sleep(_LEAVE_TIME)
        processes = await run_shielded_in_thread(look)
    return _Left(processes, mark, process.returncode) if processes else None


async def _spawn(spec: ProcessSpec, mark: TreeMark, write_ends: tuple[int, ...]) -> Process:
    """Start the program; close this process's copies of the pipes' write ends in any case."""
    script: tuple[int, ...] = ()
    try:
        if spec.script is not None:
            script = (open_script(spec.script),)
        return await asyncio.create_subprocess_exec(
            *spec.argv,
            *map(str, script),
            stdin=DEVNULL,
            stdout=write_ends[0],
            stderr=write_ends[-1],
            cwd=spec.cwd,
            env=mark.put_into(spec.environment),
            start_new_session=True,
            pass_fds=(*spec.descriptors, *script),
        )
    finally:
        for descriptor in (*write_ends, *script):
            os.close(descriptor)


async def _wait_for_end(
    process: Process | _Left, pump: OutputPump, cancellation: CancellationToken, spec: ProcessSpec, began: float
) -> Ending:
    """Wait for the first of: exit, cancellation, time limit, a sink that had enough."""
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        waits: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = (
            process.wait,
            cancellation.wait,
            pump.sated.wait,
            *(() if spec.release is None else (spec.release.wanted.wait,)),
        )
        watchers = [group.create_task(_set_when_done(over, wait)) for wait in waits]
        try:
            await _wait_within(over, spec, began)
        finally:
            for watcher in watchers:
                watcher.cancel()
    if pump.sated.is_set():
        return "enough"
    if process.returncode is not None:
        return "exited"
    if cancellation.is_set():
        return "cancelled"
    return "let go" if spec.release is not None and spec.release.wanted.is_set() else "timeout"


def _wrapped(spec: ProcessSpec, mark: TreeMark) -> tuple[str, ...]:
    GUARD.prepare(spec.cwd)
    # A wrapper that ends all dies with this program by itself, and everything in it descends from it.
    return spec.argv if spec.ends_all else wrap_argv(spec.argv, mark, spec.cwd, dies_with_us=spec.release is None)


def _started(
    spec: ProcessSpec,
    mark: TreeMark,
    on_start: Callable[[StartedProcess], None] | None,
    pid: int,
) -> None:
    """Have the program guarded, and record it."""
    led_by(mark.limit, pid)
    if spec.is_command:
        GUARD.watch(pid)
    if spec.release is not None:
        spec.release.pid = pid
    if on_start is not None and (record := record_of(pid, mark)) is not None:
        on_start(record)


async def _detach(process: Process, mark: TreeMark, pump: OutputPump, release: Release) -> bool:
    """Leave the program's output to another process; return False, with the reason, if that is impossible."""
    try:
        keeper = Keeper(*release.output(), pump)
    except OSError as error:
        release.problem = error.strerror or str(error)
        release.wanted.clear()
        release.answered.set()
        return False
    detach(process, mark)
    pump.stop()
    await pump.wait(DRAIN_TIME)
    release.give_away()
    keeper.begin()
    release.answered.set()
    return True


async def _wait_within(over: asyncio.Event, spec: ProcessSpec, began: float) -> None:
    """Wait for an event until the time limit, which may grow meanwhile."""
    now = asyncio.get_running_loop().time
    while not over.is_set():
        deadline = None
        if spec.limit is not None:
            deadline = began + spec.limit + (spec.extra_seconds() if spec.extra_seconds is not None else 0.0)
            if now() >= deadline:
                return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(deadline):
                await over.wait()


async def _set_when_done(over: asyncio.Event, wait: Callable[[], Coroutine[Any, Any, object]]) -> None:
    await wait()
    over.set()


async def _collect(process: Process) -> None:
    """Wait until the ended program was reaped, so that asyncio forgets it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_REAP_TIME):
            await process.wait()
