"""Protected paths of a workspace, by name and by content."""

import subprocess
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tests.support.file_modes import enforce_file_modes
from tui_agent.git import protected_tree as page
from tui_agent.git.protected_tree import ProtectedTree, fold_name, protected_name
from tui_agent.git.repository_layout import data_directories, protected_repository


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


def test_names_are_compared_as_the_most_lenient_file_system_does() -> None:
    assert fold_name(".GIT") == fold_name(".git. ") == fold_name(".g\u200dit") == fold_name(".git:stream") == ".git"
    assert fold_name("...") == "..."
    assert fold_name("\u3164.git") == ".git"
    assert protected_name("a/b/.Husky/x") == ".Husky contains commit hooks"
    assert protected_name("a/b") is None


def test_the_target_of_a_git_file_is_protected(desk: Desk) -> None:
    (desk.root / "module").mkdir()
    (desk.root / "module" / ".git").write_text("gitdir: ../data/module\n", "utf-8")
    data = desk.root / "data" / "module"
    data.mkdir(parents=True)
    (data / "commondir").write_text("../shared\n", "utf-8")
    top = str(desk.root)

    assert "points" in (protected_repository(f"{data}/config", f"{top}/module") or "")
    assert "points" in (protected_repository(f"{top}/data/shared/config", f"{top}/module") or "")
    assert data_directories(f"{top}/module") == [str(data), f"{top}/data/shared"]
    assert protected_repository(f"{top}/module/free.txt", f"{top}/module") is None


def test_the_repository_of_a_nested_workspace_is_protected(desk: Desk) -> None:
    (desk.root / "module" / "sub").mkdir(parents=True)
    (desk.root / "module" / ".git").write_text("gitdir: sub/data\n", "utf-8")
    workspace = f"{desk.root}/module/sub"

    assert "points" in (protected_repository(f"{workspace}/data/config", workspace) or "")
    assert protected_repository(f"{workspace}/free", workspace) is None


def test_a_directory_with_the_signs_of_a_repository_is_one(desk: Desk) -> None:
    bare = desk.root / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    linked = desk.root / "linked"
    linked.mkdir()
    (linked / "HEAD").touch()
    assert protected_repository(f"{linked}/x", str(desk.root)) is None
    (linked / "commondir").touch()

    assert "is a repository's data" in (protected_repository(f"{bare}/hooks/x", str(desk.root)) or "")
    assert "is a repository's data" in (protected_repository(f"{linked}/x", str(desk.root)) or "")
    assert "is a repository's data" in (protected_repository(f"{bare}/x", "/elsewhere") or "")


@pytest.mark.parametrize("content", [b"", b"gitdir:", b"\xff\xfe nothing"])
def test_a_pointer_without_a_target_protects_nothing(desk: Desk, content: bytes) -> None:
    (desk.root / "module").mkdir()
    (desk.root / "module" / ".git").write_bytes(content)

    assert protected_repository(f"{desk.root}/module/x", str(desk.root)) is None


def test_git_directories_of_every_form(desk: Desk, tmp_path: Path) -> None:
    assert data_directories(str(desk.root)) == [f"{desk.root}/.git"]
    (desk.root / ".git" / "commondir").write_text("shared\n", "utf-8")
    assert data_directories(str(desk.root)) == [f"{desk.root}/.git", f"{desk.root}/.git/shared"]
    assert data_directories("/nowhere") == []
