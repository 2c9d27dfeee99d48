"""Planned changes of files: written whole, reported, and finished even if the call is cancelled."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from tests.tools.calls import Recorded, call
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.tools.edit_tools import WriteTool
from tui_agent.tools.file_change import CHANGE_LIMIT, DIFF_LIMIT, load_file
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.workspace import Workspace


async def test_a_call_cancelled_during_the_write_reports_the_change(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    renaming, go_on = asyncio.Event(), threading.Event()
    loop, rename = asyncio.get_running_loop(), os.rename

    def slow_rename(*names: str, **options: int) -> None:
        loop.call_soon_threadsafe(renaming.set)
        go_on.wait(60)
        rename(*names, **options)

    monkeypatch.setattr(os, "rename", slow_rename)
    recorded = Recorded()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call(WriteTool(workspace), recorded, path="a", content="new\n"))
        await renaming.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.wait([task], timeout=0)
        go_on.set()

    assert task.cancelled()
    assert (root / "a").read_text() == "new\n"
    assert [(kind, data["change"]) for kind, data in recorded.data] == [("file.changed", "created")]


async def test_a_call_that_is_already_cancelled_writes_nothing(workspace: Workspace, root: Path) -> None:
    token = CancellationToken()
    token.cancel("no more")

    with pytest.raises(OperationCancelledError, match="no more"):
        await call(WriteTool(workspace), Recorded(token), path="a", content="new")

    assert not (root / "a").exists()


async def test_a_failed_write_changes_nothing_and_reports_no_change(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(*names: str, **options: int) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "rename", rename)
    recorded = Recorded()

    with pytest.raises(ToolError, match="cannot write a; nothing was changed: Device or resource busy"):
        await call(WriteTool(workspace), recorded, path="a", content="new")

    assert list(root.iterdir()) == []
    assert recorded.data == []


async def test_a_long_diff_is_cut_in_events_and_complete_in_the_preview(workspace: Workspace) -> None:
    tool, recorded, content = WriteTool(workspace), Recorded(), "x" * 99 + "\n"

    preview = await tool.preview({"path": "a", "content": content * 1000})
    await call(tool, recorded, path="a", content=content * 1000)

    assert preview is not None
    assert preview.text.count("\n") == 1003
    assert len(recorded.data[0][1]["diff"]) < DIFF_LIMIT + 100


async def test_a_file_that_cannot_be_changed_as_text_is_refused(root: Path) -> None:
    (root / "binary").write_bytes(b"a\0b")
    with (root / "huge").open("wb") as file:
        file.truncate(CHANGE_LIMIT + 1)
    os.mkfifo(root / "pipe")
    (root / "file").touch()

    for name, words in {
        "binary": "is a binary file",
        "huge": "the limit is",
        "pipe": "is a named pipe",
        "file/below": "cannot read file/below: a part of the path is a file",
    }.items():
        with pytest.raises(ToolError, match=words):
            await load_file(ResolvedPath(root / name), name)


async def test_text_that_cannot_be_written_back_exactly_is_refused(root: Path) -> None:
    japanese = "# 設定ファイルを読み込み、データベースに接続します。\n".encode("cp932")
    # A character with two codes.
    (root / "a").write_bytes(japanese * 4 + b"\xfa\x5c\n")

    with pytest.raises(ToolError, match=r"a is not valid Shift-JIS \(CP932\) throughout, so it cannot be written back"):
        await load_file(ResolvedPath(root / "a"), "a")


async def test_what_changed_after_a_call_is_reported_once(workspace: Workspace, root: Path) -> None:
    tool = WriteTool(workspace)
    assert await tool.later_changes({"path": "a", "content": ""}) == ""
    await call(tool, path="a", content="one\n")
    arguments = {"path": "a", "content": "one\n"}
    assert await tool.later_changes(arguments) == ""

    (root / "a").write_text("two\n")
    assert "-one\n+two" in await tool.later_changes(arguments)
    assert await tool.later_changes(arguments) == ""
    (root / "a").write_bytes(b"\0")
    assert await tool.later_changes(arguments) == ""
    (root / "a").unlink()
    assert await tool.later_changes(arguments) == ""
    assert await tool.later_changes({}) == ""
    assert (await call(tool, path="a", content="three\n")).text.startswith("Created")
