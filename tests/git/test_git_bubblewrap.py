"""Without walls, git runs for tui-agent itself only where it is trusted; behind them, it reaches nothing else."""

import os
from pathlib import Path

import pytest

from tests.support.programs import hide_walls
from tui_agent.fleet.unit_process import UnitFailureError
from tui_agent.fleet.unit_worktree import open_worktree, resolve_ref, updated_mirror
from tui_agent.fleet.worktree_git import apply_as_branch
from tui_agent.git.git_program import find_bubblewrap, find_git, start_git
from tui_agent.git.git_settings import plain_git_settings
from tui_agent.git.repository_safety import program_settings
from tui_agent.tools.search.tree_listing import GitFiles

from .test_crafted_repositories import BASE, SECRET, shell

WALLS = pytest.mark.skipif(find_bubblewrap("/") is None, reason="no bubblewrap works here")
SPY = """#!/bin/sh
exec 2>&1
echo begun; pwd; cat a.py
id > made || echo no write; for place in $HOME /tmp /etc /; do id > $place/made && echo a write; done
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
    assert "a write\n" not in shown
    assert "no network\n" in shown
    assert SECRET not in shown
    assert "root:" not in shown
    assert not (root / "made").exists()
    assert not (root.parent / "made").exists()


LOGGING = """#!/bin/sh
echo "$@" >> {log} && exit 1
exec {git} "$@"
"""


@WALLS
async def test_no_git_of_ours_runs_without_walls(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that can write into the user's files has none."""
    log, programs, fleet = tmp_path / "outside" / "log", tmp_path / "programs", tmp_path / "fleet"
    git = find_git(root)
    for directory in (
        log.parent,
        programs,
        fleet,
        fleet / "work",
        home := fleet / "work" / "1",
        mirrors := fleet / "mirrors",
    ):
        directory.mkdir()
    (programs / "git").write_text(LOGGING.format(log=log, git=git))
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    for is_trusted in (True, False):
        files = GitFiles(root, is_trusted)
        listing = files.list(compared=True)
        assert files.status()
        assert listing is not None
        assert list(files.contents([one for one in listing.names.values() if one]))
    assert (program_settings(str(root)), plain_git_settings(root)) == ((), b"")
    mirror = await updated_mirror(mirrors, str(root), fleet)
    base = await resolve_ref(mirror, "main")
    unit = await open_worktree(home, mirror, "1", str(root), base)
    (unit.path / "new.txt").write_text("new\n")
    await unit.record("Change")
    bundle = await unit.bundle()
    await unit.restore([bundle], home)
    patch, _ = await unit.patch("Change")
    assert await apply_as_branch(root, base, patch, "made", "Change")
    assert not log.exists()
    assert os.stat(unit.path / ".git" / "objects" / base[:2] / base[2:]).st_nlink == 2, "not copied"
    with pytest.raises(UnitFailureError):
        await updated_mirror(mirrors, "https://localhost:1/x", fleet)
    assert "https://localhost:1/x" in log.read_text(), "a fetch from the network"
