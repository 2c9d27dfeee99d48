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


def test_the_first_program_on_path_outside_the_workspace_is_found(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, inside = program(tmp_path / "one"), program(tmp_path / "two"), program(root / "bin")
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "rg").symlink_to(inside)
    (root / "link").symlink_to(first.parent)
    (tmp_path / "directory" / "rg").mkdir(parents=True)
    program(tmp_path / "unset").chmod(0o644)
    monkeypatch.chdir(root)

    skipped = (
        f":.:bin:{inside.parent}:{tmp_path / 'link'}:{root / 'link'}:{tmp_path / 'directory'}:{tmp_path / 'unset'}"
    )
    monkeypatch.setenv("PATH", f"{skipped}:{second.parent}:{first.parent}")
    assert find_program("rg", root) == second
    assert find_program("nothing", root) is None

    monkeypatch.setenv("PATH", skipped)
    assert find_program("rg", root) is None
