"""Orphans that this program adopts as the subreaper, and the calls they belong to."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.tools.calls import eventually
from tests.tools.daemons import daemon, living_in, pid_of, until_there
from tests.tools.processes.test_process import command, kept, lives, pid_from, run
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.processes.orphans import (
    become_subreaper,
    is_subreaper,
    locks_limit,
    own_children,
    resign_as_subreaper,
    unclaimed_orphans,
)
from tui_agent.tools.processes.process import run_process

NO_MARK = "ulimit -S -x unlimited;"
"""Script that removes the mark, as `su` does when it sets the limits of a user."""


def started(script: str, root: Path) -> "subprocess.Popen[bytes]":
    """A helper of this program."""
    return subprocess.Popen(["bash", "-c", script], cwd=root, stdin=subprocess.PIPE)


def end(pid: int) -> None:
    """End and reap an orphan that this program adopted."""
    psutil.Process(pid).kill()
    os.waitpid(pid, 0)


def unmarked(start: str) -> str:
    """Return a command that starts a daemon without a mark."""
    return start.replace("(setsid env -i", f"({NO_MARK} setsid env -i")


@pytest.mark.usefixtures("subreaper")
async def test_a_daemon_that_lost_its_mark_ends_with_its_call(root: Path) -> None:
    outcome = await run(command(f"{unmarked(daemon(root))}; {until_there()}", root))

    assert f"(pid {pid_of(root)})" in " ".join(outcome.ended)
    assert living_in(root) == []


@pytest.mark.usefixtures("subreaper")
async def test_a_daemon_that_lost_its_mark_stays_while_it_may_belong_to_another_call(
    root: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    token = CancellationToken()
    async with asyncio.TaskGroup() as group:
        spec = command(f"{unmarked(daemon(other))}; sleep 600", other)
        group.create_task(run_process(spec, kept(), None, token))
        left = await pid_from(other / "daemon.pid")

        outcome = await run(command("true", root))

        assert (outcome.ended, lives(left)) == ((), True)
        token.cancel()

    assert living_in(other) == []


@pytest.mark.slow
@pytest.mark.usefixtures("subreaper")
async def test_calls_that_end_at_the_same_time_leave_no_daemon(root: Path) -> None:
    token = CancellationToken()
    names = [f"d{number}" for number in range(4)]
    async with asyncio.TaskGroup() as group:
        for name in names:
            spec = command(f"{unmarked(daemon(root, name=name))}; sleep 600", root)
            group.create_task(run_process(spec, kept(), None, token))
        for name in names:
            await pid_from(root / f"{name}.pid")
        token.cancel()

    assert living_in(root) == []


@pytest.mark.usefixtures("subreaper")
async def test_helpers_of_this_program_and_their_orphans_are_left_alone(root: Path) -> None:
    helper = started(daemon(root), root)
    left = await pid_from(root / "daemon.pid")
    helper.communicate()
    assert await asyncio.to_thread(eventually, lambda: left in own_children())
    try:
        outcome = await run(command("true", root))

        assert (outcome.ended, lives(left)) == ((), True)
        assert left not in unclaimed_orphans(0)
    finally:
        end(left)


async def test_processes_from_before_the_subreaper_are_left_alone(root: Path) -> None:
    earlier = started("read; (setsid sleep 600 >/dev/null & echo $! > d.tmp; mv d.tmp daemon.pid)", root)
    become_subreaper()
    try:
        earlier.communicate(b"go\n")
        left = await pid_from(root / "daemon.pid")
        outcome = await run(command("true", root))

        assert (outcome.ended, lives(left)) == ((), True)
        end(left)
    finally:
        resign_as_subreaper()


def test_a_program_adopts_orphans_only_as_the_subreaper(root: Path) -> None:
    before = locks_limit(os.getpid())
    assert not is_subreaper()

    assert become_subreaper()
    assert not become_subreaper(), "once is enough"
    assert is_subreaper()
    assert locks_limit(os.getpid()) != before

    resign_as_subreaper()
    resign_as_subreaper()
    assert not is_subreaper()
    assert locks_limit(os.getpid()) == before
    assert unclaimed_orphans(0) == frozenset()


@pytest.mark.slow
def test_without_a_mark_there_is_no_subreaper() -> None:
    program = "from tui_agent.tools.processes.orphans import *; print(become_subreaper(), is_subreaper())"

    done = subprocess.run(
        ["bash", "-c", 'ulimit -x 100; exec "$@"', "bash", sys.executable, "-c", program],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert done.stdout == "False False\n"
