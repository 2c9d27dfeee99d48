"""The program that searches if ripgrep is not installed."""

import json
import os
from pathlib import Path

import pytest

from tui_agent.tools.search import search_worker


def search(*files: Path, pattern: str = "foo", mode: str = "content", limit: int = 100) -> tuple[int, bytes]:
    written: list[bytes] = []
    options = {"pattern": pattern, "mode": mode, "ignore_case": False, "limit": limit}
    code = search_worker.main([json.dumps(options), *map(str, files)], written.append)
    return code, b"".join(written)


@pytest.fixture
def file(root: Path) -> Path:
    path = root / "f"
    path.write_bytes(b"foo\nbar\na foo\n")
    return path


def test_only_the_start_of_an_endless_line_is_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "_LONGEST_LINE", 10)
    path = root / "f"
    path.write_bytes(b"x foo" + b"x" * 50 + b"\n" + b"x" * 50 + b"foo\nfoo\n")

    assert search(path, mode="count") == (0, str(path).encode() + b"\0" + b"2\n")


def test_only_regular_files_are_opened_and_no_link_is_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("foo\n")
    links = file.parent / "link", file.parent / "d"
    links[0].symlink_to(tmp_path / "outside" / "f")
    links[1].symlink_to(tmp_path / "outside")
    os.mkfifo(file.parent / "pipe")

    found = search(links[0], links[1] / "f", file.parent / "pipe", Path("/dev/null"), file, mode="files_with_matches")

    assert found == (0, str(file).encode() + b"\0")
