"""A git that reads a repository for tui-agent itself, without starting a program of the repository.

It does not run at all where a setting of the repository names a program that cannot be turned off, or a link or pointer
leads out of it. Everywhere else it runs behind walls; without them, only in a folder that the user trusts.
"""

import os
import re
from pathlib import Path

from tui_agent.protocol.regular_file import read_regular_file

from .git_program import bare_environment, find_git, start_git, users_config_dir, users_settings
from .git_walls import walls_around
from .repository import data_directories, is_within, repository_roots
from .repository_safety import find_program_setting

_BRANCH = re.compile(r"ref: refs/heads/([^\s\x00-\x1f]+)\s*\Z")
_USERS_FILES = ("core.excludesfile", "core.attributesfile")
_POINTER_BYTES = 4_096


def read_git(
    root: Path, arguments: tuple[str, ...], *, seconds: float, stdin: bytes = b"", is_trusted: bool
) -> bytes | None:
    """Return the output of a git command that only reads; None if it may not run, fails, or takes too long. Blocks.

    Args:
        root: its working directory.
        arguments: its command line.
        seconds: its time limit.
        stdin: its input.
        is_trusted: True if git may run here without walls.
    """
    root = Path(os.path.realpath(root))
    git, directory = find_git(root), str(root)
    tops = repository_roots(directory)
    if git is None or not tops or find_program_setting(directory, is_open=lambda path: is_within(path, directory)):
        return None
    places = [directory, tops[0], *data_directories(tops[0])]
    walls = walls_around(git, root, places, _users_files())
    if walls is None and not is_trusted:
        return None
    environment = bare_environment(root)
    return start_git(
        git, arguments, environment=environment, seconds=seconds, stdin=stdin, directory=directory, walls=walls or ()
    )


def branch_in_file(root: Path) -> str:
    """Return the branch that a repository's `HEAD` names, without git; empty if it is not a plain file with one."""
    for top in repository_roots(os.path.realpath(root))[:1]:
        head = f"{next(iter(data_directories(top)), top)}/HEAD"
        try:
            found = _BRANCH.match(os.fsdecode(read_regular_file(head, _POINTER_BYTES)))
        except OSError:
            return ""
        return found[1] if found and not os.path.islink(head) else ""
    return ""


def _users_files() -> list[str]:
    """Return the files of the user that git reads for a status."""
    settings, files = users_settings()
    named = [os.path.expanduser(settings[name]) for name in _USERS_FILES if settings.get(name)]
    usual = [f"{users_config_dir()}/{name}" for name in ("ignore", "attributes", "config")]
    return [path for path in (*files, *named, *usual) if os.path.isabs(path)]
