"""Waits until a loop is at rest."""

import asyncio
import time

from .idle_loop import wait_until_idle


async def test_it_waits_for_each_step_of_a_chain_on_a_busy_machine() -> None:
    loop = asyncio.get_running_loop()
    left = 40

    def hop() -> None:
        nonlocal left
        time.sleep(0.005)  # Sleeping uses no CPU, like a process that other programs keep waiting.
        left -= 1
        if left:
            loop.call_soon(hop)

    loop.call_soon(hop)
    await wait_until_idle(0)

    assert left == 0


async def test_it_waits_for_the_consequences_of_a_due_timer() -> None:
    seen: list[str] = []
    loop = asyncio.get_running_loop()
    loop.call_later(0.01, lambda: loop.call_soon(lambda: loop.call_soon(seen.append, "drawn")))

    await wait_until_idle(0)

    assert seen == ["drawn"]


async def test_it_waits_for_the_threads_of_the_loop() -> None:
    work = asyncio.ensure_future(asyncio.to_thread(time.sleep, 0.2))

    await wait_until_idle(0)

    assert work.done()


async def test_it_does_not_wait_for_a_loop_that_never_rests() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    task = asyncio.ensure_future(spin())
    await wait_until_idle(0)

    assert not task.done()
    task.cancel()


async def test_it_does_not_wait_forever_for_a_blocked_thread() -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        await asyncio.to_thread(lambda: asyncio.run_coroutine_threadsafe(over.wait(), loop).result())

    task = asyncio.ensure_future(wait())
    await wait_until_idle(0)

    assert not task.done()
    over.set()
    await task
