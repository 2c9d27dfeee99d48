"""The program that searches where there is no ripgrep."""

import json
from pathlib import Path

import pytest

from tui_agent.tools import search_worker


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


def test_writes_places_names_or_counts(file: Path) -> None:
    name = str(file).encode() + b"\0"

    assert search(file) == (0, name + b"1:1:\n" + name + b"3:3:\n")
    assert search(file, mode="files_with_matches") == (0, name)
    assert search(file, mode="count") == (0, name + b"2\n")


def test_stops_at_the_limit(file: Path) -> None:
    assert search(file, limit=1) == (0, str(file).encode() + b"\0" + b"1:1:\n")


def test_nothing_found_is_no_error(file: Path) -> None:
    assert search(file, pattern="zzz") == (1, b"")
    assert search(file, pattern="zzz", mode="count") == (1, b"")


def test_a_wrong_pattern_is_an_error(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(file, pattern="(") == (2, b"")
    assert capsys.readouterr().err.startswith("regex parse error: missing )")


def test_files_that_cannot_be_read_are_passed_over(file: Path) -> None:
    assert search(file.parent / "gone", file.parent, file, mode="files_with_matches")[1] == str(file).encode() + b"\0"


def test_of_an_endless_line_the_start_is_searched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_worker, "_LONGEST_LINE", 10)
    path = root / "f"
    path.write_bytes(b"x foo" + b"x" * 50 + b"\n" + b"x" * 50 + b"foo\nfoo\n")

    assert search(path, mode="count") == (0, str(path).encode() + b"\0" + b"2\n")


def test_binary_files_have_no_lines_and_marks_are_no_text(root: Path) -> None:
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
