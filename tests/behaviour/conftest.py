"""Fixtures of the requirement tests: an agent with a scripted model, and the built-in tools over a real directory."""

from pathlib import Path

import pytest

from tests.agent.conftest import bench as bench
from tests.support.validating_bus import judged as judged
from tui_agent.permissions import is_read_only_command
from tui_agent.protocol.tool import Tool
from tui_agent.tools import Workspace, default_tools


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a directory with two files and a `.git` directory."""
    directory = tmp_path / "work"
    (directory / ".git").mkdir(parents=True)
    (directory / ".git" / "config").write_text("[core]\n")
    (directory / "a.txt").write_text("alpha\n")
    (directory / "b.txt").write_text("beta\n")
    return directory


@pytest.fixture
def tools(root: Path, tmp_path: Path) -> dict[str, Tool]:
    """Return the built-in tools by name."""
    workspace = Workspace(root, spool_dir=tmp_path / "spool")
    made = default_tools(workspace, is_read_only_command=lambda command: is_read_only_command(command, root))
    return {tool.name: tool for tool in made}
