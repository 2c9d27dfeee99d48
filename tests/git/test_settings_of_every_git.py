"""Settings of every git, also of commands that the user allowed: files alone do not make a folder a repository."""

import os
from pathlib import Path

import pytest

from tests.support.sample_tools import sample_tools
from tests.tools.calls import call
from tui_agent.git.git_program import settings_of_every_git, users_settings
from tui_agent.git.git_settings import plain_git_settings
from tui_agent.permissions import PermissionMode, PermissionPolicy
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.workspace import Workspace

FILES = ("config", "objects/k", "refs/k", "HEAD")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which `x` looks like a repository that starts a program."""
    root = tmp_path / "work"
    tool = root / "tool.sh"
    for name in FILES:
        (root / "x" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "x" / name).write_text("")
    tool.write_text(f"#!/bin/sh\nid > {tmp_path}/PWNED\n")
    tool.chmod(0o755)
    settings = f"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {tool}\n"
    (root / "x" / "config").write_text(settings)
    (root / "x" / "HEAD").write_text("ref: refs/heads/master\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return root


async def test_a_folder_with_the_files_of_a_repository_is_none(root: Path, tmp_path: Path) -> None:
    bash = BashTool(Workspace(root, spool_dir=tmp_path / "spool"), is_read_only_command=lambda _: False)

    for command in ("cd x && git commit -m x", "git -C x status", "cd x/objects && git add ."):
        result = await call(bash, command=command)
        assert "[tui-agent sets safe.bareRepository=explicit for git. Name the repository:" in result.text, command
    assert not (tmp_path / "PWNED").exists()
    result = await call(bash, command="git clone -q 'ext::sh -c ./tool.sh' y")
    assert "[tui-agent sets protocol.ext.allow=never for git." in result.text
    assert not (tmp_path / "PWNED").exists()

    (tmp_path / ".gitconfig").write_text("[safe]\n\tbareRepository = all\n[user]\n\tname = x\n\temail = x@y\n")
    await call(bash, command="cd x && git commit -m x")
    assert (tmp_path / "PWNED").exists(), "the user chose it"


def test_the_users_own_settings_stay(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> set[str]:
        return {name for name, _ in settings_of_every_git()}

    assert {"safe.bareRepository", "protocol.ext.allow"} <= names()
    (tmp_path / ".gitconfig").write_text("[include]\n\tpath = more\n")
    (tmp_path / "more").write_text("[SAFE]\nbarerepository = all\n")
    assert "safe.bareRepository" not in names()
    (tmp_path / "own").write_text('[protocol "ext"]\n\tallow = always\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "own"))
    assert "protocol.ext.allow" not in names()
    assert str(tmp_path / "own") in users_settings()[1]
    os.truncate(tmp_path / "own", 0)
    assert "protocol.ext.allow" in names()


def test_the_file_that_makes_a_folder_a_repository_is_not_written(root: Path) -> None:
    policy, tools = PermissionPolicy(root, mode=PermissionMode.ACCEPT_EDITS), sample_tools(root)
    for last in FILES[1:]:
        path = root / "x" / last
        content = path.read_text()
        path.unlink()
        if last != "HEAD":
            path.parent.rmdir()
        decision = policy.check(tools["write"], {"path": f"x/{last}"})
        assert (decision.decision, "would become a repository's data" in decision.reason) == ("deny", True), last
        assert policy.check(tools["write"], {"path": "x/y.txt"}).decision == "allow", last
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)


@pytest.mark.parametrize(
    "command",
    ["env -u GIT_CONFIG_COUNT git commit -m x", "GIT_CONFIG_COUNT=0 git commit -m x", "env -i git commit -m x",
     "unset GIT_CONFIG_COUNT; git commit -m x", "export GIT_CONFIG_COUNT=0 && git commit -m x",
     "git -c safe.bareRepository=all commit -m x", "git --git-dir=x commit -m x", "GIT_DIR=x git commit -m x"],
)  # fmt: skip
def test_no_rule_covers_a_commit_without_these_settings(root: Path, command: str) -> None:
    policy = PermissionPolicy(root, rules=["allow bash(git commit:*)"], mode=PermissionMode.ACCEPT_EDITS)
    assert policy.check(sample_tools(root)["bash"], {"command": command}).decision == "ask"


@pytest.mark.parametrize("place", [".gitconfig", ".config/git/config", "settings/git/config"])
def test_the_users_name_is_found_in_every_usual_file(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    if place.startswith("settings"):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[user]\n\tname = Ada\n[credential]\n\thelper = store\n")

    assert plain_git_settings(root) == b'[user]\n\tname = "Ada"\n'
