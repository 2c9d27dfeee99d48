"""Runs a command line that only the user's own settings name, and returns what it prints."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path


async def run_line(
    command: str,
    seconds: float,
    *,
    given: bytes | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[int, str, str]:
    """Run a command line for bash and return its exit code, its output and its errors.

    Args:
        command: the command line.
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
    try:
        async with asyncio.timeout(seconds):
            out, errors = await process.communicate(given)
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return process.returncode or 0, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace")
