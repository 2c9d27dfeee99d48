"""Tasks that belong together: one may wait until all are done without closing the group they were born in."""

import asyncio
import contextlib
from collections.abc import Coroutine
from types import TracebackType
from typing import Any


class JoinableTaskGroup:
    """A task group with a door to look through. Use it as an async context manager; nobody outlives it."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._closing = False
        self._busy = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> "JoinableTaskGroup":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for everybody. A cancellation cancels them at once; any other error of the body goes on as it is,
        and whoever still works must have been told to stop."""
        self._closing = True
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def is_busy(self) -> bool:
        """Whether a task still runs."""
        return self._busy > 0

    @property
    def takes_work(self) -> bool:
        """Whether a task may still be begun: nobody leaves, and none of them broke."""
        return not self._closing

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins a task; one that raises cancels all the others and its error leaves the group."""
        if self._busy == 0:
            self._idle.clear()
        self._busy += 1
        self._group.create_task(work).add_done_callback(self._one_is_done)

    async def until_idle(self, timeout: float | None = None) -> bool:
        """Waits until no task runs, at most `timeout` seconds; whether that came about."""
        if timeout is None:
            await self._idle.wait()
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._idle.wait()
        return not self.is_busy

    def _one_is_done(self, task: asyncio.Task[None]) -> None:
        broke = not task.cancelled() and task.exception() is not None
        self._closing = self._closing or broke
        self._busy -= 1
        if self._busy == 0:
            self._idle.set()
