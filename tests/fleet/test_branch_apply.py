"""The patch of a unit as a branch of a local repository."""

import subprocess
from pathlib import Path

import pytest

from tui_agent.fleet.worktree_git import apply_as_branch
from tui_agent.protocol.errors import ConfigurationError

from .repositories import git, repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"a.txt": b"one\n", "b.bin": bytes(range(256))})


@pytest.fixture
def base(repo: Path) -> str:
    return git("rev-parse", "HEAD", cwd=repo)


@pytest.fixture
def patch(repo: Path, base: str) -> bytes:
    """A commit that changes, adds and removes files, as a patch; the repository is back at its base afterwards."""
    (repo / "a.txt").write_text("two \n")
    (repo / "new.bin").write_bytes(b"\0\1\2" * 99)
    (repo / "b.bin").unlink()
    git("add", "-A", cwd=repo)
    git("commit", "-q", "-m", "Change", cwd=repo)
    made = subprocess.run(
        ["git", "format-patch", "--stdout", "--binary", "--no-signature", "-1"],
        cwd=repo,
        check=True,
        capture_output=True,
    ).stdout
    git("reset", "-q", "--hard", base, cwd=repo)
    return made


async def test_the_patch_becomes_one_commit_of_the_user_and_nothing_else_moves(
    repo: Path, base: str, patch: bytes
) -> None:
    (repo / "a.txt").write_text("my own words\n")
    before = git("status", "--porcelain", cwd=repo)

    made = await apply_as_branch(repo, base, patch, "fleet/1", "Change\n\nUnit 1")

    assert git("rev-parse", "fleet/1", "fleet/1^", cwd=repo).split() == [made, base]
    assert git("log", "-1", "--format=%an %ae %s", made, cwd=repo) == "Ada ada@example.org Change"
    assert git("diff", "--name-status", base, made, cwd=repo).split() == ["M", "a.txt", "D", "b.bin", "A", "new.bin"]
    assert git("show", f"{made}:a.txt", cwd=repo) == "two"
    assert (git("rev-parse", "HEAD", cwd=repo), git("branch", "--show-current", cwd=repo)) == (base, "main")
    assert git("status", "--porcelain", cwd=repo) == before
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
    before = git("for-each-ref", cwd=repo)

    with pytest.raises(ConfigurationError, match=reason) as refused:
        await apply_as_branch(repo, start or base, patch, branch, "Change")

    assert str(refused.value).endswith("No branch was made.")
    assert git("for-each-ref", cwd=repo) == before


async def test_a_patch_that_does_not_fit_or_a_directory_without_git_is_refused(
    repo: Path, base: str, patch: bytes, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="patch does not apply"):
        await apply_as_branch(repo, base, patch.replace(b"-one", b"-six"), "fleet/1", "Change")
    with pytest.raises(ConfigurationError, match="not a git repository"):
        await apply_as_branch(tmp_path, base, patch, "fleet/1", "Change")
