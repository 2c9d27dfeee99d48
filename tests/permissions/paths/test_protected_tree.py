"""Paths that a sandbox must keep read-only, existing or not."""

import socket
from pathlib import Path

import pytest

from tests.support.file_modes import enforce_file_modes
from tui_agent.git import protected_tree as page
from tui_agent.git.protected_tree import ProtectedTree
from tui_agent.protocol.errors import ToolError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    return directory


def names(root: Path, *private: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in ProtectedTree(root, private).places()}


TOP = {".git", ".husky", "node_modules", ".tui-agent", ".mcp.json", ".claude", ".agents"}


def test_the_names_at_the_top_are_protected_before_they_exist(root: Path) -> None:
    assert names(root) == TOP


def test_paths_at_any_depth_and_in_any_spelling_are_found(root: Path) -> None:
    for name in ("a/b/node_modules/c", "a/.GIT/hooks", "bare.git/objects", "bare.git/refs", "plain/x"):
        (root / name).mkdir(parents=True)
    (root / "bare.git" / "HEAD").write_text("ref: x\n", "utf-8")

    assert names(root) == TOP | {"a/b/node_modules", "a/.GIT", "bare.git"}


def test_what_agents_take_from_a_project_is_found(root: Path) -> None:
    for name in (".claude/hooks", "a/.claude/skills", ".claude/logs", "hooks"):
        (root / name).mkdir(parents=True)
    (root / "a" / ".claude" / "settings.local.json").write_text("{}", "utf-8")

    assert names(root) == TOP | {"a/.claude/skills", "a/.claude/settings.local.json"}
    assert {*ProtectedTree(root).files()[0]} == {".claude/hooks", "a/.claude/skills", "a/.claude/settings.local.json"}


def test_a_link_in_place_of_such_a_directory_has_its_target_protected(root: Path, tmp_path: Path) -> None:
    (root / "kept").mkdir()
    (root / ".claude").symlink_to("kept")
    (root / ".agents").symlink_to(tmp_path)

    assert names(root) == TOP - {".claude", ".agents"} | {"kept"}


def test_sockets_are_found_but_not_watched(root: Path) -> None:
    (root / "sub").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "sub" / "s"))

    assert names(root) == TOP | {"sub/s"}
    assert ProtectedTree(root).files() == ({}, True)


def test_the_target_of_a_pointer_file_is_found(root: Path) -> None:
    (root / "kept").mkdir()
    (root / "sub").mkdir()
    (root / "sub" / ".git").write_text("gitdir: ../kept\n", "utf-8")

    assert names(root) == TOP | {"sub/.git", "kept"}


def test_a_links_target_is_protected_and_at_the_top_the_link_too(root: Path) -> None:
    (root / "store").mkdir()
    (root / "elsewhere").mkdir()
    (root / "a").mkdir()
    (root / "a" / "node_modules").symlink_to("../store")
    (root / ".husky").symlink_to("elsewhere")
    (root / "a" / ".git").symlink_to("/nowhere")

    assert names(root) == TOP | {"store", "elsewhere"}


def test_our_own_paths_in_the_workspace_are_included(root: Path, tmp_path: Path) -> None:
    assert names(root, root / "x" / "config", tmp_path / "other") == TOP | {"x/config"}


def test_no_path_is_inside_another(root: Path) -> None:
    (root / ".git" / "modules" / "node_modules").mkdir(parents=True)

    assert names(root, root / ".tui-agent" / "home") == TOP


def test_an_unreadable_directory_is_protected_as_a_whole(root: Path) -> None:
    (root / "closed").mkdir(mode=0)

    with enforce_file_modes():
        assert names(root) == TOP | {"closed"}


def test_a_workspace_too_large_to_scan_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (root / name / "node_modules").mkdir(parents=True)
    monkeypatch.setattr(page, "MAX_DIRECTORIES", 2)
    with pytest.raises(ToolError, match="too large for the sandbox"):
        ProtectedTree(root).places()
    monkeypatch.setattr(page, "MAX_DIRECTORIES", 100)
    monkeypatch.setattr(page, "MAX_PLACES", 5)
    with pytest.raises(ToolError, match="too large for the sandbox"):
        ProtectedTree(root).places()
    with pytest.raises(ToolError, match="cannot be listed"):
        ProtectedTree(root / "none").places()
