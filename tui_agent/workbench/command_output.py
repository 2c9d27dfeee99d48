"""Runs a command line that only the user's own settings name, and returns what it prints."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 256 * 1024
"""Most bytes that are read of the output, and of the errors."""


async def run_line(
    command: str,
    seconds: float,
    *,
    given: bytes | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Run a command line for bash and return its exit code, its output and its errors.

    A command that writes more than `MOST_BYTES` is ended: its exit code is then -9.

    Args:
        seconds: longest time that it may take; it is then ended with what it started.
        given: its standard input; None for none.
        folder: its working directory; None for that of this program.
        environment: its environment; None for that of this program.

    Raises:
        TimeoutError: it took longer.
    """
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-c", command), stdin=DEVNULL if given is None else PIPE, stdout=PIPE,
        stderr=PIPE, cwd=folder, env=environment, process_group=0,
    )  # fmt: skip

    def end() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            out, errors = (group.create_task(_read(one, end)) for one in (process.stdout, process.stderr))
            await _write(process.stdin, given)
            await process.wait()
    finally:
        if process.returncode is None:
            end()
            await process.wait()
    return process.returncode or 0, out.result().decode("utf-8", "replace"), errors.result().decode("utf-8", "replace")


async def _read(stream: asyncio.StreamReader | None, end: Callable[[], None]) -> bytes:
    """Return the output to its end; end the command if it is too long."""
    assert stream is not None
    try:
        data = await stream.readexactly(MOST_BYTES)
    except asyncio.IncompleteReadError as error:
        return error.partial
    end()
    return data


async def _write(stream: asyncio.StreamWriter | None, given: bytes | None) -> None:
    """Write the input; a command may end without reading it."""
    if stream is not None and given is not None:
        with suppress(BrokenPipeError, ConnectionResetError):
            stream.write(given)
            await stream.drain()
        stream.close()
