"""Tool servers that outlive the runs of an agent: they start with its first run and stop when it is closed."""

import asyncio
from collections.abc import Callable, Sequence

from .server_parts import ServerParts
from .server_pool import ConfiguredServer, ServerPool, Tools


class KeptServers:
    """Keeps a pool open in a task of its own, in the event loop of the run that uses it."""

    def __init__(
        self,
        servers: Sequence[ConfiguredServer],
        parts: Callable[[], ServerParts],
        *,
        window: Callable[[], int],
        tool_changed: Callable[[str], object],
    ) -> None:
        """Store the arguments, as of `ServerPool`; `parts` is called at each start."""
        self._servers = servers
        self._parts = parts
        self._window = window
        self._tool_changed = tool_changed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: ServerPool | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._over = asyncio.Event()

    async def update(self, tools: Tools) -> None:
        """Give the agent the tools that the servers offer now; the first time, start the servers."""
        loop = asyncio.get_running_loop()
        if self._pool is None or self._loop is not loop:
            if self._pool is not None:
                # Its loop has ended, and the servers with it.
                self._pool.withdraw(tools)
            pool = ServerPool(self._servers, self._parts(), window=self._window, tool_changed=self._tool_changed)
            started, self._over = asyncio.Event(), asyncio.Event()
            # Entered by hand because the servers outlive this run. Its one task never raises.
            self._tasks = await asyncio.TaskGroup().__aenter__()
            self._tasks.create_task(_keep(pool, started, self._over))
            await started.wait()
            self._loop, self._pool = loop, pool
        await self._pool.update(tools)

    async def close(self) -> None:
        """Stop the servers if they run in this event loop."""
        if self._tasks is None or self._loop is not asyncio.get_running_loop():
            return
        tasks, self._tasks, self._loop = self._tasks, None, None
        self._over.set()
        await tasks.__aexit__(None, None, None)


async def _keep(pool: ServerPool, started: asyncio.Event, over: asyncio.Event) -> None:
    async with pool.running():
        started.set()
        await over.wait()
