"""Tasks that belong together: one may wait until all are done without closing the group they were born in."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any


class Crew:
    """A task group with a door to look through. Use it as an async context manager; nobody outlives it."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._busy = 0
        self._idle = asyncio.Event()

    async def __aenter__(self) -> "Crew":
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits for everybody. A cancellation cancels them at once; any other error of the body goes on as it is,
        and whoever still works must have been told to stop."""
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, trace)
        else:
            await self._group.__aexit__(None, None, None)

    @property
    def is_busy(self) -> bool:
        """Whether a task still runs."""
        return self._busy > 0

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begins a task; one that raises cancels all the others and its error leaves the group."""
        self._busy += 1
        self._idle.clear()
        self._group.create_task(self._counted(work))

    async def until_idle(self, timeout: float | None = None) -> bool:
        """Waits until no task runs, at most `timeout` seconds; whether that came about."""
        if self.is_busy:
            try:
                async with asyncio.timeout(timeout):
                    await self._idle.wait()
            except TimeoutError:
                pass
        return not self.is_busy

    async def _counted(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._busy -= 1
            if self._busy == 0:
                self._idle.set()
