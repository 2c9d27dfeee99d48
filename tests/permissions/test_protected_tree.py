"""Protected paths of a workspace, by name and by content."""

from pathlib import Path

import pytest

from tests.support.file_modes import enforce_file_modes
from tui_agent.git import protected_tree as page
from tui_agent.git.protected_tree import ProtectedTree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def names(root: Path, *private: Path) -> set[str]:
    return {*ProtectedTree(root, private).files()[0]}


def test_paths_at_any_depth_and_in_any_spelling_are_found(root: Path) -> None:
    for name in ("a/b/node_modules/c", "a/.GIT/hooks", "bare.git/objects", "bare.git/refs", "plain/x"):
        (root / name).mkdir(parents=True)
    (root / "bare.git" / "HEAD").write_text("ref: x\n", "utf-8")

    assert names(root) == {"a/b/node_modules", "a/.GIT", "bare.git"}


def test_what_agents_take_from_a_project_is_found(root: Path) -> None:
    for name in (".claude/hooks", "a/.claude/skills", ".claude/logs", "hooks"):
        (root / name).mkdir(parents=True)
    (root / "a" / ".claude" / "settings.local.json").write_text("{}", "utf-8")

    assert names(root) == {".claude/hooks", "a/.claude/skills", "a/.claude/settings.local.json"}


def test_the_target_of_a_pointer_file_is_found(root: Path) -> None:
    (root / "kept").mkdir()
    (root / "sub").mkdir()
    (root / "sub" / ".git").write_text("gitdir: ../kept\n", "utf-8")

    assert names(root) == {"sub/.git", "kept"}


def test_a_links_target_is_protected_and_at_the_top_the_link_too(root: Path) -> None:
    (root / "store").mkdir()
    (root / "elsewhere").mkdir()
    (root / "a").mkdir()
    (root / "a" / "node_modules").symlink_to("../store")
    (root / ".husky").symlink_to("elsewhere")
    (root / "a" / ".git").symlink_to("/nowhere")

    assert names(root) == {"store", "elsewhere", ".husky", "a/node_modules", "a/.git"}


def test_an_unreadable_directory_is_protected_as_a_whole(root: Path) -> None:
    (root / "closed").mkdir(mode=0)

    with enforce_file_modes():
        assert names(root) == {"closed"}


def test_of_a_workspace_too_large_to_scan_some_are_missing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (root / name / "node_modules").mkdir(parents=True)
    monkeypatch.setattr(page, "MAX_DIRECTORIES", 2)

    assert ProtectedTree(root).files()[1] is False
    assert ProtectedTree(root / "none").files() == ({}, False)
