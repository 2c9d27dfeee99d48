"""Work in a thread of its own that is always waited for: half a write or half a kill is worse than a late answer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


async def run_shielded_in_thread(work: Callable[[], Result]) -> Result:
    """Runs `work` in a thread to its end, also when the caller is cancelled meanwhile, even repeatedly.

    The thread is a new one: the shared pool may be full of work that waits for this.

    Raises:
        CancelledError: the caller was cancelled; `work` is done all the same.
    """
    thread = ThreadPoolExecutor(1, thread_name_prefix="tool-work")
    waiting = asyncio.wrap_future(thread.submit(work))
    thread.shutdown(wait=False)
    cancelled: asyncio.CancelledError | None = None
    while not waiting.done():
        try:
            await asyncio.wait([waiting])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        waiting.exception()
        raise cancelled
    return waiting.result()
