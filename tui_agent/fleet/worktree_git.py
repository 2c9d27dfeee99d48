"""Git for the worktrees of units: behind walls, without hooks, prompts or background work.

It is ended if its caller is cancelled. Only a fetch from the network runs without walls. The patch of a unit becomes a
branch of a local repository, whose files, index and HEAD stay as they are.

What fails, or would lead git out of a repository without walls, is a `UnitFailureError`.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from tui_agent.git.git_program import fetching_git, find_bubblewrap, writing_git
from tui_agent.git.read_only_git import repository_data, repository_places
from tui_agent.git.repository_layout import repository_roots
from tui_agent.git.repository_safety import find_way_out
from tui_agent.protocol.background import first_error
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.pipes import close_pipes
from tui_agent.protocol.visible_text import without_sequences

from .unit_process import UnitFailureError, dying_with_us, end_group

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

    The environment is added to the user's settings. `outlives` lets git finish if this process is killed; otherwise it
    is killed, too, and its locks stay.

    Raises:
        UnitFailureError: it failed; the text has its last message. Or its output is larger than `LARGEST_OUTPUT`.
    """

    def prepared() -> tuple[tuple[str, ...], dict[str, str]]:
        seen, changed = ([os.path.abspath(path) for path in paths] for paths in (readable, writable))
        return writing_git(arguments, seen, changed, os.path.abspath(cwd or "/"), outlives=outlives)

    argv, kept = await asyncio.to_thread(prepared)
    return await _run(arguments, argv, kept | dict(environment or {}), cwd, outlives=outlives)


async def fetch_over_network(*arguments: str) -> bytes:
    """Run git with the user's variables and without walls, for the network and credentials; return its output."""
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
    """Return True if git takes an address for a path, or it is a URL of one. Blocks."""
    is_address = "://" in repo or ":" in repo.partition("/")[0]
    return repo.startswith("file://") or not is_address or os.path.exists(repo)


async def source_places(repo: str) -> list[str]:
    """Return the directories of a local repository that git may read.

    Raises:
        UnitFailureError: there are no walls, and the repository would lead git out of it.
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
            await end_group(process, GRACE)
    finally:
        close_pipes(process)


def _reason(errors: bytes) -> str:
    lines = without_sequences(errors.decode("utf-8", "replace")).split("\n")
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))] or [line for line in lines if line]
    return " ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in telling[:2])[:_LONGEST_REASON]


async def apply_as_branch(repo: Path, base: str, patch: bytes, branch: str, message: str) -> str:
    """Make a branch with one commit, the patch on top of the unit's base, and return the commit's hash.

    Raises:
        ConfigurationError: the repository lacks the base, has the branch, or does not take the patch; nothing changed.
    """
    scratch = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="tui-agent-apply-"))
    try:
        file = scratch / "unit.patch"
        await asyncio.to_thread(file.write_bytes, patch)
        return await _commit(repo, base, file, branch, message)
    except UnitFailureError as error:
        raise ConfigurationError(f"{repo}: {error}. No branch was made.") from error
    finally:
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)


async def _commit(repo: Path, base: str, patch: Path, branch: str, message: str) -> str:
    source = await source_places(str(repo))
    places, data = (*source, patch.parent), await asyncio.to_thread(repository_data, source[1])

    async def read(*arguments: str) -> bytes:
        return await git(*arguments, readable=places, cwd=repo)

    async def write(*arguments: str, environment: Mapping[str, str] | None = None, outlives: bool = False) -> bytes:
        writable = (*data, patch.parent)
        return await git(
            *arguments, readable=places, writable=writable, environment=environment, cwd=repo, outlives=outlives
        )

    index = {"GIT_INDEX_FILE": str(patch.with_name("index"))}
    await read("check-ref-format", "--branch", branch)
    if await read("for-each-ref", f"refs/heads/{branch}"):
        raise UnitFailureError(f"the branch {branch} exists already")
    try:
        await read("cat-file", "-e", f"{base}^{{commit}}")
    except UnitFailureError as error:
        raise UnitFailureError(f"it lacks the commit {base[:12]} that the unit began with; fetch it first") from error
    await write("read-tree", base, environment=index)
    await write("apply", "--cached", "--whitespace=nowarn", "--", str(patch), environment=index)
    tree = (await write("write-tree", environment=index)).decode().strip()
    author = await users_identity(read)
    made = (await write("commit-tree", tree, "-p", base, "-m", message, environment=author)).decode().strip()
    await write("branch", "--no-track", branch, made, outlives=True)
    return made


async def users_identity(read: Callable[..., Awaitable[bytes]]) -> dict[str, str]:
    """Return the variables of the user's name and address; without those that git does not know."""
    variables: dict[str, str] = {}
    for setting, variable in (("user.name", "NAME"), ("user.email", "EMAIL")):
        with suppress(UnitFailureError):
            value = (await read("config", setting)).decode("utf-8", "surrogateescape").strip()
            variables |= {f"GIT_{who}_{variable}": value for who in ("AUTHOR", "COMMITTER")}
    return variables
