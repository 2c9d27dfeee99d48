"""`--worktree`: a session in a git worktree of its own, beside the repository, and what becomes of it at the end."""

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from tui_agent.fleet.unit_process import UnitFailureError
from tui_agent.fleet.worktree_git import git, source_places, users_identity
from tui_agent.git.read_only_git import repository_data
from tui_agent.git.repository_layout import repository_roots
from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.errors import ConfigurationError, SessionError
from tui_agent.trial.sorting import CACHES
from tui_agent.workbench.configuration.launch_options import LaunchOptions

from .print_mode import has_terminal, read_line
from .process.controlling_terminal import say_error

PREFIX = "tui-agent/"
"""Begin of the names of branches."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}\Z")
_MESSAGE = "Changes of a tui-agent session"


@dataclass(frozen=True, slots=True)
class SessionWorktree:
    """The worktree of one session."""

    repository: Path
    """Root of the repository that the session began in."""
    folder: Path
    """Root of the worktree."""
    name: str
    base: str
    """Commit that the branch began with, or that it has been merged with last."""
    target: str
    """Branch that the repository had then; empty if it had none."""

    @property
    def branch(self) -> str:
        """The branch of the worktree."""
        return f"{PREFIX}{self.name}"

    async def git(self, *arguments: str, at: Path | None = None, author: dict[str, str] | None = None) -> str:
        """Run git in the worktree, or at another place, and return its output.

        Raises:
            UnitFailureError: it failed.
        """
        data = await asyncio.to_thread(repository_data, str(self.repository))
        places = (*await source_places(str(self.repository)), self.folder.parent)
        writable = (*data, self.repository, self.folder.parent)
        output = await git(
            *arguments, readable=places, writable=writable, cwd=at or self.folder, environment=author, outlives=True
        )
        return output.decode("utf-8", "surrogateescape").strip()

    async def changed(self) -> tuple[int, int, int]:
        """Return the number of files with changes that are in no commit, of commits since the base, and of files that
        git ignores, without known caches."""
        states = (await self.git("status", "--porcelain=v1", "--untracked-files=all", "--ignored")).splitlines()
        ignored = [PurePath(state[3:].strip('"')).parts for state in states if state.startswith("!! ")]
        # The session may have left the branch behind, with its commits.
        commits = await self.git("rev-list", "--count", f"^{self.base}", "HEAD", f"refs/heads/{self.branch}")
        return len(states) - len(ignored), int(commits), sum(CACHES.isdisjoint(parts) for parts in ignored)

    async def remove(self, *, branch: bool) -> None:
        """Remove the worktree with all that is not committed, and its branch if wanted.

        Raises:
            UnitFailureError: git fails.
        """
        await self.git("worktree", "remove", "--force", str(self.folder), at=self.repository)
        if branch:
            await self.git("branch", "-D", self.branch, at=self.repository)
        with suppress(OSError):  # Others are in it.
            await asyncio.to_thread(self.folder.parent.rmdir)

    async def commit(self) -> None:
        """Commit what is in no commit yet, as the user, to the branch.

        Raises:
            UnitFailureError: the session has left the branch, so it does not have everything; or git fails.
        """
        if await self.git("rev-parse", "--symbolic-full-name", "HEAD") != f"refs/heads/{self.branch}":
            raise UnitFailureError(f"the worktree is not on its branch {self.branch} any more")
        if (await self.changed())[0]:
            author = await users_identity(self._read)
            await self.git("add", "--all")
            await self.git("commit", "--quiet", "-m", _MESSAGE, author=author)

    async def merge(self) -> None:
        """Merge the branch into the one that the repository had.

        Raises:
            UnitFailureError: it cannot be merged; the repository is as before.
        """
        author = await users_identity(self._read)
        if await self.git("symbolic-ref", "--short", "-q", "HEAD", at=self.repository) != self.target:
            raise UnitFailureError(f"the repository is not on the branch {self.target} any more")
        try:
            message = f"Merge {self.branch}"
            await self.git("merge", "--no-edit", "-m", message, self.branch, at=self.repository, author=author)
        except UnitFailureError:
            if await self.git("ls-files", "--unmerged", at=self.repository):
                await self.git("merge", "--abort", at=self.repository)
            raise

    async def _read(self, *arguments: str) -> bytes:
        return (await self.git(*arguments, at=self.repository)).encode("utf-8", "surrogateescape")


def run_in_worktree(options: LaunchOptions, name: str, run: Callable[[LaunchOptions], int]) -> int:
    """Run in a worktree and return the exit code; if nothing could start, only what has changes stays of it.

    Raises:
        ConfigurationError: the worktree cannot be made, or the configuration is wrong.
        SessionError: the session cannot be opened.
    """
    tree = _tree_for(options, name)
    try:
        return run(_options_in(tree, options))
    except (ConfigurationError, SessionError):
        asyncio.run(finish(tree, None))
        raise


def _tree_for(options: LaunchOptions, name: str) -> SessionWorktree:
    roots = repository_roots(str(options.cwd))
    if not roots:
        raise ConfigurationError(f"--worktree: {options.cwd} is in no git repository; nothing was started")
    name = name or time.strftime("%m%d-%H%M%S")
    if _NAME.match(name) is None:
        raise ConfigurationError(f"--worktree: a branch cannot be named {name!r}; use letters, digits, ., - and _")
    try:
        return asyncio.run(_made(Path(roots[0]), name))
    except (UnitFailureError, OSError, ValueError) as error:
        raise ConfigurationError(f"--worktree: no worktree was made: {error}") from error


def _options_in(tree: SessionWorktree, options: LaunchOptions) -> LaunchOptions:
    inner = tree.folder / options.cwd.relative_to(tree.repository)
    cwd = inner if inner.is_dir() else tree.folder
    watched = not options.print_mode

    async def at_end() -> None:
        await finish(tree, read_line if watched and has_terminal() else None)

    return replace(options, cwd=cwd, extras=replace(options.extras, at_end=at_end))


async def _made(repository: Path, name: str) -> SessionWorktree:
    folder = repository.with_name(f"{repository.name}.worktrees") / name
    await asyncio.to_thread(folder.parent.mkdir, exist_ok=True)  # Walls show only places that exist.
    try:
        return await _made_in(folder, repository, name)
    finally:
        with suppress(OSError):  # It has a worktree.
            await asyncio.to_thread(folder.parent.rmdir)


async def _made_in(folder: Path, repository: Path, name: str) -> SessionWorktree:
    tree, target = SessionWorktree(repository, folder, name, "", ""), ""
    with suppress(UnitFailureError):  # No branch, such as during a bisection.
        target = await tree.git("symbolic-ref", "--short", "-q", "HEAD", at=repository)
    if target and not await tree.git("for-each-ref", f"refs/heads/{target}", at=repository):
        raise UnitFailureError("the repository has no commit yet, and a worktree begins with one")
    base = await tree.git("rev-parse", "HEAD", at=repository)
    if await asyncio.to_thread((folder / ".git").exists):
        base = await tree.git("merge-base", base, tree.branch, at=repository)
    else:
        known = await tree.git("for-each-ref", f"refs/heads/{tree.branch}", at=repository)
        new = () if known else ("-b", tree.branch)
        old = (tree.branch,) if known else ()
        await tree.git("worktree", "add", "--quiet", *new, str(folder), *old, at=repository)
        if left := len((await tree.git("status", "--porcelain=v1", at=repository)).splitlines()):
            say_error(f"tui-agent: the worktree has the last commit, without {count_text(left, 'changed file')}")
    return replace(tree, base=base, target=target)


async def finish(tree: SessionWorktree, read: Callable[[], str | None] | None) -> None:
    """Keep, merge or remove a worktree as the user says; one without changes is removed. A failure is only shown.

    Args:
        read: returns a line of the user; None if no one can answer, and it is kept.
    """
    try:
        files, commits, ignored = await tree.changed()
        if not (files or commits or ignored):
            await tree.remove(branch=True)
            say_error("The worktree had no changes and was removed.")
            return
        counts = ((files, "changed file"), (commits, "commit"), (ignored, "ignored file"))
        what = " and ".join(count_text(number, name) for number, name in counts if number)
        lost = " Only k keeps what git ignores." if ignored else ""
        say_error(f"The worktree {tree.folder} has {what}.{lost}")
        await _settle(tree, read)
    except UnitFailureError as error:
        say_error(f"tui-agent: {error}. {_kept(tree)}")


async def _settle(tree: SessionWorktree, read: Callable[[], str | None] | None) -> None:
    merging = (f"m merge it into {tree.target}",) if tree.target else ()
    while read is not None:
        say_error(" · ".join(("k keep it", *merging, "b keep only the branch", "r remove it")))
        answer = await asyncio.to_thread(read)
        match (answer or "k").strip().lower()[:1]:
            case "k" | "":
                break
            case "m" if tree.target:
                await tree.commit()
                await tree.merge()
                await tree.remove(branch=True)
                say_error(f"Merged into {tree.target}; the worktree was removed.")
                return
            case "b":
                await tree.commit()
                await tree.remove(branch=False)
                say_error(f"The branch {tree.branch} has everything; the worktree was removed.")
                return
            case "r":
                say_error("Its changes and commits are lost. Type yes to remove it:")
                if (await asyncio.to_thread(read) or "").strip().lower() == "yes":
                    await tree.remove(branch=True)
                    say_error("Removed.")
                    return
            case _:
                pass
    say_error(_kept(tree))


def _kept(tree: SessionWorktree) -> str:
    return f"It is kept: `tui-agent --worktree {tree.name} --continue` in {tree.repository} continues there."
