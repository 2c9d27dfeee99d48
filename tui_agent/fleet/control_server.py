"""The driver's side of the private socket: carries out the orders of viewers, which read its state from `OUT`."""

import asyncio
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from tui_agent.protocol.background import run_service

from .driver import FleetDriver
from .driver_client import ORDERS, OrderRefused, SendInput

LONGEST_LINE = 4 * 1024 * 1024


async def serve_viewers(driver: FleetDriver) -> None:
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
    if path != address:
        path.parent.rmdir()


async def _serve(driver: FleetDriver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry out the orders of one viewer until it leaves."""
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


async def _carry_out(driver: FleetDriver, line: bytes) -> str:
    """Carry out an order; return why it had no effect, or an empty text."""
    try:
        order = ORDERS.validate_json(line)
    except ValidationError:
        return "the message was not understood; nothing was done"
    if isinstance(order, SendInput):
        return await driver.send_input(order.unit_id, order.command)
    await driver.stop(order.unit_ids, now=order.now)
    return ""
