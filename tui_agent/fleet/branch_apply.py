"""The patch of a unit as a branch of a local repository, whose files, index and HEAD stay as they are."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

from tui_agent.git.read_only_git import repository_data
from tui_agent.protocol.errors import ConfigurationError

from .unit_process import UnitFailureError
from .worktree_git import git, source_places


async def apply_as_branch(repo: Path, base: str, patch: bytes, branch: str, message: str) -> str:
    """Make a branch with one commit, the patch on top of its base, and return the commit's hash.

    Args:
        repo: a directory of the repository.
        base: commit that the unit began with.
        patch: the unit's patch.
        branch: name of the new branch.
        message: message of the commit.

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
    author = await _identity(read)
    made = (await write("commit-tree", tree, "-p", base, "-m", message, environment=author)).decode().strip()
    await write("branch", "--no-track", branch, made, outlives=True)
    return made


async def _identity(read: Callable[..., Awaitable[bytes]]) -> dict[str, str]:
    """Return the variables of the user's name and address; without those that git does not know."""
    variables: dict[str, str] = {}
    for setting, variable in (("user.name", "NAME"), ("user.email", "EMAIL")):
        with suppress(UnitFailureError):
            value = (await read("config", setting)).decode("utf-8", "surrogateescape").strip()
            variables |= {f"GIT_{who}_{variable}": value for who in ("AUTHOR", "COMMITTER")}
    return variables
