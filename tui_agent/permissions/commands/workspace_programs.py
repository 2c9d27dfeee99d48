"""Lookup of command names that run a program from the workspace, where anyone who can write there decides what runs."""

import os
from functools import lru_cache

from tui_agent.permissions.paths.path_resolution import is_within

from .catalogue import group


def workspace_program(name: str, workspace: str, directory: str | None) -> str | None:
    """Return the program in the workspace that a command's name would run, or None.

    Args:
        name: the first word of a command.
        workspace: absolute, links followed.
        directory: the command's working directory, for relative entries of PATH; None if unknown, and then a relative
            entry counts as a hit.
    """
    if "/" in name or name in group("built_in"):
        return None
    for entry, is_workspace_program in _entries(os.environ.get("PATH", os.defpath), workspace):
        if not entry.startswith("/") and directory is None:
            return f"{entry or '.'}/{name}"
        program = os.path.join(directory or "/", entry, name)
        if not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        # A link in a system directory may lead to a program of the workspace.
        leads_in = os.path.islink(program) and _is_in(os.path.realpath(program), workspace)
        return program if is_workspace_program or leads_in else None
    return None


@lru_cache(maxsize=64)
def _entries(path: str, workspace: str) -> tuple[tuple[str, bool], ...]:
    """Return the entries of PATH, each with True if it is relative or in the workspace.

    Cached, because every command that runs without a question is looked up again just before it runs.
    """
    return tuple(
        (entry, not entry.startswith("/") or _is_in(entry, workspace) or _is_in(os.path.realpath(entry), workspace))
        for entry in path.split(os.pathsep)
    )


def _is_in(path: str, workspace: str) -> bool:
    """True if a path is in the workspace. Always false for the workspace `/`, which holds every program."""
    return workspace != "/" and is_within(os.path.normpath(path), workspace)
