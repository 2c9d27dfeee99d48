"""Work in a new thread that always finishes: a late result is better than half a write."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


async def run_shielded_in_thread(work: Callable[[], Result]) -> Result:
    """Run `work` in a thread and wait until it ends, however often the caller is cancelled meanwhile.

    Raises:
        CancelledError: the caller was cancelled; `work` has finished all the same.
    """
    # A new thread: all threads of the shared pool may be waiting for this work.
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
        waiting.exception()  # Retrieved, or asyncio would log it as lost.
        raise cancelled
    return waiting.result()
