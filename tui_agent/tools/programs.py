"""Finds the programs the tools start; one that the workspace itself brings is never taken for the system's."""

import os
from pathlib import Path


def find_program(name: str, workspace: Path) -> Path | None:
    """The first `name` on PATH that is executable and, every link followed, not inside `workspace`; None: there is
    none. Relative entries of PATH are passed over, as they depend on where one stands.
    """
    for directory in os.environ.get("PATH", os.defpath).split(os.pathsep):
        program = Path(directory, name)
        if not program.is_absolute() or not os.path.isfile(program) or not os.access(program, os.X_OK):
            continue
        if not _is_in(program, workspace):
            return program
    return None


def outside_search_path(path: str, workspace: Path) -> str:
    """A search path such as PATH without the entries that are relative or lead into `workspace`, which is absolute and
    without links."""
    entries = (Path(entry) for entry in path.split(os.pathsep))
    return os.pathsep.join(str(entry) for entry in entries if entry.is_absolute() and not _is_in(entry, workspace))


def _is_in(path: Path, workspace: Path) -> bool:
    """Whether a path is in the workspace; where that is the whole system, nothing is brought by it."""
    if workspace == Path("/"):
        return False
    return path.is_relative_to(workspace) or Path(os.path.realpath(path)).is_relative_to(workspace)
