"""The event loop of a replay: its clock leaps from timer to timer and never stands still."""

import asyncio

from tests.support.leaping_loop import LeapingLoop


async def watch_the_clock(loop: LeapingLoop, until: float) -> None:
    while loop.time() < until:
        await asyncio.sleep(0)


def test_code_that_polls_the_clock_makes_progress() -> None:
    loop = LeapingLoop(100.0)
    watcher = asyncio.Task(watch_the_clock(loop, 100.05), loop=loop)

    assert loop.run_slice(100.02)
    assert loop.time() == 100.02
    assert not watcher.done()
    assert not loop.run_slice(101.0, seconds=0)
    assert loop.run_slice(101.0)
    assert watcher.done()
    loop.close()
