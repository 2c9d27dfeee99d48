"""A viewer's side of the private socket to the driver."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tui_agent.protocol.errors import ConfigurationError

from .control_messages import DRIVER_REPLIES, DriverReply, ViewerMessage

LONGEST_REPLY = 512 * 1024 * 1024
"""Bytes of a reply: the state of a hundred thousand units fits."""


class FleetConnection:
    """An open connection to the driver of a fleet."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Store the arguments; `connected` makes one."""
        self._reader = reader
        self._writer = writer

    async def send(self, message: ViewerMessage) -> None:
        """Send a message.

        Raises:
            ConnectionError: the driver is gone.
        """
        self._writer.write(message.model_dump_json().encode() + b"\n")
        await self._writer.drain()

    async def replies(self) -> AsyncIterator[DriverReply]:
        """Yield the replies until the driver is gone."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            yield DRIVER_REPLIES.validate_json(line)


@asynccontextmanager
async def connected(out: Path) -> AsyncGenerator[FleetConnection]:
    """Connect with the driver of the fleet in a directory.

    Raises:
        ConfigurationError: no driver runs.
    """
    try:
        path = await asyncio.to_thread((out / "control.sock").resolve)
        reader, writer = await asyncio.open_unix_connection(path, limit=LONGEST_REPLY)
    except OSError:
        raise ConfigurationError(
            f"no driver runs for {out}; continue what is not done with: tui-agent fleet retry {out}"
        ) from None
    try:
        yield FleetConnection(reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
