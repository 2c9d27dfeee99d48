"""Orphans of the program: they are ended when it exits, and none stays a zombie."""

import asyncio
import os
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.tools.calls import eventually
from tests.tools.daemons import living_in
from tui_agent.tools.processes.orphans import is_subreaper, own_children
from tui_agent.workbench import leftover_commands
from tui_agent.workbench.leftover_commands import adopt_orphans

ORPHANS = 20


def zombies() -> set[int]:
    found: set[int] = set()
    for pid in own_children():
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                found.add(pid)
        except psutil.Error:
            continue
    return found


def reap(pid: int) -> None:
    os.waitpid(pid, 0)


def started(script: str, root: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["bash", "-c", script], cwd=root)


async def test_orphans_are_reaped_and_children_keep_their_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover_commands, "_PAUSE", 0.05)
    before = zombies()
    async with adopt_orphans():
        helper = started(f"for i in {{1..{ORPHANS}}}; do (setsid true &); done; exit 3", tmp_path)
        assert await asyncio.to_thread(helper.wait) == 3
        assert await asyncio.to_thread(eventually, lambda: zombies() <= before)
        program = await asyncio.create_subprocess_exec("bash", "-c", "exit 5")
        assert await program.wait() == 5


async def test_a_crash_ends_orphans_and_is_raised_unchanged(tmp_path: Path) -> None:
    async def crash() -> None:
        async with adopt_orphans():
            script = "(ulimit -S -x unlimited; setsid env -i /bin/sleep 600 >/dev/null 2>&1 & echo $! > pid)"
            helper = started(script, tmp_path)
            assert await asyncio.to_thread(helper.wait) == 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await crash()

    assert living_in(tmp_path) == []
    assert not is_subreaper()
    reap(int((tmp_path / "pid").read_text()))


async def test_a_second_engine_leaves_orphans_to_the_first() -> None:
    async with adopt_orphans():
        async with adopt_orphans():
            assert is_subreaper()
        assert is_subreaper()
    assert not is_subreaper()


def test_orphans_are_adopted_outside_the_main_thread_too(tmp_path: Path) -> None:
    async def adopt() -> bool:
        async with adopt_orphans():
            return is_subreaper()

    async def in_a_thread() -> bool:
        return await asyncio.to_thread(lambda: asyncio.run(adopt()))

    assert asyncio.run(in_a_thread())
    assert not is_subreaper()
