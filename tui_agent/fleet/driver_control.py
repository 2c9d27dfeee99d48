"""The private socket of a fleet: viewers send orders to the driver, and read its state from `OUT`.

An order is one JSON object a line; the driver answers only one that had no effect. A viewer is the fleet screen,
`fleet events --follow` or `fleet stop`. The driver works on without one.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from tui_agent.protocol.background import run_service
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import FleetStatus
from tui_agent.protocol.messages import FrozenModel, JsonObject

from .fleet_directory import left_status, written_status

if TYPE_CHECKING:
    # A viewer does not load the driver.
    from .driver import FleetDriver

LOOK_SECONDS = 0.1
"""Time between two looks at the files of a fleet."""


class SendInput(FrozenModel):
    """Send a command of stream-json to a unit: a steering message, an answer, an interrupt."""

    type: Literal["input"] = "input"
    unit_id: str
    command: JsonObject


class StopUnits(FrozenModel):
    """Stop units after their steps, or now."""

    type: Literal["stop"] = "stop"
    unit_ids: tuple[str, ...] = ()
    """Units; empty for all, which ends the fleet."""
    now: bool = False


Order: TypeAlias = SendInput | StopUnits
ORDERS: TypeAdapter[Order] = TypeAdapter(Annotated[Order, Field(discriminator="type")])


class OrderRefused(FrozenModel):
    """Answer of the driver: an order had no effect."""

    reason: str


class FleetConnection:
    """An open connection to the driver of a fleet."""

    def __init__(self, out: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._out = out
        self._reader = reader
        self._writer = writer

    @property
    def is_open(self) -> bool:
        """True until the driver has left."""
        return not self._reader.at_eof()

    def send(self, order: Order) -> None:
        """Send an order; without a driver, do nothing."""
        self._writer.write(order.model_dump_json().encode() + b"\n")

    async def refusals(self) -> AsyncIterator[str]:
        """Yield the reasons of orders without effect, until the driver has left."""
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                yield OrderRefused.model_validate_json(line).reason

    async def states(self) -> AsyncIterator[FleetStatus]:
        """Yield the state of the fleet whenever the driver has written it, and a last time after it has left.

        Raises:
            ConfigurationError: the state cannot be read.
        """
        seen = 0
        while self.is_open:
            seen, status = await asyncio.to_thread(written_status, self._out, seen)
            if status is not None:
                yield status
            await asyncio.sleep(LOOK_SECONDS)
        # The driver writes its last state before it closes the connection.
        yield await asyncio.to_thread(left_status, self._out)


@asynccontextmanager
async def connected(out: Path) -> AsyncGenerator[FleetConnection]:
    """Connect with the driver of the fleet in a directory.

    Raises:
        ConfigurationError: no driver runs.
    """
    try:
        # The path itself may be a link, since a socket has a short limit for its path.
        path = await asyncio.to_thread((out / "control.sock").resolve)
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError:
        raise ConfigurationError(
            f"no driver runs for {out}; continue what is not done with: tui-agent fleet retry {out}"
        ) from None
    try:
        yield FleetConnection(out, reader, writer)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


LONGEST_LINE = 4 * 1024 * 1024


async def serve_viewers(driver: "FleetDriver") -> None:
    """Serve viewers until cancelled; the end of their connections tells them that the driver leaves.

    Raises:
        OSError: the socket cannot be made.
    """
    path = await asyncio.to_thread(driver.directory.make_socket_path)
    async with asyncio.TaskGroup() as tasks:

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            # An error ends this viewer, never the driver.
            tasks.create_task(run_service("viewer of the fleet", _serve(driver, reader, writer)))

        # Its directory is private, and so is the socket.
        server = await asyncio.start_unix_server(connected, path, limit=LONGEST_LINE)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            await asyncio.to_thread(_remove, path, driver.directory.path / "control.sock")


def _remove(path: Path, address: Path) -> None:
    path.unlink(missing_ok=True)
    address.unlink(missing_ok=True)
    # It was made for the socket alone, because the path in `OUT` is too long.
    if path != address:
        path.parent.rmdir()


async def _serve(driver: "FleetDriver", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry out the orders of one viewer until it leaves."""
    # Counted while connected, and not while active: for a viewer the driver writes deltas and leaves questions open.
    driver.viewers += 1
    try:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                if reason := await _carry_out(driver, await reader.readuntil(b"\n")):
                    writer.write(OrderRefused(reason=reason).model_dump_json().encode() + b"\n")
                    await writer.drain()
    finally:
        driver.viewers -= 1
        writer.close()


async def _carry_out(driver: "FleetDriver", line: bytes) -> str:
    """Carry out an order; return why it had no effect, or an empty text."""
    try:
        order = ORDERS.validate_json(line)
    except ValidationError:
        return "the message was not understood; nothing was done"
    if isinstance(order, SendInput):
        return await driver.send_input(order.unit_id, order.command)
    await driver.stop(order.unit_ids, now=order.now)
    return ""
