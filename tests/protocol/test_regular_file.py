"""No odd file of a repository blocks or is taken for harmless, and links that lead out of it are detected."""

import os
import tracemalloc
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.git.repository_layout import data_directories, protected_repository
from tui_agent.protocol.regular_file import read_regular_file, refusal, repository_root, target_outside


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


def make_repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    (root / "real").write_text("inside")
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "near").write_text("outside, with a name that begins alike")
    (tmp_path / "secret").write_text("outside")
    return root


@table(
    ("link", "target"),
    [
        *((name, None) for name in ("../real", "../../repo/real", "deep/../../real", "deep/absent", "nowhere", "link")),
        ("../../secret", "secret"),
        ("../../repository/near", "repository/near"),
        ("../../absent", "absent"),
        ("../..", "."),
        ("../.git/config", "repo/.git/config"),
    ],
)
def test_only_a_link_that_leads_out_has_a_target(tmp_path: Path, link: str, target: str | None) -> None:
    folder = make_repository(tmp_path) / "src"
    (folder / "link").symlink_to(link)

    outside = None if target is None else Path(os.path.normpath(tmp_path / target))
    assert target_outside(folder / "link", folder) == outside


def test_links_to_directories_and_to_the_repository_itself_are_followed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (repository / "one").symlink_to("two")
    (repository / "two").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "way").symlink_to("repo")

    assert target_outside(repository / "one" / "file", repository) == tmp_path / "elsewhere" / "file"
    assert repository_root(tmp_path / "way" / "src") == repository
    assert target_outside(tmp_path / "way" / "real", tmp_path / "way") is None


def test_without_a_repository_and_in_one_that_is_the_home_the_folder_itself_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "key").write_text("private")
    (tmp_path / "a" / "AGENTS.md").symlink_to("../key")

    assert repository_root(tmp_path / "a") == tmp_path / "a"
    assert target_outside(tmp_path / "a" / "AGENTS.md", tmp_path / "a") == tmp_path / "key"
    assert target_outside(tmp_path / "a" / "AGENTS.md", tmp_path) is None

    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    assert target_outside(tmp_path / "a" / "AGENTS.md", tmp_path / "a") == tmp_path / "key"
    words = "AGENTS.md is a link to /home/me/.ssh/id, outside this repository: not used"
    assert refusal(Path("AGENTS.md"), Path("/home/me/.ssh/id")) == words
