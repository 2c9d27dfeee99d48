"""Everything below a directory is listed, up to a limit."""

from pathlib import Path

import pytest

from tui_agent.permissions.paths.path_resolution import TooMuchError, entries_below


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("a", "b/c", "b/d/e"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path)
    return tmp_path


def test_links_are_not_followed_and_directories_may_be_skipped(place: Path) -> None:
    assert sorted(entry.name for entry in entries_below(str(place), 6)) == ["a", "b", "c", "d", "e", "link"]
    assert sorted(entry.name for entry in entries_below(str(place), 6, enters=lambda entry: entry.name != "d")) == [
        "a", "b", "c", "d", "link",
    ]  # fmt: skip
    assert list(entries_below(str(place / "a"), 1)) == []


def test_too_many_entries_are_an_error(place: Path) -> None:
    with pytest.raises(TooMuchError):
        list(entries_below(str(place), 5))


def test_unreadable_directories_are_skipped_unless_required(place: Path) -> None:
    assert list(entries_below(str(place / "nothing"), 1)) == []
    with pytest.raises(FileNotFoundError):
        list(entries_below(str(place / "nothing"), 1, must_read=True))
