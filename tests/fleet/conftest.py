"""Repository that fleets of the tests work on."""

from pathlib import Path

import pytest

from .repositories import git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit, a branch and a tag."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git("init", "--quiet", "--initial-branch=main", cwd=repo)
    (repo / "kept.txt").write_text("one\n")
    (repo / "gone.txt").write_text("two\n")
    (repo / ".gitignore").write_text("*.log\n")
    git("add", "--all", cwd=repo)
    git("commit", "--quiet", "-m", "Begin", cwd=repo)
    git("branch", "side", cwd=repo)
    git("tag", "v1", cwd=repo)
    return repo
