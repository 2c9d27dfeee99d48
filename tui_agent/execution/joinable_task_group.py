"""A task group that can be waited for without being closed."""

import asyncio
import contextlib
from collections.abc import Coroutine
from types import TracebackType
from typing import Any


class JoinableTaskGroup:
    """Task group that can be awaited several times. An async context manager that outlives its tasks."""

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
        """Wait for all tasks. A cancellation cancels them at once; before any other error of the body, stop them."""
        self._closing = True
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def is_busy(self) -> bool:
        """True if a task is running."""
        return self._busy > 0

    @property
    def takes_work(self) -> bool:
        """True if a task may still be started: the group is not being left, and no task has failed."""
        return not self._closing

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task; if it raises, all others are cancelled and the group raises its error."""
        if self._busy == 0:
            self._idle.clear()
        self._busy += 1
        self._group.create_task(work).add_done_callback(self._one_is_done)

    async def until_idle(self, timeout: float | None = None) -> bool:
        """Wait until no task runs, at most `timeout` seconds; return False if time ran out."""
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
