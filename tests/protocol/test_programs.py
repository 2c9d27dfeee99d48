"""Programs come from the system, never from the workspace."""

from pathlib import Path

import pytest

from tui_agent.protocol.programs import find_program


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def program(directory: Path, name: str = "rg") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_first_program_on_path_is_found(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = program(tmp_path / "one"), program(tmp_path / "two")
    monkeypatch.setenv("PATH", f"{second.parent}:{first.parent}")

    assert find_program("rg", root) == second
    assert find_program("nothing", root) is None


def test_programs_in_the_workspace_are_skipped(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = program(root / "bin"), program(tmp_path / "out")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "rg").symlink_to(inside)
    (root / "link").symlink_to(outside.parent)
    monkeypatch.setenv("PATH", f":.:bin:{inside.parent}:{tmp_path / 'link'}:{root / 'link'}:{outside.parent}")
    monkeypatch.chdir(root)

    assert find_program("rg", root) == outside


def test_files_that_are_not_programs_are_skipped(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one" / "rg").mkdir(parents=True)
    program(tmp_path / "two").chmod(0o644)
    monkeypatch.setenv("PATH", f"{tmp_path / 'one'}:{tmp_path / 'two'}")

    assert find_program("rg", root) is None
