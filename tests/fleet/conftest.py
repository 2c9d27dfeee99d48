"""Repository that fleets of the tests work on."""

from pathlib import Path

import pytest

from .repositories import git, repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit, a branch and a tag."""
    files = {"kept.txt": b"one\n", "gone.txt": b"two\n", ".gitignore": b"*.log\n"}
    repo = repository(tmp_path / "repo", files)
    git("branch", "side", cwd=repo)
    git("tag", "v1", cwd=repo)
    return repo
