"""A permission check never blocks on a file of a repository and never takes an odd one for harmless."""

import os
import tracemalloc
from pathlib import Path

import pytest

from tui_agent.git.repository_layout import data_directories, protected_repository
from tui_agent.protocol.regular_file import read_regular_file


def repository(place: Path) -> Path:
    data = place / ".git"
    for name in ("objects", "refs"):
        (data / name).mkdir(parents=True)
    (data / "HEAD").write_text("ref: refs/heads/main\n")
    return data


def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("a")

    assert read_regular_file(str(tmp_path / "link"), 5) == b"12345"
    tracemalloc.start()
    try:
        assert read_regular_file(str(tmp_path / "a"), 8 * 1024**3) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 16 * 1024**2, "a high limit allocates no memory"
    finally:
        tracemalloc.stop()
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_regular_file(str(tmp_path / "a"), 4)


@pytest.mark.parametrize("name", ["/dev/zero", "/tmp"])
def test_only_regular_files_are_read(name: str) -> None:
    with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
        read_regular_file(name)


def test_a_pipe_in_place_of_a_file_of_git_does_not_block(tmp_path: Path) -> None:
    data, worktree = repository(tmp_path), tmp_path / "worktree"
    os.mkfifo(data / "commondir")
    assert data_directories(str(tmp_path)) == [str(data)]
    assert protected_repository(str(data / "config"), str(tmp_path))

    (worktree / "real").mkdir(parents=True)
    (worktree / ".git").write_text("gitdir: real\n")
    os.mkfifo(worktree / "real" / "commondir")
    assert protected_repository(str(worktree / "real" / "x"), str(worktree))
