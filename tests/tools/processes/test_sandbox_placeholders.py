"""Placeholders for directories that do not exist: they exist exactly as long as they are needed."""

import os
import threading
from pathlib import Path

import pytest

from tui_agent.tools.processes.sandbox import PLACEHOLDER_MODE, clear_placeholders, placeholder_path, placeholders


def test_a_missing_directory_exists_while_it_is_needed(root: Path) -> None:
    (root / "kept").mkdir()

    with placeholders([root / "kept", root / "missing"]) as impossible:
        assert not impossible
        assert sorted(os.listdir(root)) == ["kept", "missing"]

    assert os.listdir(root) == ["kept"]


def test_the_topmost_missing_directory_becomes_the_placeholder(root: Path) -> None:
    assert placeholder_path(root / "a" / "b" / "c") == root / "a"
    with placeholders([root / "a" / "b" / "c"]):
        assert os.listdir(root / "a") == []
    assert os.listdir(root) == []


def test_the_last_user_removes_it(root: Path) -> None:
    with placeholders([root / ".git"]):
        with placeholders([root / ".git"]):
            assert (root / ".git").is_dir()
        assert (root / ".git").is_dir()
    assert not (root / ".git").exists()


def test_one_left_behind_is_removed_by_the_next_user(root: Path) -> None:
    os.mkdir(root / ".git", PLACEHOLDER_MODE)

    with placeholders([root / ".git"]):
        pass

    assert not (root / ".git").exists()


def test_those_left_behind_are_removed_at_the_next_start(root: Path) -> None:
    os.mkdir(root / ".claude", PLACEHOLDER_MODE)
    os.mkdir(root / ".git")

    clear_placeholders(root / name for name in (".claude", ".git", ".mcp.json"))

    assert os.listdir(root) == [".git"]


@pytest.mark.parametrize("mode", [0o755, 0o700])
def test_a_real_empty_directory_stays(root: Path, mode: int) -> None:
    (root / ".git").mkdir(mode=mode)
    with placeholders([root / ".git"]):
        pass
    assert (root / ".git").is_dir()


def test_a_placeholder_with_files_stays(root: Path) -> None:
    with placeholders([root / ".tui-agent"]):
        (root / ".tui-agent" / "config.toml").write_text("x", "utf-8")

    assert (root / ".tui-agent" / "config.toml").read_text("utf-8") == "x"


def test_existing_files_and_links_stay(root: Path) -> None:
    (root / ".git").write_text("gitdir: x", "utf-8")
    (root / "link").symlink_to("nowhere")

    with placeholders([root / ".git", root / "link"]):
        pass

    assert sorted(os.listdir(root)) == [".git", "link"]


def test_a_placeholder_that_cannot_be_created_is_an_error(root: Path) -> None:
    with pytest.raises(OSError, match="too long"), placeholders([root / ("x" * 300)]):
        pass


def test_it_exists_for_each_of_many_concurrent_users(root: Path) -> None:
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
