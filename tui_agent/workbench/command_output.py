"""Output of a command line that only the user's own settings name."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path


async def first_line_of(command: str, given: bytes, folder: Path, environment: dict[str, str], seconds: float) -> str:
    """Run a command line for bash in a folder and return the first line of its output; empty if it fails or is late.

    Args:
        command: the command line.
        given: its standard input.
        folder: its working directory.
        environment: its environment.
        seconds: longest time that it may take; it is then ended with what it started.
    """
    process = await asyncio.create_subprocess_exec(
        *("bash", "--noprofile", "--norc", "-c", command),
        stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=folder, env=environment, process_group=0,
    )  # fmt: skip
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate(given)
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    lines = out.decode("utf-8", "replace").split("\n", 1)
    return "" if process.returncode else lines[0].strip()
