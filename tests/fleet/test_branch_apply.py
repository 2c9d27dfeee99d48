"""The patch of a unit as a branch of a local repository."""

import subprocess
from pathlib import Path

import pytest

from tui_agent.fleet.branch_apply import apply_as_branch
from tui_agent.protocol.errors import ConfigurationError


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Ada")
    git(repo, "config", "user.email", "ada@example.org")
    (repo / "a.txt").write_text("one\n")
    (repo / "b.bin").write_bytes(bytes(range(256)))
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Begin")
    return repo


@pytest.fixture
def base(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def patch(repo: Path, base: str) -> bytes:
    """A commit that changes, adds and removes files, as a patch; the repository is back at its base afterwards."""
    (repo / "a.txt").write_text("two \n")
    (repo / "new.bin").write_bytes(b"\0\1\2" * 99)
    (repo / "b.bin").unlink()
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Change")
    made = subprocess.run(
        ["git", "format-patch", "--stdout", "--binary", "--no-signature", "-1"],
        cwd=repo,
        check=True,
        capture_output=True,
    ).stdout
    git(repo, "reset", "-q", "--hard", base)
    return made


async def test_the_patch_becomes_one_commit_of_the_user_and_nothing_else_moves(
    repo: Path, base: str, patch: bytes
) -> None:
    (repo / "a.txt").write_text("my own words\n")
    before = git(repo, "status", "--porcelain")

    made = await apply_as_branch(repo, base, patch, "fleet/1", "Change\n\nUnit 1")

    assert git(repo, "rev-parse", "fleet/1", "fleet/1^").split() == [made, base]
    assert git(repo, "log", "-1", "--format=%an %ae %s", made) == "Ada ada@example.org Change"
    assert git(repo, "diff", "--name-status", base, made).split() == ["M", "a.txt", "D", "b.bin", "A", "new.bin"]
    assert git(repo, "show", f"{made}:a.txt") == "two"
    assert (git(repo, "rev-parse", "HEAD"), git(repo, "branch", "--show-current")) == (base, "main")
    assert git(repo, "status", "--porcelain") == before
    assert (repo / "a.txt").read_text() == "my own words\n"


@pytest.mark.parametrize(
    ("branch", "start", "reason"),
    [
        ("main", None, "the branch main exists already"),
        ("fleet/1", "0" * 40, "it lacks the commit 000000000000 that the unit began with"),
        ("fleet/..x", None, "not a valid branch name"),
        ("-d", None, "not a valid branch name"),
    ],
)
async def test_what_does_not_fit_is_refused_with_its_reason(
    repo: Path, base: str, patch: bytes, branch: str, start: str | None, reason: str
) -> None:
    before = git(repo, "for-each-ref")

    with pytest.raises(ConfigurationError, match=reason) as refused:
        await apply_as_branch(repo, start or base, patch, branch, "Change")

    assert str(refused.value).endswith("No branch was made.")
    assert git(repo, "for-each-ref") == before


async def test_a_patch_that_does_not_fit_or_a_directory_without_git_is_refused(
    repo: Path, base: str, patch: bytes, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="patch does not apply"):
        await apply_as_branch(repo, base, patch.replace(b"-one", b"-six"), "fleet/1", "Change")
    with pytest.raises(ConfigurationError, match="not a git repository"):
        await apply_as_branch(tmp_path, base, patch, "fleet/1", "Change")
