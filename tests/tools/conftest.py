"""A workspace in a temporary directory."""

from pathlib import Path

import pytest

from tui_agent.tools.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


@pytest.fixture
def workspace(root: Path, tmp_path: Path) -> Workspace:
    return Workspace(root, spool_dir=tmp_path / "spool")
