"""The scripted Messages API in a thread of the test, for programs in other processes.

In a process of its own, its start would take as much CPU time as that of the program.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

from .messages_server import ScriptedMessagesServer
from .terminal import PATIENCE


class ServerThread:
    """Server that plays a script; a context manager that ends the thread."""

    def __init__(self, script: Sequence[Mapping[str, Any]]) -> None:
        self._server = ScriptedMessagesServer(script)
        self._loop = asyncio.new_event_loop()
        self._done = asyncio.Event()
        self._address: Future[str] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.token = self._server.token
        self.base_url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.base_url = self._address.result(PATIENCE)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables that make a program use this server."""
        return {"ANTHROPIC_BASE_URL": self.base_url, "ANTHROPIC_AUTH_TOKEN": self.token}

    def list_models(self, *names: str) -> None:
        """Let the server list these models."""
        self._server.models = list(names)

    def release(self, name: str) -> None:
        """Release everything that waits for `name`."""
        self._do(lambda: self._server.release(name))

    def reached(self, name: str) -> None:
        """Wait until something waits for `name`."""
        self._wait_for(self._server.reached(name))

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return all requests so far; `problems` lists the faults for which the real API would have refused each."""
        return self._do(lambda: [request.to_json() for request in self._server.requests])

    def _do(self, do: Callable[[], Any]) -> Any:
        """Call a function in the server's thread, and return its result."""

        async def call() -> Any:
            return do()

        return self._wait_for(call())

    def _wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if not self._address.done():
                self._address.set_exception(error)
            raise

    async def _serve(self) -> None:
        async with self._server:
            self._address.set_result(self._server.base_url)
            await self._done.wait()
