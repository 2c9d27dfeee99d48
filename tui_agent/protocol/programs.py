"""Lookup of the programs that tools start; a program inside the workspace never passes for one of the system."""

import os
from pathlib import Path


def find_program(name: str, workspace: Path) -> Path | None:
    """Return the first executable `name` on PATH that is, with links followed, outside `workspace`; None if none is.

    Relative entries of PATH are skipped, because they depend on the current directory.
    """
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(directory, name)
        if not os.path.isabs(program) or not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        if not _is_in(Path(program), workspace):
            return Path(program)
    return None


def outside_search_path(path: str, workspace: Path) -> str:
    """Return a search path such as PATH without entries that are relative or lead into `workspace`."""
    entries = (Path(entry) for entry in path.split(os.pathsep))
    return os.pathsep.join(str(entry) for entry in entries if entry.is_absolute() and not _is_in(entry, workspace))


def _is_in(path: Path, workspace: Path) -> bool:
    """Return True if a path is in the workspace."""
    if workspace == Path("/"):  # Every program is below it, so the check would leave none.
        return False
    return path.is_relative_to(workspace) or Path(os.path.realpath(path)).is_relative_to(workspace)
