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
