"""Git for the worktrees of units: behind walls, without hooks, prompts or background work.

It is ended if its caller is cancelled. Only a fetch from the network runs without walls.
"""

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from tui_agent.git.git_program import fetching_git, writing_git
from tui_agent.git.git_walls import find_bubblewrap
from tui_agent.git.read_only_git import repository_places
from tui_agent.git.repository import repository_roots
from tui_agent.git.repository_links import find_way_out
from tui_agent.protocol.background import first_error
from tui_agent.protocol.pipes import close_pipes
from tui_agent.protocol.visible_text import without_sequences

from .unit_process import UnitFailureError, dying_with_us

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
    *arguments: str,
    readable: Iterable[str | Path] = (),
    writable: Iterable[str | Path] = (),
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    outlives: bool = False,
) -> bytes:
    """Run git behind walls, where they work, and return its output.

    Args:
        arguments: its command line.
        readable: files and directories that it may read.
        writable: directories that it may change.
        environment: variables in addition to the user's settings.
        cwd: its directory, one of these; None: `/`.
        outlives: True to let it finish if this process is killed; otherwise it is killed, too, and its locks stay.

    Raises:
        UnitFailureError: it failed; the text has its last message. Or its output is larger than `LARGEST_OUTPUT`.
    """

    def prepared() -> tuple[tuple[str, ...], dict[str, str]]:
        seen, changed = ([os.path.abspath(path) for path in paths] for paths in (readable, writable))
        return writing_git(arguments, seen, changed, os.path.abspath(cwd or "/"), outlives=outlives)

    argv, kept = await asyncio.to_thread(prepared)
    return await _run(arguments, argv, kept | dict(environment or {}), cwd, outlives=outlives)


async def fetch_over_network(*arguments: str) -> bytes:
    """Run git with the user's variables and without walls: it needs the network and may need credentials.

    Raises:
        UnitFailureError: as for `git`.
    """
    argv, kept = await asyncio.to_thread(fetching_git, arguments)
    return await _run(arguments, argv, kept, None, outlives=False)


async def _run(
    arguments: Sequence[str],
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    *,
    outlives: bool,
) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            *(() if outlives else dying_with_us()),
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd or Path("/"),
            env=_IDENTITY | dict(environment),
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


def is_local(repo: str) -> bool:
    """True if git takes an address for a path, or it is a URL of one. Blocks."""
    is_address = "://" in repo or ":" in repo.partition("/")[0]
    return repo.startswith("file://") or not is_address or os.path.exists(repo)


async def source_places(repo: str) -> list[str]:
    """Return the directories of a local repository that git may read.

    Raises:
        UnitFailureError: no walls work here, and git would read other files through its links and pointers.
    """

    def found() -> tuple[list[str], str | None]:
        given = unquote(repo.removeprefix("file://")) if repo.startswith("file://") else repo
        directory = os.path.realpath(given)
        top = next(iter(repository_roots(directory)), directory)
        has_walls = find_bubblewrap(directory) is not None
        return [given, *repository_places(top)], None if has_walls else find_way_out(top, lambda _: False, top)

    places, way_out = await asyncio.to_thread(found)
    if way_out:
        raise UnitFailureError(f"git was not started there, because its data leads out of it: {way_out}")
    return places


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
