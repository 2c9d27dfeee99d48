"""Adding and hiding programs for a test."""

import os
import shutil
from pathlib import Path

import pytest

from .programs import path_without


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return an empty directory."""
    (tmp_path / "links").mkdir()
    return tmp_path / "links"


def place(directory: Path, *names: str) -> Path:
    directory.mkdir()
    for name in names:
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    return directory


def test_a_hidden_program_is_nowhere_on_the_path_and_its_neighbours_are(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = place(tmp_path / "one", "a", "b"), place(tmp_path / "two", "a", "c")
    monkeypatch.setenv("PATH", os.pathsep.join((str(one), "/nowhere", str(two))))

    path = path_without("a", directory)

    assert [shutil.which(name, path=path) is not None for name in "abc"] == [False, True, True]
