"""The file of a start page: private, bounded, and refused if it holds anything but text and colours."""

import os
from pathlib import Path

from tests.support.screen_buffer import ScreenBuffer
from tests.support.table import table
from tui_agent.prelude.kept_frame import LARGEST_FILE, MOST_FILES, StartFrame, read_frame, write_frame

ROWS = ["\x1b[38;2;1;2;3;48;5;9mtitle     \x1b[0m", " › \x1b[7mA\x1b[0msk   ", " ready    "]
FRAME = StartFrame(ROWS, 10, (1, 3, 7), "\x1b[1m", "\x1b[7m")


def decoded(data: bytes) -> StartFrame | None:
    return StartFrame.decoded(data, 10, 3)


def screen_after(output: str) -> list[str]:
    screen = ScreenBuffer(10, 3)
    screen.feed(output)
    return screen.lines


def test_a_frame_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "start" / "page"
    write_frame(str(path), FRAME)

    found = read_frame(str(path), 10, 3)

    assert found is not None
    assert found.painted("") == FRAME.painted("")
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [entry.name for entry in path.parent.iterdir()] == ["page"]


def test_text_is_painted_over_the_composer_and_the_page_comes_back_behind_it() -> None:
    assert screen_after(FRAME.painted("漢a")) == ["title", " › 漢a", " ready"]
    assert screen_after(FRAME.painted("") + FRAME.echoed("ab") + FRAME.echoed("")) == ["title", " › Ask", " ready"]
    blank = FRAME.without_text()
    assert screen_after(blank.painted("")) == ["", " › Ask", ""]
    assert blank.rows[0] == f"\x1b[38;2;1;2;3;48;5;9m{' ' * 10}\x1b[0m"


@table("size", [(10, 3), (80, 24), (3, 1), (1, 1), (2, 9), (0, 0)])
def test_without_a_file_there_is_a_row_to_type_into(size: tuple[int, int]) -> None:
    empty = StartFrame.empty(*size)

    assert len(empty.rows) == size[1]
    empty.painted("text")
    if size == (10, 3):
        assert screen_after(empty.painted("ab")) == ["", " › ab", ""]


@table(
    "row",
    [
        "\x1b[2J", "\x1b[1;1H", "\x1b]52;c;aGk=\x07", "\x1b[6n", "\x1b[?1049l", "\x1bc", "a\x07b", "a\rb", "\x9b1m",
        "\x1b[1", "\u202e",
    ],
)  # fmt: skip
def test_a_file_with_anything_but_text_and_colours_is_refused_and_not_written(tmp_path: Path, row: str) -> None:
    write_frame(str(tmp_path / "page"), StartFrame([row], 10, (0, 3, 7), "", ""))
    assert list(tmp_path.iterdir()) == []
    assert decoded(StartFrame([row, *ROWS[1:]], 10, (1, 3, 7), "\x1b[1m", "").encoded()) is None
    assert decoded(StartFrame(ROWS, 10, (1, 3, 7), row, "").encoded()) is None
    assert decoded(StartFrame(ROWS, 10, (1, 3, 7), "", row).encoded()) is None


@table(
    "data",
    [
        b"",
        b"\n\n\n",
        b"\xff" * 40,
        FRAME.encoded()[1:],
        FRAME.encoded() + b"\n",
        StartFrame(ROWS, 11, (1, 3, 7), "", "").encoded(),
        StartFrame(ROWS, 10, (3, 3, 7), "", "").encoded(),
        StartFrame(ROWS, 10, (1, 3, 8), "", "").encoded(),
        StartFrame(ROWS[:2], 10, (1, 3, 7), "", "").encoded(),
        StartFrame(ROWS, 10, (-1, 3, 7), "", "").encoded(),
        StartFrame(ROWS, 10, (1, 3, 7), "words", "").encoded(),
    ],
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    assert decoded(data) is None


def test_only_a_private_file_of_moderate_size_is_read(tmp_path: Path) -> None:
    path, link, pipe = tmp_path / "page", tmp_path / "link", tmp_path / "pipe"
    write_frame(str(path), FRAME)
    link.symlink_to(path)
    os.mkfifo(pipe)

    assert [read_frame(str(each), 10, 3) for each in (link, pipe, tmp_path, tmp_path / "none")] == [None] * 4
    path.chmod(0o622)
    assert read_frame(str(path), 10, 3) is None
    path.chmod(0o600)
    path.write_bytes(FRAME.encoded() + b" " * LARGEST_FILE)
    assert read_frame(str(path), 10, 3) is None


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    for number in range(MOST_FILES + 3):
        path = tmp_path / f"page {number}"
        write_frame(str(path), FRAME)
        os.utime(path, (number, number))

    left = {path.name for path in tmp_path.iterdir()}

    assert left == {f"page {number}" for number in range(3, MOST_FILES + 3)}
