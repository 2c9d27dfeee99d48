"""Facts about paths."""

import os
from pathlib import Path

from tests.permissions.conftest import Desk
from tests.support.table import table
from tui_agent.permissions.path_judge import PathLookup
from tui_agent.permissions.rules.path_resolution import WorkspaceRoots


def test_devices_store_nothing_unless_they_are_replaced(desk: Desk) -> None:
    path_lookup = PathLookup(WorkspaceRoots(desk.root))

    assert path_lookup.look("/dev/null").is_device
    assert path_lookup.look("/dev/stdout").is_device
    assert not path_lookup.look("/dev/sda").is_device
    assert not path_lookup.look("/proc/self/root/dev/null").is_device
    assert path_lookup.why_protected(path_lookup.look("/dev/null")) is None
    assert path_lookup.look("/dev/stdin").is_readable


def test_our_own_paths_are_private_by_either_name(desk: Desk) -> None:
    state = desk.root.parent / "state"
    (state / "kept").mkdir(parents=True)
    (desk.root / "short").symlink_to(state)
    path_lookup = PathLookup(WorkspaceRoots(desk.root), (desk.root / "short",), (state / "kept",))

    for path in ("short/x", str(state / "x"), str(state)):
        facts = path_lookup.look(path)
        assert facts.private == "it belongs to the agent's own settings or sessions"
        assert path_lookup.why_protected(facts) == facts.private
        assert not facts.is_readable
    kept = path_lookup.look(str(state / "kept" / "output.txt"))
    assert kept.private is None
    assert kept.is_readable
    assert path_lookup.why_protected(kept) is not None


@table(
    "path",
    [
        ".git", ".git/config", "sub/.git/x", ".GIT/config", ".git./x", ".git /x", ".g\u200cit/x", "git~1/x",
        ".git::$DATA/x",
        "a\\.git\\config", ".husky/pre-commit", "src/node_modules/x", ".tui-agent/config.toml", "links/git/config",
        ".\uff47it/x", "node_modules",
    ],
)  # fmt: skip
def test_protected_names_in_any_spelling(desk: Desk, path: str) -> None:
    path_lookup = PathLookup(WorkspaceRoots(desk.root))

    assert path_lookup.why_protected(path_lookup.look(path)) is not None


@table("path", [".github/x", ".gitignore", "git/x", "node_modules_old/x", "husky/x", ".gitattributes"])
def test_names_that_only_look_like_them_are_free(desk: Desk, path: str) -> None:
    path_lookup = PathLookup(WorkspaceRoots(desk.root))

    assert path_lookup.why_protected(path_lookup.look(path)) is None


def test_a_workspace_below_a_protected_name_is_not_protected_by_it(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path)) / "node_modules" / "package"
    root.mkdir(parents=True)
    path_lookup = PathLookup(WorkspaceRoots(root))

    assert path_lookup.why_protected(path_lookup.look("index.js")) is None
    assert path_lookup.why_protected(path_lookup.look("node_modules/x")) is not None
    assert path_lookup.why_protected(path_lookup.look(f"{root.parent}/other/x")) is not None
