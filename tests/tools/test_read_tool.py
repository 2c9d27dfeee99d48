"""The read tool on real files."""

import asyncio
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_modes import enforce_file_modes
from tests.support.table import table
from tests.tools.calls import Recorded, call, details_of
from tests.tools.test_read_images import image
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.protocol.messages import ImageBlock
from tui_agent.tools.read_tool import PAGE_CHARACTERS, PAGE_LINES, ReadTool
from tui_agent.tools.workspace import Workspace


@pytest.fixture
def read(workspace: Workspace) -> ReadTool:
    return ReadTool(workspace)


async def test_shows_lines_with_numbers(read: ReadTool, root: Path) -> None:
    (root / "a.txt").write_text("one\n\ttwo\n")

    result = await call(read, path="a.txt")

    assert result.text == "     1\tone\n     2\t\ttwo"
    assert details_of(result) == {
        "outcome": "2 lines",
        "path": str(root / "a.txt"),
        "first_line": 1,
        "last_line": 2,
        "total_lines": 2,
        "encoding": "utf-8",
    }


@pytest.mark.parametrize(("lines", "changes"), [(5, 1), (5_000, 3)])
async def test_a_small_file_is_opened_read_and_closed_in_one_change_of_threads(
    read: ReadTool, root: Path, monkeypatch: pytest.MonkeyPatch, lines: int, changes: int
) -> None:
    (root / "a.txt").write_text("line\n" * lines)
    submit, submitted = ThreadPoolExecutor.submit, list[object]()

    def counted(pool: ThreadPoolExecutor, work: Any, *arguments: Any, **named: Any) -> Any:
        submitted.append(work)
        return submit(pool, work, *arguments, **named)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)

    await call(read, path="a.txt")

    assert len(submitted) == changes


@pytest.mark.slow
async def test_reading_does_not_hold_up_the_loop(read: ReadTool, root: Path) -> None:
    (root / "a.txt").write_bytes(b"line\n" * 5_000_000)
    ticks = 0
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(read, path="a.txt"))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0)

    assert ticks > 5


async def test_pages_say_how_to_continue(read: ReadTool, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 11)))

    middle = await call(read, path="a.txt", offset=3, limit=2)
    last = await call(read, path="a.txt", offset=9)

    assert middle.text == "     3\t3\n     4\t4\n[lines 3 to 4 of 10; continue with offset=5]"
    assert last.text == "     9\t9\n    10\t10\n[lines 9 to 10, the end of the file]"


async def test_following_the_offsets_reads_everything_once(read: ReadTool, root: Path) -> None:
    lines = [f"{number} {'x' * (number % 300)}" for number in range(1, PAGE_LINES * 3)]
    (root / "a.txt").write_text("\n".join(lines))
    offset, seen = 1, list[str]()

    while offset:
        text = (await call(read, path="a.txt", offset=offset)).text
        assert len(text) < PAGE_CHARACTERS + 200
        seen += [line.split("\t", 1)[1] for line in text.split("\n") if "\t" in line]
        found = re.search(r"offset=(\d+)\]$", text)
        offset = int(found.group(1)) if found else 0

    assert seen == lines


async def test_columns_page_through_one_long_line(read: ReadTool, root: Path) -> None:
    line = "".join(f"<{number}>é" for number in range(20_000))
    (root / "a.txt").write_text(f"one\n{line}\nthree\n")
    text, column = "", 1
    while column <= len(line):
        shown = (await call(read, path="a.txt", offset=2, limit=1, column=column)).text.split("\n")[0]
        part = shown.partition("\t")[2]
        if column > 1:
            part = part.removeprefix(f"[{column - 1:,} characters …] ")
        part, _, more = part.partition(" [… ")
        text += part
        column += len(part)
        assert not more or more.endswith(f"column={column}]")

    assert text == line
    with pytest.raises(ToolError, match=f"line 2 of a.txt has only {len(line):,} characters; column=999999 is past"):
        await call(read, path="a.txt", offset=2, column=999_999)


@table(
    ("content", "shown"),
    [
        (b"a\r\nb\r\n", "     1\ta\n     2\tb\n[CR LF line endings]"),
        (b"a\r\nb\n", "     1\ta\n     2\tb\n[some lines end in CR LF]"),
        (b"\xef\xbb\xbfa\n", "     1\ta\n[UTF-8 with byte order mark]"),
        (
            "ä\n".encode("cp1252"),
            "     1\tä\n[not valid UTF-8; its encoding is not known, shown as Windows-1252]",
        ),
        (
            "äöüßäöüßäö\n".encode() + b"\xff\n",
            "     1\täöüßäöüßäö\n     2\t\\xff\n[invalid bytes are shown as \\x.. in 1 lines]",
        ),
        (
            "ä\n".encode() + b"\xff\n",
            "     1\tä\n     2\t\\xff\n[not valid UTF-8 throughout; its encoding is not known; invalid bytes are shown "
            "as \\x.. in 1 lines]",
        ),
        (b"one\rtwo\r", "     1\tone\n     2\ttwo\n[CR line endings]"),
        (b"\xff\xfeo\0\r\0t\0", "     1\to\n     2\tt\n[UTF-16-LE; CR line endings]"),
        (
            "# 这是一个用于测试的文件，返回结果。\n".encode("gbk"),
            "     1\t# 这是一个用于测试的文件，返回结果。\n[GB18030]",
        ),
        (
            "# これはテスト用のファイルです、結果\n".encode("cp932"),
            "     1\t# これはテスト用のファイルです、結果\n[Shift-JIS (CP932)]",
        ),
        (b"a\x0cb\xc2\x85c\xe2\x80\xa8d\n", "     1\ta\x0cb\x85c\u2028d"),
    ],
)
async def test_unusual_formats_are_read_and_named(read: ReadTool, root: Path, content: bytes, shown: str) -> None:
    (root / "a.txt").write_bytes(content)

    assert (await call(read, path="a.txt")).text == shown


async def test_a_binary_file_is_an_error_that_shows_its_first_bytes(read: ReadTool, root: Path) -> None:
    (root / "a.bin").write_bytes(b"\x7fELF\0\1\2")

    with pytest.raises(ToolError, match=r"a\.bin is a binary file of 7 bytes \(it begins with 7f 45 4c 46"):
        await call(read, path="a.bin")


async def test_an_image_becomes_a_block(read: ReadTool, root: Path, workspace: Workspace) -> None:
    (root / "a.png").write_bytes(image("PNG"))

    result = await call(read, path="a.png")

    assert result.text.startswith("a.png: image/png, 7×5 pixels, ")
    assert isinstance(result.content[1], ImageBlock)
    assert workspace.versions.last_seen(root / "a.png") is not None


async def test_an_unreadable_file_is_a_clear_error(read: ReadTool, root: Path) -> None:
    (root / "a.txt").touch(0o000)

    with enforce_file_modes(), pytest.raises(ToolError, match=r"cannot read a\.txt: permission denied"):
        await call(read, path="a.txt")


async def test_a_file_whose_size_the_system_does_not_know_is_read(read: ReadTool) -> None:
    assert f"Pid:\t{os.getpid()}" in (await call(read, path="/proc/self/status")).text


async def test_saved_output_is_paged_even_if_it_is_binary(read: ReadTool, workspace: Workspace) -> None:
    descriptor, path = workspace.new_spool_file()
    os.write(descriptor, b"a\0b\nc\n")
    os.close(descriptor)

    assert "     1\ta\\x00b\n     2\tc" in (await call(read, path=str(path))).text


async def test_a_cancelled_call_stops_reading(read: ReadTool, root: Path) -> None:
    (root / "a.txt").write_text("x")
    token = CancellationToken()
    token.cancel()

    with pytest.raises(OperationCancelledError):
        await call(read, Recorded(token), path="a.txt")
