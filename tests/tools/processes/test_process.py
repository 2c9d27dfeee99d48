"""Running of programs: however they end, the result arrives in time and no process is left."""

import asyncio
import os
import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.support.examples import sample
from tests.tools.calls import eventually
from tests.tools.daemons import DAEMONS, daemon, living_in, pid_of, until_there
from tests.tools.processes.test_process_tree import FAMILIES, lives
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.processes import process, process_tree
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.processes.process_tree import TreeMark
from tui_agent.tools.search.file_listing import BoundedBytes

BUSY = 45.0
"""Seconds that a busy machine may take for immediate things; things the code must not wait for take longer."""
LOOP = "while :; do sleep 0.05; done"


def kept() -> BoundedBytes:
    return BoundedBytes(10_000_000)


def bash(script: str, root: Path, limit: float | None = 30.0, env: Mapping[str, str] = os.environ) -> ProcessSpec:
    return ProcessSpec(("bash", "--noprofile", "--norc", "-c", script), root, env, limit)


def command(script: str, root: Path, limit: float | None = 30.0) -> ProcessSpec:
    return ProcessSpec(("bash", "--noprofile", "--norc", "-c", "--", script), root, os.environ, limit, is_command=True)


async def run(
    spec: ProcessSpec, stdout: BoundedBytes | None = None, stderr: BoundedBytes | None = None
) -> ProcessOutcome:
    return await run_process(spec, stdout or kept(), stderr, CancellationToken())


def wrote_pid(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


async def pid_from(path: Path) -> int:
    """Return the id that a process wrote to its file."""
    assert await asyncio.to_thread(eventually, lambda: wrote_pid(path))
    return int(path.read_text())


async def test_a_command_has_no_input_terminal_or_descriptor_and_all_its_output_is_kept(root: Path) -> None:
    secret = os.open(root / "secret", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(secret, True)
    output, descriptors, late = kept(), kept(), kept()

    await run(bash("cat; (: < /dev/tty) 2>/dev/null || echo none; tty", root), output)
    await run(bash("ls /proc/self/fd", root), descriptors)
    await run(bash("exec > >(sleep 0.05; tr a-z A-Z); echo late", root), late)

    os.close(secret)
    assert bytes(output.data) == b"none\nnot a tty\n"
    assert len(descriptors.data.split()) == 4, "0, 1, 2 and the one ls reads the directory with"
    assert bytes(late.data) == b"LATE\n", "a helper ends after the shell"


async def test_a_program_that_cannot_start_is_an_error_and_leaves_nothing_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(FileNotFoundError):
        await run(ProcessSpec(("/no/such/program",), root, {}, None))
    with pytest.raises(FileNotFoundError):
        await run(bash("true", root / "gone"))

    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("holder", ["sleep 60 &", "setsid sleep 60 &", "(setsid nohup sleep 60 &);"])
async def test_a_grandchild_that_keeps_the_pipe_open_delays_nothing_and_is_ended(root: Path, holder: str) -> None:
    output = kept()

    outcome = await run(bash(f"{holder} echo done", root), output)

    assert output.data.startswith(b"done\n")
    assert outcome.ending == "exited"
    assert outcome.seconds < BUSY
    (name,) = outcome.ended
    # A process that has just started still has the name of its parent.
    found = re.fullmatch(r"(?:sleep|bash|setsid|nohup) \(pid (\d+)\)", name)
    assert found, name
    assert not lives(int(found[1]))


STUBBORN = {
    name: "\n".join(lines).format(write="echo $BASHPID > pid.tmp; mv pid.tmp pid", wait=LOOP)
    for name, lines in FAMILIES.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STUBBORN)
async def test_a_timeout_leaves_nothing_and_is_in_time(name: str, root: Path) -> None:
    outcome = await run(bash(STUBBORN[name], root, limit=1.0))

    assert outcome.ending == "timeout"
    assert outcome.seconds < 1.0 + BUSY
    assert not lives(await pid_from(root / "pid"))


async def test_a_limit_that_grew_counts_from_the_start(root: Path) -> None:
    grown = replace(bash("sleep 0.4", root, limit=0.05), extra_seconds=lambda: 60.0)
    assert (await run(grown)).ending == "exited"

    later = iter((0.0, 0.1, 0.1))
    short = replace(bash("sleep 60", root, limit=0.05), extra_seconds=lambda: next(later))
    assert (await run(short)).ending == "timeout"
    assert next(later, None) is None, "the limit is read again when it is over"


@pytest.mark.slow
@pytest.mark.parametrize("name", sample([*STUBBORN], 3))
async def test_a_set_token_leaves_nothing_and_is_in_time(name: str, root: Path) -> None:
    token = CancellationToken()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_process(bash(STUBBORN[name], root), kept(), None, token))
        pid = await pid_from(root / "pid")
        started = time.monotonic()
        token.cancel()

    assert task.result().ending == "cancelled"
    assert time.monotonic() - started < BUSY
    assert process.GRACE + 2 * process.DRAIN_TIME < 2, "all that is waited for by the clock"
    assert not lives(pid)


@pytest.mark.parametrize("name", sample([*STUBBORN], 3))
async def test_a_cancelled_task_leaves_nothing_even_when_cancelled_again(name: str, root: Path) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(command(STUBBORN[name], root)))
        pid = await pid_from(root / "pid")
        task.cancel()
        await asyncio.wait([task], timeout=0.01)
        task.cancel()
        await asyncio.wait([task])

    assert task.cancelled()
    assert not lives(pid)


async def test_a_task_cancelled_while_it_starts_leaves_nothing(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    script = f"setsid bash -c '{LOOP}' & echo $! > pid.tmp; mv pid.tmp pid; {LOOP}"
    for turns in range(4):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(run(bash(script, root, env=os.environ | {"PROBE": str(root)})))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()

    def left() -> list[int]:
        found: list[int] = []
        for pid in psutil.pids():
            try:
                if str(root).encode() in Path(f"/proc/{pid}/environ").read_bytes() and lives(pid):
                    found.append(pid)
            except OSError:
                continue
        return found

    assert await asyncio.to_thread(eventually, lambda: not left(), 30)
    assert await asyncio.to_thread(eventually, lambda: len(os.listdir("/proc/self/fd")) <= before, 30)


async def test_a_sink_that_has_enough_ends_the_program(root: Path) -> None:
    output = BoundedBytes(1000)

    outcome = await run(bash("yes", root), output)

    assert outcome.ending == "enough"
    assert len(output.data) == 1000
    assert outcome.seconds < BUSY


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAEMONS)
async def test_a_daemon_that_nothing_ties_ends_with_the_command_that_started_it(kind: str, root: Path) -> None:
    outcome = await run(command(f"{daemon(root, kind)}; {until_there()}", root))

    assert outcome.ending == "exited"
    assert f"(pid {pid_of(root)})" in " ".join(outcome.ended)
    assert living_in(root) == []


async def test_without_util_linux_a_daemon_ends_with_its_command_as_well(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sleep", "setsid", "env"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    output = kept()

    outcome = await run_process(
        command(f"{daemon(root)}; {until_there()}; echo $PPID", root), output, None, CancellationToken()
    )

    assert bytes(output.data) == f"{os.getpid()}\n".encode()
    assert (outcome.ending, living_in(root)) == ("exited", [])


@pytest.mark.parametrize(
    ("ends_all", "may_leave", "most"),
    [(True, False, 0), (False, True, 1), (False, False, 1)],
    ids=["behind walls", "of a session", "alone"],
)
async def test_all_processes_are_looked_at_once_at_most_when_nothing_is_left(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    ends_all: bool,
    may_leave: bool,
    most: int,
) -> None:
    looks: list[None] = []
    is_there = process_tree._is_there  # pyright: ignore

    def counted(leader: int | None, mark: TreeMark) -> bool:
        looks.append(None)
        return is_there(leader, mark)

    monkeypatch.setattr(process_tree, "_is_there", counted)

    def ends(left: ProcessOutcome) -> bool:
        return False

    spec = replace(command("true", root), ends_all=ends_all, on_left=ends if may_leave else None)
    outcome = await run(spec)

    assert (outcome.ending, outcome.ended, len(looks)) == ("exited", (), most)
