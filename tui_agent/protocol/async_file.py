"""Files that are read without blocking the event loop: each operation runs in a thread, through `aiofiles`."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from io import BufferedReader
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from aiofiles.threadpool.binary import AsyncBufferedReader

T = TypeVar("T")

Opener = Callable[[str, int], int]
"""Function that opens a path and returns the descriptor, as for the built-in `open`; called in a thread."""


@asynccontextmanager
async def open_for_reading(path: str, opener: Opener) -> AsyncGenerator["AsyncBufferedReader", None]:
    """Open a file with `opener` for reading bytes.

    A cancelled caller does not wait for an operation that is still running, such as a read from a slow disk: the
    thread closes the file after it.

    Raises:
        Exception: anything that `opener` raises.
    """
    # In a thread: an import waits while another thread imports, and the event loop must not.
    aiofiles = _load() if _load.cache_info().currsize else await asyncio.to_thread(_load)
    thread = _FileThread()
    try:
        yield await aiofiles.open(path, "rb", opener=opener, executor=thread)
    except asyncio.CancelledError:
        thread.close_file()
        raise
    except BaseException:
        await asyncio.shield(asyncio.wrap_future(thread.close_file()))
        raise
    else:
        await asyncio.shield(asyncio.wrap_future(thread.close_file()))


@cache
def _load() -> Any:
    """Return the module `aiofiles`. Loading it takes 5 ms that the start of the program does not need."""
    import aiofiles

    return aiofiles


class _FileThread(ThreadPoolExecutor):
    """The thread of one file. It runs one operation at a time, so that no descriptor is closed while it is read."""

    def __init__(self) -> None:
        super().__init__(1, thread_name_prefix="file")
        self._opened: Future[Any] | None = None

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run an operation; the first one opens the file and returns it."""
        operation = super().submit(fn, *args, **kwargs)
        if self._opened is None:
            self._opened = operation
        return operation

    def close_file(self) -> Future[None]:
        """Close the file after the operation that is running, if any, and end the thread. Does not block."""
        opened = self._opened
        if opened is None:  # The thread could not be started. Its queue still has the call that opens the file.
            self.shutdown(wait=False, cancel_futures=True)
            closing: Future[None] = Future()
            closing.set_result(None)
            return closing
        closing = self.submit(_close, opened)
        self.shutdown(wait=False)
        return closing


def _close(opened: Future[Any]) -> None:
    """Close a file, also if its caller never received it because of a cancellation."""
    if not opened.cancelled() and opened.exception() is None:
        cast(BufferedReader, opened.result()).close()
