"""Waits for an idle event loop, however slow the machine is."""

import asyncio
import time

_TURN_LIMIT = 5_000
"""Most turns of the loop in one wait; a loop that never rests is not waited for."""
_GLANCE = 1 / 50
_MOST_GLANCES = 50


async def wait_until_idle(min_sleep: float = _GLANCE, max_sleep: float = 1) -> None:
    """Wait until nothing is ready to run, no timer is due soon, and the loop's threads are idle.

    Replaces Textual's `wait_for_idle`, which considers a process idle if it uses no CPU. On a busy machine a process
    with work to do may get no CPU either, and the test would see a half-drawn screen.

    Args:
        min_sleep: shortest time to wait.
        max_sleep: ignored, since the duration of the work says nothing.
    """
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    for _ in range(_MOST_GLANCES):
        if await _until_nothing_is_ready(loop) == _TURN_LIMIT:
            return
        processor = time.process_time()
        await asyncio.sleep(_GLANCE)
        turns = await _until_nothing_is_ready(loop)
        is_idle = turns == 0 and time.process_time() - processor < _GLANCE / 20 and not _threads_work(loop)
        if is_idle and time.monotonic() - started >= min_sleep:
            return


async def _until_nothing_is_ready(loop: asyncio.AbstractEventLoop) -> int:
    """Run the loop until nothing is ready; return the number of turns that took."""
    ready = getattr(loop, "_ready", ())
    quiet = 0
    for turn in range(_TURN_LIMIT):
        await asyncio.sleep(0)
        # The loop notices input from outside one turn later.
        quiet = 0 if ready else quiet + 1
        if quiet == 2:
            return turn - 1
    return _TURN_LIMIT


def _threads_work(loop: asyncio.AbstractEventLoop) -> bool:
    """Return True if a thread of the loop's pool has work."""
    pool = getattr(loop, "_default_executor", None)
    return pool is not None and len(pool._threads) > pool._idle_semaphore._value
