"""The worktree of one unit: a working directory of its own that shares the objects of a mirror.

A host has one bare mirror a repository. The unit's own repository links to the mirror's objects, and has references, an
index and settings of its own, so that nothing that a unit does with git reaches another one. A second, hidden
repository beside it records the state after each ended call; it leaves the unit's HEAD, index and branches alone.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tui_agent.protocol.fleet_records import UnitChanges

from .unit_process import UnitFailureError
from .worktree_git import fetch_over_network, git, is_local, source_places

REMOTE_HEAD = "refs/tui-agent/head"
"""Reference of a mirror: HEAD of the repository that it mirrors."""
UNIT_REF = "refs/tui-agent/fleet"
"""Directory of the references of units."""
_LOOK_AGAIN = 0.05
_LINK = "160000"
"""Mode of a link to a commit of another repository."""
_PATCH_FORM = (
    *("--stdout", "--binary", "--no-signature", "--src-prefix=a/", "--dst-prefix=b/", "--no-ext-diff", "--no-textconv"),
    *("--no-attach", "--no-base", "--no-cover-letter", "--no-signoff", "--no-thread", "--no-notes", "--no-color"),
)
"""Options of `git format-patch`, each against a setting of the user under which a patch has another form or none."""


class UnitWorktree:
    """The files of one unit, and their recorded states. Its methods raise `UnitFailureError` if git fails."""

    def __init__(self, home: Path, mirror: Path, unit_id: str, base: str) -> None:
        self._home, self._mirror = home, mirror
        self.path = home / "work"
        self.base = base
        self.last = base
        self._bundled = base
        self._ref = f"{UNIT_REF}/{unit_id}"
        self._hidden = {"GIT_DIR": str(home / "history.git"), "GIT_WORK_TREE": str(self.path)}
        self._lock = home / "history.git" / "index.lock"
        self._tree: str = ""
        self._links: tuple[str, ...] | None = None

    async def restore(self, bundles: Sequence[bytes], home: Path) -> None:
        """Bring the files to the state after the last of these bundles."""
        file = home / "resume.bundle"
        for bundle in bundles:
            await asyncio.to_thread(file.write_bytes, bundle)
            await self._git("fetch", "--quiet", "--no-tags", str(file), f"+{self._ref}:{self._ref}")
            self.last = (await self._git("rev-parse", self._ref)).decode().strip()
        if bundles:
            self._bundled = self.last
            await asyncio.to_thread(file.unlink)
            await self._git("read-tree", "-u", "--reset", self.last)

    async def record(self, message: str) -> None:
        """Record the files as they are. Ignored files are left out."""
        # Of a git that was ended: no other one works here.
        await asyncio.to_thread(self._lock.unlink, missing_ok=True)
        left_out = [f":(exclude,literal){path}" for path in (*await self._submodules(), *await self._open_nested())]
        await self._git("add", "--all", "--", ".", *left_out)
        await self._drop_links()
        tree = (await self._git("write-tree")).decode().strip()
        if not self._tree:
            self._tree = (await self._git("rev-parse", f"{self.last}^{{tree}}")).decode().strip()
        if tree == self._tree:
            return
        made = (await self._git("commit-tree", tree, "-p", self.last, "-m", message)).decode().strip()
        await self._git("update-ref", self._ref, made)
        self.last, self._tree = made, tree

    async def bundle(self) -> bytes:
        """Return a git bundle with everything recorded since the last one; empty if that is nothing."""
        if self.last == self._bundled:
            return b""
        bundle = await self._git("bundle", "create", "--quiet", "-", self._ref, f"^{self._bundled}")
        self._bundled = self.last
        return bundle

    async def patch(self, message: str) -> tuple[bytes, UnitChanges]:
        """Return everything that was recorded as one patch for `git am`, and its size; both empty without changes."""
        if self.last == self.base:
            return b"", UnitChanges()
        tree = (await self._git("rev-parse", f"{self.last}^{{tree}}")).decode().strip()
        whole = (await self._git("commit-tree", tree, "-p", self.base, "-m", message)).decode().strip()
        numbers = (await self._git("diff", "--numstat", "-z", "--no-renames", self.base, whole)).decode(
            "utf-8", "replace"
        )
        counts = [entry.split("\t", 2)[:2] for entry in numbers.split("\0") if entry.count("\t") >= 2]
        if not counts:
            return b"", UnitChanges()
        patch = await self._git("format-patch", *_PATCH_FORM, "-1", whole)
        added, removed = (sum(int(count[side]) for count in counts if count[side].isdigit()) for side in (0, 1))
        return patch, UnitChanges(files=len(counts), insertions=added, deletions=removed)

    # A repository inside the worktree has settings that the unit wrote. As soon as the index has a link to it,
    # `git add` runs `git status` in it, with the programs that these settings name, outside any sandbox.

    async def _submodules(self) -> tuple[str, ...]:
        """Return the paths of the links that the base has; they stay as they are."""
        if self._links is None:
            tree = _paths(await self._git("ls-tree", "-r", "-z", "--full-tree", self.base))
            self._links = tuple(line.split("\t", 1)[1] for line in tree if line.startswith(_LINK))
        return self._links

    async def _open_nested(self) -> list[str]:
        """Have the files of nested repositories recorded as those of any directory; return those without a file.

        Git looks into a directory of which the index has a file, whatever else it is.
        """
        tried: set[str] = set()
        while True:
            others = _paths(await self._git("ls-files", "-z", "--others", "--exclude-standard"))
            nested = {path for path in others if path.endswith("/")}
            if nested <= tried:
                return sorted(nested)
            for path in nested - tried:
                if file := await asyncio.to_thread(_file_in, self.path, path):
                    await self._git("update-index", "--add", "--remove", "--", file)
            tried |= nested

    async def _drop_links(self) -> None:
        """Remove links from the index that the base lacks: to repositories that were made in this moment."""
        changed = _paths(await self._git("diff-index", "--cached", "--raw", "-z", "--no-renames", self.base))
        for change, path in zip(changed[::2], changed[1::2], strict=False):
            if change.split(" ")[1] == _LINK and path not in await self._submodules():
                await self._git("update-index", "--force-remove", "--", path)

    async def _git(self, *arguments: str) -> bytes:
        return await git(
            *arguments,
            readable=(self._mirror,),
            writable=(self._home,),
            environment=self._hidden,
            cwd=self.path,
        )


def _paths(listing: bytes) -> list[str]:
    """Return the entries of a listing with `-z`."""
    return [os.fsdecode(entry) for entry in listing.split(b"\0") if entry]


def _file_in(root: Path, directory: str) -> str:
    """Return the path of a file below a directory, from the root; empty if there is none."""
    for found, directories, files in os.walk(root / directory):
        directories[:] = [name for name in directories if name != ".git"]
        for name in files:
            path = Path(found, name)
            if name != ".git" and (path.is_symlink() or path.is_file()):
                return str(path.relative_to(root))
    return ""


async def open_worktree(home: Path, mirror: Path, unit_id: str, repo: str, base: str) -> UnitWorktree:
    """Make the worktree of a unit in its directory, which is empty, with a repository as its `origin`.

    Raises:
        UnitFailureError: git failed.
    """
    made = UnitWorktree(home, mirror, unit_id, base)
    # Hard links: a repository that borrows objects from elsewhere would ask before each git command of the model. They
    # need both directories in one that is writable.
    are_near = mirror.parent.parent == home.parent.parent
    both = (home.parent.parent,) if are_near else (home,)
    await git(
        *("clone", "--quiet", "--no-checkout", "--", str(mirror), str(made.path)), readable=(mirror,), writable=both
    )
    await git("remote", "set-url", "origin", repo, writable=(home,), cwd=made.path)
    await git("checkout", "--quiet", "--detach", base, writable=(home,), cwd=made.path)
    history = home / "history.git"
    await git("init", "--quiet", "--bare", "--", str(history), writable=(home,))

    def borrow() -> None:
        (history / "objects" / "info").mkdir(exist_ok=True)
        (history / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n", "utf-8")
        # The same files with the same times: nothing has to be read again.
        shutil.copy2(made.path / ".git" / "index", history / "index")

    await asyncio.to_thread(borrow)
    return made


async def updated_mirror(mirrors: Path, repo: str, fresh: Path) -> Path:
    """Return the mirror of a repository on this host, fetched once for each fleet.

    A file in `fresh`, the directory of the fleet, says that it is up to date.

    Raises:
        UnitFailureError: git failed, such as for a repository that cannot be reached.
    """
    name = hashlib.sha256(repo.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    mirror, mark = mirrors / f"{name}.git", fresh / f"{name}.fetched"
    async with _locked(mirrors / f"{name}.lock"):
        if mark.exists() and mirror.exists():
            return mirror
        # A git that was killed may have left its locks, or half of the mirror; no other one works here.
        await asyncio.to_thread(_remove_locks, mirror)
        await asyncio.to_thread(partial(mirror.mkdir, 0o700, exist_ok=True))
        await git("init", "--quiet", "--bare", "--", str(mirror), writable=(mirror,))
        # Without `--prune`: worktrees of other fleets borrow these objects.
        fetch = (
            *("--git-dir", str(mirror), "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--", repo),
            *(f"+HEAD:{REMOTE_HEAD}", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
        )
        if await asyncio.to_thread(is_local, repo):
            await git(*fetch, readable=await source_places(repo), writable=(mirror,))
        else:
            await fetch_over_network(*fetch)
        await asyncio.to_thread(partial(mark.touch, 0o600))
    return mirror


def _remove_locks(mirror: Path) -> None:
    for lock in mirror.rglob("*.lock"):
        lock.unlink(missing_ok=True)


async def resolve_ref(mirror: Path, ref: str) -> str:
    """Return the commit of a branch, tag or hash.

    Raises:
        UnitFailureError: there is none.
    """
    names = (REMOTE_HEAD,) if ref == "HEAD" else (f"refs/heads/{ref}", f"refs/tags/{ref}", ref)
    for name in names:
        try:
            found = await git(
                *("--git-dir", str(mirror), "rev-parse", "--verify", "--quiet", "--end-of-options"),
                f"{name}^{{commit}}",
                readable=(mirror,),
            )
        except UnitFailureError:
            continue
        return found.decode().strip()
    raise UnitFailureError(f"the repository has no branch, tag or commit {ref!r}")


@asynccontextmanager
async def _locked(path: Path) -> AsyncGenerator[None]:
    """Hold the lock of a mirror, against other processes, too."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOOK_AGAIN)
        yield
    finally:
        os.close(descriptor)
