"""The program behind an editor: one connection on file descriptors, until the client is gone or a signal comes."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager

from acp import run_agent

from .editor_agent import EditorAgent
from .editor_client import EditorClient
from .editor_host import EditorHost
from .rpc_transport import RpcTransport

END_TIMEOUT = 4.5
"""Seconds that runs get to end, and the client to read the rest; what it has not read by then is dropped."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def serve_editor(host: EditorHost, stdin: int, stdout: int) -> int:
    """Serve one client and return the exit code: 130 after a signal, otherwise 0. Call it in the main thread."""
    transport = RpcTransport(stdin, stdout)
    client = EditorClient(transport)
    transport.start()
    over = asyncio.Event()
    received: list[int] = []

    def interrupt(number: int) -> None:
        received.append(number)
        over.set()

    async with asyncio.TaskGroup() as tasks:
        agent = EditorAgent(host, client, tasks)
        with _on_signal(interrupt):
            connection = tasks.create_task(_listen(agent, transport, over))
            watching = tasks.create_task(_watch(transport, over))
            await over.wait()
            asyncio.get_running_loop().call_later(END_TIMEOUT, transport.abandon)
            client.is_connected = False
            agent.end()
            watching.cancel()
            connection.cancel()
    await transport.finish()
    return 130 if received else 0


async def _listen(agent: EditorAgent, transport: RpcTransport, over: asyncio.Event) -> None:
    """Serve requests until the client has closed its end."""
    try:
        # Closing, resuming and forking sessions are still marked as unstable there.
        await run_agent(agent, transport, use_unstable_protocol=True)
    finally:
        over.set()


async def _watch(transport: RpcTransport, over: asyncio.Event) -> None:
    """End the program once nothing more can be written."""
    await transport.disconnected()
    over.set()


@contextmanager
def _on_signal(act: Callable[[int], None]) -> Generator[None]:
    """Call `act` for each signal that would end the program; restore the earlier handlers on exit."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, act, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
