"""Work in a thread that always finishes."""

import asyncio
import threading

import pytest

from tui_agent.protocol.background import run_shielded_in_thread


@pytest.mark.parametrize("fails", [False, True])
async def test_finishes_although_cancelled_again_and_again(fails: bool) -> None:
    begun, release, done = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        release.wait(60)
        done.set()
        if fails:
            raise OSError("broken")

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run_shielded_in_thread(work))
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.wait([task], timeout=0)
        assert not task.done()
        release.set()

    assert task.cancelled()
    assert done.is_set()
