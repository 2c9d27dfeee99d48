"""A folder that is added to the workspace: read like it, changed under the same rules, and nothing beside it."""

import os
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.permissions import PermissionMode, PermissionPolicy, Rule

from .conftest import Desk

ASK, EDITS = PermissionMode.ASK, PermissionMode.ACCEPT_EDITS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder beside the workspace, with a repository, a secret, and a link that leads out of it."""
    folder = Path(os.path.realpath(tmp_path)) / "library"
    for name in ("src/a.py", ".git/config", ".env", "secrets/key.pem"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x\n", "utf-8")
    (folder.parent / "beside.txt").write_text("x\n", "utf-8")
    (folder / "out").symlink_to(folder.parent)
    return folder


def policy_of(desk: Desk, folder: Path, *rules: str, mode: PermissionMode = ASK) -> PermissionPolicy:
    parsed = [Rule.parse(*rule.split(" ", 1)) for rule in rules]
    return PermissionPolicy(desk.root, rules=parsed, mode=mode, folders=[folder])


@table(
    ("mode", "rule", "tool", "path", "decision"),
    [
        (ASK, "", "read", "src/a.py", "allow"),
        (ASK, "", "read", ".env", "ask"),
        (ASK, "", "read", "out/beside.txt", "ask"),
        (ASK, "", "read", "../beside.txt", "ask"),
        (ASK, "", "write", "src/a.py", "ask"),
        (ASK, "allow edit(src/**)", "write", "src/a.py", "allow"),
        (EDITS, "", "write", "src/a.py", "allow"),
        (EDITS, "", "write", "out/beside.txt", "ask"),
        (EDITS, "", "write", ".git/config", "deny"),
        (EDITS, "", "write", ".envrc", "ask"),
        (EDITS, "deny edit(secrets/**)", "write", "secrets/key.pem", "deny"),
    ],
)
def test_files_of_an_added_folder_follow_the_rules_of_the_workspace(
    desk: Desk, folder: Path, mode: PermissionMode, rule: str, tool: str, path: str, decision: str
) -> None:
    policy = policy_of(desk, folder, *filter(None, [rule]), mode=mode)

    assert policy.check(desk.tools[tool], {"path": str(folder / path)}).decision == decision


def test_a_folder_counts_from_the_moment_it_is_added(desk: Desk, folder: Path) -> None:
    policy, call = desk.policy(mode=EDITS), {"path": str(folder / "src/a.py")}
    before = policy.check(desk.tools["write"], call)

    policy.add_folder(folder)

    assert (before.decision, policy.check(desk.tools["write"], call).decision) == ("ask", "allow")
    assert "outside the workspace" in before.reason
    assert policy.folders == (folder,)
