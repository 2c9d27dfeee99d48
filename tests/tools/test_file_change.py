"""Planned changes of files: written whole, reported, finished even if cancelled; and the versions that are known."""

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.tools.edit_tools import WriteTool
from tui_agent.tools.file_change import CHANGE_LIMIT, DIFF_LIMIT, load_file
from tui_agent.tools.file_versions import (
    KEPT_CONTENT,
    KEPT_CONTENT_IN_ALL,
    FileVersion,
    FileVersions,
    digest_of,
)
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.workspace import Workspace

from .calls import Recorded, call


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


async def test_a_failed_or_cancelled_write_changes_nothing_and_reports_no_change(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rename(*names: str, **options: int) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    monkeypatch.setattr(os, "rename", rename)
    recorded = Recorded()

    with pytest.raises(ToolError, match="cannot write a; nothing was changed: Device or resource busy"):
        await call(WriteTool(workspace), recorded, path="a", content="new")

    token = CancellationToken()
    token.cancel("no more")
    with pytest.raises(OperationCancelledError, match="no more"):
        await call(WriteTool(workspace), Recorded(token), path="a", content="new")
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


def version(content: bytes, inode: int = 1, *, hashed: bool = True) -> FileVersion:
    digest = digest_of(content) if hashed else None
    return FileVersion(1, inode, len(content), 5, digest, content)


def test_kept_contents_are_bounded_and_hashes_are_not(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x")
    status = file.stat()
    versions = FileVersions()
    content = b"x" * KEPT_CONTENT
    count = KEPT_CONTENT_IN_ALL // KEPT_CONTENT + 3

    for number in range(count):
        versions.remember(Path(f"/{number}"), FileVersion.of(status, "hash", content))

    seen = [versions.last_seen(Path(f"/{number}")) for number in range(count)]
    assert all(one is not None and one.digest == "hash" for one in seen)
    assert [one.content is None for one in seen if one is not None] == [True] * 3 + [False] * (count - 3)


def test_only_an_unbroken_chain_of_own_changes_is_own() -> None:
    versions, path = FileVersions(), Path("/a")
    contents = [b"1", b"2", b"3"]
    one, two, three = (version(content) for content in contents)
    digests = [digest_of(content) for content in contents]
    versions.remember(path, one)

    versions.remember_own_change(path, digests[1], digests[2])
    assert not versions.is_own(path, three)
    versions.remember_own_change(path, digests[0], digests[1])
    versions.remember_own_change(path, digests[1], digests[2])
    assert [versions.is_own(path, known) for known in (one, two, three)] == [False, False, True]
    versions.remember(path, three)
    assert not versions.is_own(path, three)
