"""URLs with secrets in git's settings need an answer before they are shown."""

from pathlib import Path

import pytest

from tests.permissions.conftest import Desk
from tui_agent.git.repository_safety import find_remote_url_secret


@pytest.mark.parametrize(
    ("address", "is_secret"),
    [
        ("https://github.com/x/y.git", False),
        ("git@github.com:x/y.git", False),
        ("ssh://git@github.com:22/x/y.git", False),
        ("https://me@example.com/x.git", False),
        ("https://me:hunter2@example.com/x.git", True),
        ("https://ghp_0123456789abcdefghij@github.com/x/y.git", True),
        ("https://:token@example.com/x.git", True),
    ],
)
def test_a_url_with_a_secret_needs_an_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, is_secret: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (desk.root / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {address}\n', "utf-8")
    (desk.root / "link").symlink_to(".git/config")
    expected = "ask" if is_secret else "allow"

    for command in ("git remote -v", "git remote get-url origin", "cd src && git remote -v", "git -C src remote -v"):
        assert desk.bash(command).decision == expected, command
    for command in (
        "cat .git/config",
        "cd .git && head -5 config",
        "sed -n 5p .git/config",
        "grep -r url .git",
        "grep -r url .",
    ):
        assert desk.bash(command).decision == expected, command
        assert desk.bash(command, "allow bash(cat:*)", "allow bash(grep:*)").decision == expected, command
    for tool, path in (("read", ".git/config"), ("grep", ".git"), ("read", "link")):
        assert desk.file(tool, path).decision == expected, (tool, path)
    for command in ("grep -r url src", "rg url", "ls -la .git", "git diff", "git log -p", "cat .git/HEAD"):
        assert desk.bash(command).decision == "allow", command
    for tool, path in (("grep", "."), ("read", "README.md"), ("grep", "src")):
        assert desk.file(tool, path).decision == "allow", (tool, path)
    assert desk.bash("git remote").decision == "allow"
    assert desk.bash("git status").decision == "allow"


def test_the_users_own_settings_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert find_remote_url_secret(str(tmp_path)) is None

    (tmp_path / ".gitconfig").write_text('[url "https://x:token@github.com/"]\n\tinsteadOf = https://github.com/\n')
    assert find_remote_url_secret(str(tmp_path)) == str(tmp_path / ".gitconfig")
