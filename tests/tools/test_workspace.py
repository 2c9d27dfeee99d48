"""The workspace resolves paths and creates files for long output."""

import os
import stat
from pathlib import Path

import pytest

from tui_agent.tools.workspace import Workspace


def test_names_are_resolved_from_the_root_through_every_link(
    workspace: Workspace, root: Path, clean_environment: Path
) -> None:
    (root / "deep" / "er").mkdir(parents=True)
    (root / "link").symlink_to("deep/er")

    assert workspace.resolve("a/b.py") == root / "a" / "b.py"
    assert workspace.resolve("link/new.py") == root / "deep" / "er" / "new.py"
    assert workspace.resolve("link/../x") == root / "deep" / "x", "the parent of the link's target"
    assert workspace.resolve("/etc/../usr") == Path("/usr")
    assert (workspace.given("~/x"), workspace.given("src/~x")) == (f"{clean_environment}/x", "src/~x")
    assert workspace.resolve("~/x") == clean_environment / "x"


def test_paths_are_shown_relative_to_the_root_by_components(workspace: Workspace, root: Path) -> None:
    assert workspace.display(root / "a" / "b.py") == "a/b.py"
    assert workspace.display(root) == "."
    assert workspace.display(Path(f"{root}-evil/x")) == f"{root}-evil/x"
    assert not workspace.contains(Path(f"{root}-evil/x"))


def test_spool_files_are_private_from_the_start(workspace: Workspace) -> None:
    workspace.spool_dir.mkdir(mode=0o755)
    descriptor, path = workspace.new_spool_file()
    os.close(descriptor)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700, "one that is open to others is closed"
    assert workspace.is_spooled(path)
    assert not workspace.is_spooled(workspace.root / "a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_spool_directory_of_another_user_is_refused(workspace: Workspace) -> None:
    workspace.spool_dir.mkdir(mode=0o700)
    os.chown(workspace.spool_dir, 12345, 12345)

    with pytest.raises(PermissionError, match="not a directory of this user"):
        workspace.new_spool_file()
