"""Stand-ins for directories that do not exist: there as long as somebody needs them, and never longer."""

import os
import threading
from pathlib import Path

import pytest

from tui_agent.tools.placeholders import PLACEHOLDER_MODE, placeholder_for, placeholders


def test_what_is_missing_is_there_for_as_long_as_it_is_needed(root: Path) -> None:
    (root / "kept").mkdir()

    with placeholders([root / "kept", root / "missing"]) as impossible:
        assert not impossible
        assert sorted(os.listdir(root)) == ["kept", "missing"]

    assert os.listdir(root) == ["kept"]


def test_the_topmost_missing_directory_stands_for_what_is_deeper(root: Path) -> None:
    assert placeholder_for(root / "a" / "b" / "c") == root / "a"
    with placeholders([root / "a" / "b" / "c"]):
        assert os.listdir(root / "a") == []
    assert os.listdir(root) == []


def test_the_last_of_several_removes_it(root: Path) -> None:
    with placeholders([root / ".git"]):
        with placeholders([root / ".git"]):
            assert (root / ".git").is_dir()
        assert (root / ".git").is_dir()
    assert not (root / ".git").exists()


def test_one_that_was_left_behind_is_removed_by_the_next(root: Path) -> None:
    os.mkdir(root / ".git", PLACEHOLDER_MODE)

    with placeholders([root / ".git"]):
        pass

    assert not (root / ".git").exists()


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_an_empty_directory_of_somebody_stays(root: Path, mode: int) -> None:
    (root / ".git").mkdir(mode=mode)
    with placeholders([root / ".git"]):
        pass
    assert (root / ".git").is_dir()


def test_what_was_put_into_one_stays(root: Path) -> None:
    with placeholders([root / ".tui-agent"]):
        (root / ".tui-agent" / "config.toml").write_text("x", "utf-8")

    assert (root / ".tui-agent" / "config.toml").read_text("utf-8") == "x"


def test_files_and_links_are_left_as_they_are(root: Path) -> None:
    (root / ".git").write_text("gitdir: x", "utf-8")
    (root / "link").symlink_to("nowhere")

    with placeholders([root / ".git", root / "link"]):
        pass

    assert sorted(os.listdir(root)) == [".git", "link"]


def test_what_cannot_be_made_is_an_error(root: Path) -> None:
    with pytest.raises(OSError, match="too long"), placeholders([root / ("x" * 300)]):
        pass


def test_it_is_there_for_each_of_many_that_come_and_go(root: Path) -> None:
    missed: list[int] = []

    def use(number: int) -> None:
        for _ in range(200):
            with placeholders([root / ".git"]):
                if not (root / ".git").is_dir():
                    missed.append(number)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not missed
    assert os.listdir(root) == []
