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
        if not Path(os.path.realpath(program)).is_relative_to(workspace) and not program.is_relative_to(workspace):
            return program
    return None
