"""Whether a command's name means a program that the workspace itself brings: whoever writes there decides what runs."""

import os
from functools import lru_cache

from .path_resolution import is_within
from .shell_syntax import names

_BUILT_IN = names(
    ": [ [[ alias bg bind break builtin caller cd command compgen complete continue declare dirs disown echo enable "
    "eval exec exit export false fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd "
    "read readarray readonly return set shift shopt source test time times trap true type typeset ulimit umask unalias "
    "unset wait"
)
"""Commands of the shell itself, for which nothing is looked up."""


def workspace_program(name: str, workspace: str, directory: str | None) -> str | None:
    """The program in the workspace that would run under a command's name; None if that is the system's, or there is
    none.

    Args:
        name: the first word of a command.
        workspace: absolute, links followed.
        directory: where the command runs, for relative entries of PATH; None: not known, so that these may hold it.
    """
    if "/" in name or name in _BUILT_IN:
        return None
    for entry, is_workspace_program in _entries(os.environ.get("PATH", os.defpath), workspace):
        if not entry.startswith("/") and directory is None:
            return f"{entry or '.'}/{name}"
        program = os.path.join(directory or "/", entry, name)
        if not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        leads_in = os.path.islink(program) and _is_in(os.path.realpath(program), workspace)
        return program if is_workspace_program or leads_in else None
    return None


@lru_cache(maxsize=64)
def _entries(path: str, workspace: str) -> tuple[tuple[str, bool], ...]:
    """The entries of PATH, and of each whether it is relative or in the workspace. Kept, because what it says is looked
    up anew before a command runs that nobody was asked about."""
    return tuple(
        (entry, not entry.startswith("/") or _is_in(entry, workspace) or _is_in(os.path.realpath(entry), workspace))
        for entry in path.split(os.pathsep)
    )


def _is_in(path: str, workspace: str) -> bool:
    """Whether a path is in the workspace; where that is the whole system, nothing is brought by it."""
    return workspace != "/" and is_within(os.path.normpath(path), workspace)
