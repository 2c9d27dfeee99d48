"""Links that lead out of a repository are detected."""

import os
from pathlib import Path

import pytest

from tui_agent.protocol.regular_file import refusal, repository_root, target_outside


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    (root / "real").write_text("inside")
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository" / "near").write_text("outside, with a name that begins alike")
    (tmp_path / "secret").write_text("outside")
    return root


@pytest.mark.parametrize("inside", ["../real", "../../repo/real", "deep/../../real", "deep/absent", "nowhere"])
def test_a_link_within_the_repository_is_inside(repository: Path, inside: str) -> None:
    (repository / "src" / "link").symlink_to(inside)

    assert target_outside(repository / "src" / "link", repository / "src") is None


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("../../secret", "secret"),
        ("../../repository/near", "repository/near"),
        ("../../absent", "absent"),
        ("../..", "."),
        ("../.git/config", "repo/.git/config"),
    ],
)
def test_a_link_that_leads_out_returns_its_target(repository: Path, tmp_path: Path, link: str, target: str) -> None:
    path = repository / "src" / "link"
    path.symlink_to(link)

    assert target_outside(path, repository / "src") == Path(os.path.normpath(tmp_path / target))


def test_chains_of_links_and_links_to_directories_are_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("outside")
    (repository / "one").symlink_to("two")
    (repository / "two").symlink_to(tmp_path / "elsewhere")

    assert target_outside(repository / "one" / "file", repository) == tmp_path / "elsewhere" / "file"
    assert target_outside(repository / "one" / "absent", repository) == tmp_path / "elsewhere" / "absent"


def test_a_repository_behind_a_link_is_resolved(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "way").symlink_to("repo")

    assert repository_root(tmp_path / "way" / "src") == repository
    assert target_outside(tmp_path / "way" / "real", tmp_path / "way") is None


def test_without_a_repository_the_folder_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "a" / "link").symlink_to("../file")

    assert repository_root(tmp_path / "a") == tmp_path / "a"
    assert target_outside(tmp_path / "a" / "link", tmp_path / "a") == tmp_path / "file"
    assert target_outside(tmp_path / "a" / "link", tmp_path) is None


def test_a_home_that_is_a_repository_does_not_count_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "key").write_text("private")
    (tmp_path / "project" / "AGENTS.md").symlink_to("../key")

    assert target_outside(tmp_path / "project" / "AGENTS.md", tmp_path / "project") == tmp_path / "key"


def test_a_loop_of_links_raises_nothing(repository: Path) -> None:
    (repository / "loop").symlink_to("loop")

    assert target_outside(repository / "loop", repository) is None


def test_the_message_names_link_and_target() -> None:
    words = "AGENTS.md is a link to /home/me/.ssh/id, outside this repository: not used"

    assert refusal(Path("AGENTS.md"), Path("/home/me/.ssh/id")) == words
