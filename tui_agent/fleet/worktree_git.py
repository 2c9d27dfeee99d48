"""Git for the worktrees of units: without hooks, prompts or background work, and ended if its caller is cancelled."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.git.git_program import writing_git
from tui_agent.git.repository import repository_roots
from tui_agent.git.repository_links import find_way_out
from tui_agent.protocol.background import first_error
from tui_agent.protocol.pipes import close_pipes
from tui_agent.protocol.visible_text import without_sequences

from .unit_failure import UnitFailureError
from .unit_process import dying_with_us

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "tui-agent fleet"), ("EMAIL", "fleet@localhost"))
}
LARGEST_OUTPUT = 256 * 1024 * 1024
"""Bytes of output above which git is ended."""
GRACE = 5.0
"""Seconds between TERM, after which git removes its locks, and KILL."""
_LONGEST_REASON = 500
_PIECE = 64 * 1024


async def git(
    *arguments: str, environment: Mapping[str, str] | None = None, cwd: Path | None = None, outlives: bool = False
) -> bytes:
    """Run git and return its output.

    Args:
        arguments: its command line.
        environment: variables in addition to those of this process, without its `GIT_` variables.
        cwd: its directory; None: `/`.
        outlives: True to let it finish if this process is killed; otherwise it is killed, too, and its locks stay.

    Raises:
        UnitFailureError: it failed; the text has its last message. Or its output is larger than `LARGEST_OUTPUT`.
    """
    argv, kept = await asyncio.to_thread(writing_git, arguments)
    try:
        process = await asyncio.create_subprocess_exec(
            *(() if outlives else dying_with_us()),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd or Path("/"),
            env=kept | _IDENTITY | dict(environment or {}),
            start_new_session=True,
        )
    except OSError as error:
        raise UnitFailureError(f"git cannot be started: {error.strerror or error}") from error
    try:
        async with asyncio.TaskGroup() as tasks:
            output = tasks.create_task(_read(process.stdout, arguments[0]))
            errors = tasks.create_task(_read(process.stderr, arguments[0]))
            await process.wait()
    except ExceptionGroup as group:
        raise first_error(group) from None
    finally:
        await _end(process)
    if process.returncode:
        raise UnitFailureError(_reason(errors.result()) or f"git {arguments[0]} ended with code {process.returncode}")
    return output.result()


async def refuse_way_out(repo: Path) -> None:
    """Refuse a directory's repository if git would read or change other files through its links and pointers.

    Raises:
        UnitFailureError: it has such a link.
    """
    directory = await asyncio.to_thread(os.path.realpath, repo)
    top = next(iter(await asyncio.to_thread(repository_roots, directory)), directory)
    if found := await asyncio.to_thread(find_way_out, top, lambda _: False, top):
        raise UnitFailureError(f"git was not started there, because its data leads out of it: {found}")


async def _read(stream: asyncio.StreamReader | None, command: str) -> bytes:
    output = bytearray()
    while stream is not None and (piece := await stream.read(_PIECE)):
        output += piece
        if len(output) > LARGEST_OUTPUT:
            raise UnitFailureError(f"git {command} wrote more than {LARGEST_OUTPUT // 1024 // 1024} MiB")
    return bytes(output)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End git with everything that it started, if it runs, and close its pipes."""
    try:
        if process.returncode is None:
            await _kill(process)
    finally:
        close_pipes(process)


async def _kill(process: asyncio.subprocess.Process) -> None:
    try:
        _signal(process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(GRACE):
                await process.wait()
    finally:
        _signal(process.pid, signal.SIGKILL)
        await process.wait()


def _signal(leader: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def _reason(errors: bytes) -> str:
    lines = without_sequences(errors.decode("utf-8", "replace")).split("\n")
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or [line for line in lines if line]
    return " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in telling[:2])[:_LONGEST_REASON]
