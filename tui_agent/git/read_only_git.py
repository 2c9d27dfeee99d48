"""A git that reads a repository for tui-agent itself: behind walls.

Where none work, it runs only in a folder that you trust, and only if no setting or link of the repository starts a
program or leads out of it. The walls show it the repository alone. Data elsewhere is a part of it only if it points
back to the work tree, as that of a linked work tree and of a submodule does: another repository cannot write that into
yours.
"""

import os
import re
from functools import lru_cache
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file

from .git_program import bare_environment, find_bubblewrap, find_git, identity_of, start_git, users_files
from .repository_layout import OWN_DIRECTORY, data_directories, is_within, pointer, repository_roots
from .repository_safety import find_program_setting

_BRANCH = re.compile(r"ref: refs/heads/([^\s\x00-\x1f]+)\s*\Z")
_POINTER_BYTES = 4_096
_SECONDS = 1.0


def read_git(
    root: Path, arguments: tuple[str, ...], *, seconds: float, stdin: bytes = b"", is_trusted: bool
) -> bytes | None:
    """Return the output of a git command that only reads. Blocks.

    None if it may not run, fails, takes too long, or there is no repository.

    Args:
        is_trusted: True if git may run here without walls.
    """
    root = Path(os.path.realpath(root))
    git, directory = find_git(root), str(root)
    tops = repository_roots(directory)
    if git is None or not tops:
        return None
    has_walls = find_bubblewrap(directory) is not None
    return start_git(
        git,
        arguments,
        environment=bare_environment(root),
        seconds=seconds,
        readable=(*repository_places(tops[0]), *users_files()),
        stdin=stdin,
        directory=directory,
        without_walls=not has_walls and is_trusted and _is_harmless(directory),
    )


def _is_harmless(directory: str) -> bool:
    """True if git starts no program of the repository and reads nothing outside of a directory."""
    return find_program_setting(directory, lambda path: is_within(path, directory)) is None


def repository_places(top: str) -> list[str]:
    """Return the directory of a repository, and those with its data that are elsewhere. Blocks."""
    return [top, *(place for place in repository_data(top) if not is_within(place, top))]


def repository_data(top: str) -> list[str]:
    """Return the directories with a repository's data; none if they are elsewhere and do not point back. Blocks."""
    own, *shared = map(os.path.realpath, data_directories(top) or [top])
    if all(is_within(place, top) for place in (own, *shared)):
        return [own, *shared]
    if shared and os.path.dirname(os.path.dirname(own)) == shared[0]:
        points_back = os.path.realpath(os.path.join(own, pointer(f"{own}/gitdir"))) == f"{top}/{OWN_DIRECTORY}"
    else:
        tree = _named_work_tree(own, identity_of(f"{own}/config"), os.environ.get("PATH", ""))
        points_back = not shared and bool(tree) and os.path.realpath(os.path.join(own, tree)) == top
    return [own, *shared] if points_back else []


@lru_cache(maxsize=64)
def _named_work_tree(own: str, _: tuple[int, int, int], __: str) -> str:
    """Return the work tree that the settings of a data directory name, as git reads them; empty if they name none."""
    git = find_git(Path(own))
    arguments = ("config", "--file", f"{own}/config", "--no-includes", "--get", "core.worktree")
    found = git and start_git(git, arguments, environment={}, seconds=_SECONDS, readable=(own,))
    return os.fsdecode(found or b"").removesuffix("\n")


def branch_in_file(root: Path) -> str:
    """Return the branch that a repository's `HEAD` names, without git; empty if no plain file has one. Blocks."""
    for top in repository_roots(os.path.realpath(root))[:1]:
        head = f"{next(iter(data_directories(top)), top)}/HEAD"
        try:
            found = _BRANCH.match(os.fsdecode(read_regular_file(head, _POINTER_BYTES)))
        except OSError:
            return ""
        return found[1] if found and not os.path.islink(head) else ""
    return ""
