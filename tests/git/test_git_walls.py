"""Without walls, git runs for tui-agent itself only where it is trusted; behind them, it reaches nothing else."""

from pathlib import Path

import pytest

from tests.support.programs import hide_walls
from tui_agent.git.git_program import start_git
from tui_agent.git.git_walls import find_bubblewrap
from tui_agent.tools.search.tree_listing import GitFiles

from .test_crafted_repositories import BASE, SECRET, shell

WALLS = pytest.mark.skipif(find_bubblewrap("/") is None, reason="no bubblewrap works here")
SPY = """#!/bin/sh
exec 2>&1
echo begun; pwd; cat a.py
id > made || echo no write; id > $HOME/made
cat $HOME/key; ls $HOME; cat /etc/shadow
grep : /proc/net/dev | grep -v lo: || echo no network
exit 0
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "home" / "work"
    root.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(root.parent))
    shell(BASE, root, root.parent)
    (root.parent / "key").write_text(SECRET)
    return root


def test_without_walls_only_a_trusted_folder_is_read(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_walls(tmp_path / "hidden", monkeypatch)

    assert GitFiles(root, is_trusted=False).status() is None
    assert GitFiles(root, is_trusted=True).status() is not None


@WALLS
def test_behind_walls_git_sees_one_repository_and_changes_nothing(root: Path, tmp_path: Path) -> None:
    assert GitFiles(root, is_trusted=False).status() is not None

    spy = tmp_path / "programs" / "git"
    spy.parent.mkdir()
    spy.write_text(SPY)
    spy.chmod(0o755)
    environment = {"HOME": str(root.parent)}
    output = start_git(spy, (), environment=environment, seconds=10, readable=[str(root)], directory=str(root)) or b""

    shown = output.decode()
    assert shown.startswith(f"begun\n{root}\nHELLO\n"), shown
    assert "no write\n" in shown
    assert "no network\n" in shown
    assert SECRET not in shown
    assert "root:" not in shown
    assert not (root / "made").exists()
    assert not (root.parent / "made").exists()
