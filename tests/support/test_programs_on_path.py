"""Adding and hiding programs for a test."""

import os
import shutil
from pathlib import Path

import pytest

from .programs import development_program, path_with, path_without


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


def test_a_missing_program_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(LookupError, match=r"no-such-program is not installed: pip install -e '\.\[dev\]' brings it"):
        development_program("no-such-program")


def test_only_the_program_is_added_to_the_path(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place(tmp_path / "there", "a")))

    path = path_with(place(tmp_path / "away", "b", "c") / "b", directory)

    assert [shutil.which(name, path=path) is not None for name in "abc"] == [True, True, False]


def test_a_hidden_program_is_nowhere_on_the_path_and_its_neighbours_are(
    tmp_path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = place(tmp_path / "one", "a", "b"), place(tmp_path / "two", "a", "c")
    monkeypatch.setenv("PATH", os.pathsep.join((str(one), "/nowhere", str(two))))

    path = path_without("a", directory)

    assert [shutil.which(name, path=path) is not None for name in "abc"] == [False, True, True]
