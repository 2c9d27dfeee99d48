"""The program that searches if ripgrep is not installed."""

import json
import os
from pathlib import Path

import pytest

from tui_agent.tools.search import search_worker

OPTIONS = {"pattern": "foo", "mode": "files_with_matches", "ignore_case": False, "limit": 100}


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


def test_writes_positions_names_or_counts(file: Path) -> None:
    name = str(file).encode() + b"\0"

    assert search(file) == (0, name + b"1:1:\n" + name + b"3:3:\n")
    assert search(file, mode="files_with_matches") == (0, name)
    assert search(file, mode="count") == (0, name + b"2\n")


def test_stops_at_the_limit(file: Path) -> None:
    assert search(file, limit=1) == (0, str(file).encode() + b"\0" + b"1:1:\n")


def test_finding_nothing_is_not_an_error(file: Path) -> None:
    assert search(file, pattern="zzz") == (1, b"")
    assert search(file, pattern="zzz", mode="count") == (1, b"")


def test_an_invalid_pattern_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(file, pattern="(") == (2, b"")
    assert capsys.readouterr().err.startswith("regex parse error: missing )")


def test_unreadable_files_are_skipped(file: Path) -> None:
    assert search(file.parent / "gone", file.parent, file, mode="files_with_matches")[1] == str(file).encode() + b"\0"


def test_only_the_start_of_an_endless_line_is_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "_LONGEST_LINE", 10)
    path = root / "f"
    path.write_bytes(b"x foo" + b"x" * 50 + b"\n" + b"x" * 50 + b"foo\nfoo\n")

    assert search(path, mode="count") == (0, str(path).encode() + b"\0" + b"2\n")


def test_binary_files_have_no_lines_and_byte_order_marks_are_not_text(root: Path) -> None:
    (root / "a").write_bytes(b"foo\0")
    (root / "b").write_bytes(b"\xef\xbb\xbffoo\n")

    assert search(root / "a", root / "b", pattern="^foo$", mode="files_with_matches")[1] == (
        str(root / "b").encode() + b"\0"
    )


def test_wide_text_is_read(root: Path) -> None:
    path = root / "f"
    path.write_bytes("ä\r\nfoo".encode("utf-16"))

    assert search(path, mode="count") == (0, str(path).encode() + b"\0" + b"1\n")
    path.write_bytes("foo\n".encode("utf-16"))
    assert search(path, pattern="^$") == (1, b"")


def test_only_regular_files_are_opened_and_no_link_is_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("foo\n")
    links = file.parent / "link", file.parent / "d"
    links[0].symlink_to(tmp_path / "outside" / "f")
    links[1].symlink_to(tmp_path / "outside")
    os.mkfifo(file.parent / "pipe")

    found = search(links[0], links[1] / "f", file.parent / "pipe", Path("/dev/null"), file, mode="files_with_matches")

    assert found == (0, str(file).encode() + b"\0")


def test_names_below_the_working_directory_are_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent.parent)

    code = search_worker.main([json.dumps(OPTIONS), f"./{file.parent.name}/f"], (written := list[bytes]()).append)

    assert (code, b"".join(written)) == (0, f"./{file.parent.name}/f".encode() + b"\0")


def test_no_descriptor_is_left_open(file: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))

    search(file, file.parent, file.parent / "gone", file / "f", Path("/dev/null"))

    assert len(os.listdir("/proc/self/fd")) == before
