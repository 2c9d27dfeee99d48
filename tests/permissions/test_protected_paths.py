"""Paths protected by their content."""

import subprocess
from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tui_agent.git.protected_tree import fold_name, protected_name
from tui_agent.git.repository_layout import data_directories, protected_repository


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
