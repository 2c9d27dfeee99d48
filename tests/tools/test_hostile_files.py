"""Hostile files: no call hangs or follows a new link, and each error names the cause."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.file_modes import enforce_file_modes
from tui_agent.protocol.errors import ToolError
from tui_agent.protocol.tool import JudgedTarget, ToolContext
from tui_agent.tools.edit_tools import EditTool, WriteTool
from tui_agent.tools.glob_tool import GlobTool
from tui_agent.tools.grep_tool import GrepTool
from tui_agent.tools.pinned_directory import ResolvedPath, open_file, open_regular_file
from tui_agent.tools.read_tool import ReadTool
from tui_agent.tools.search.search_engine import Ripgrep
from tui_agent.tools.workspace import Workspace

from .calls import call

TOOLS = (
    (ReadTool, {}),
    (WriteTool, {"content": "new"}),
    (EditTool, {"old_string": "old", "new_string": "new"}),
)


async def error_of(tool: Any, path: str, arguments: dict[str, str]) -> str:
    with pytest.raises(ToolError) as caught:
        await call(tool, path=path, **arguments)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "arguments"), TOOLS)
async def test_links_that_form_a_loop_and_a_slash_behind_a_file_are_reported(
    workspace: Workspace, root: Path, kind: Any, arguments: dict[str, str]
) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    (root / "a").write_text("old")

    assert "forms a loop" in await error_of(kind(workspace), "one", arguments)
    assert kind is ReadTool or "a/ ends in a slash" in await error_of(kind(workspace), "a/", arguments)


async def test_a_name_cannot_add_a_line_or_reverse_the_text(workspace: Workspace, root: Path) -> None:
    for name in ("x\nfake.py:1:old", "\u202egnp.exe", "\x1b[31m"):
        (root / name).write_text("old")

    found, listed = await call(GrepTool(workspace), pattern="old"), await call(GlobTool(workspace), pattern="*")

    assert found.text.splitlines() == ["\\x1b[31m:1:old", "x\\x0afake.py:1:old:1:old", "\\u202egnp.exe:1:old"]
    assert listed.text.splitlines() == ["\\x1b[31m", "x\\x0afake.py:1:old", "\\u202egnp.exe"]


@pytest.mark.parametrize(("kind", "arguments"), TOOLS)
async def test_the_judged_file_is_opened_and_no_link_created_since(
    workspace: Workspace, root: Path, tmp_path: Path, kind: Any, arguments: dict[str, str]
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a").write_text("old secret")
    (root / "d").symlink_to(tmp_path / "outside")
    judged = ToolContext("1", "tool", targets=(JudgedTarget(str(root / "d" / "a")),))

    with pytest.raises(ToolError, match="a part of the path is a file or a symbolic link"):
        await kind(workspace).execute({"path": "d/a", **arguments}, judged)

    assert (tmp_path / "outside" / "a").read_text() == "old secret"


SEARCHES = (
    (GlobTool, {"pattern": "**"}),
    (GrepTool, {"pattern": "secret"}),
    (GrepTool, {"pattern": "secret", "output_mode": "count"}),
)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Directory outside the workspace, with the same names as inside."""
    directory = tmp_path / "outside"
    (directory / "d").mkdir(parents=True)
    (directory / "a").write_text("secret")
    (directory / "d" / "a").write_text("secret")
    return directory


@pytest.mark.parametrize(("kind", "arguments"), SEARCHES)
@pytest.mark.parametrize("path", ["d", "./x/../d", "d/d"], ids=["itself", "by a detour", "its parent"])
async def test_a_search_does_not_start_behind_a_link_created_since(
    workspace: Workspace,
    root: Path,
    outside: Path,
    engine: Ripgrep | None,
    kind: Any,
    arguments: dict[str, str],
    path: str,
) -> None:
    (root / "x").mkdir()
    (root / "d").symlink_to(outside)
    judged = ToolContext("1", "tool", targets=(JudgedTarget(os.path.normpath(root / path)),))

    with pytest.raises(ToolError, match="a part of the path is a file or a symbolic link"):
        await kind(workspace).execute({"path": path, **arguments}, judged)


@pytest.mark.parametrize(("kind", "arguments"), SEARCHES)
@pytest.mark.parametrize("shown", ["", "d"])
async def test_a_search_starts_in_the_judged_directory_or_nowhere(
    workspace: Workspace, root: Path, engine: Ripgrep | None, kind: Any, arguments: dict[str, str], shown: str
) -> None:
    (root / "d").mkdir()
    (root / "d" / "a").write_text("secret")
    other = os.stat(root / shown)
    judged = JudgedTarget(str(root / "d"), ((str(root / shown), other.st_dev, other.st_ino + 1),))

    with pytest.raises(ToolError, match="was replaced after this call was allowed; nothing was done"):
        await kind(workspace).execute({"path": "d", **arguments}, ToolContext("1", "tool", targets=(judged,)))


async def test_a_single_file_is_not_searched_behind_a_link_created_since(
    workspace: Workspace, root: Path, outside: Path, engine: Ripgrep | None
) -> None:
    (root / "a").symlink_to(outside / "a")
    judged = ToolContext("1", "tool", targets=(JudgedTarget(str(root / "a")),))

    with pytest.raises(ToolError, match="a is a symbolic link"):
        await GrepTool(workspace).execute({"path": "a", "pattern": "secret"}, judged)


@pytest.mark.parametrize(("kind", "arguments"), SEARCHES)
async def test_a_directory_that_may_not_be_listed_is_an_error_and_not_an_empty_one(
    workspace: Workspace, root: Path, engine: Ripgrep | None, kind: Any, arguments: dict[str, str]
) -> None:
    (root / "d").mkdir(mode=0o100)

    with enforce_file_modes(), pytest.raises(ToolError, match=r"cannot (list|search) d: permission denied"):
        await call(kind(workspace), path="d", **arguments)


@pytest.mark.parametrize(("kind", "arguments"), TOOLS)
@pytest.mark.parametrize("replaced", ["file", "directory"])
async def test_only_the_judged_file_is_opened(
    workspace: Workspace, root: Path, kind: Any, arguments: dict[str, str], replaced: str
) -> None:
    (root / "d").mkdir()
    path = root / "d" / "a"
    path.write_text("old")
    shown = path if replaced == "file" else path.parent
    judged = JudgedTarget(str(path), ((str(shown), os.stat(shown).st_dev, os.stat(shown).st_ino + 1),))

    with pytest.raises(ToolError, match="was replaced after this call was allowed; nothing was done"):
        await kind(workspace).execute({"path": "d/a", **arguments}, ToolContext("1", "tool", targets=(judged,)))

    assert path.read_text() == "old"


REFUSED: dict[str, tuple[type[Exception], str | None]] = {
    # path: error, words
    "pipe": (ToolError, "pipe is a named pipe"),
    "socket": (ToolError, "is a socket"),
    "real": (ToolError, "is a directory"),
    "file-link": (ToolError, "symbolic link"),
    "/dev/zero": (ToolError, "is a device"),
    "real/a.txt": (ToolError, "was replaced after this call was allowed"),
    "link/a.txt": (NotADirectoryError, None),
    "real/a.txt/b": (NotADirectoryError, None),
    "missing": (FileNotFoundError, None),
}


@pytest.mark.parametrize("blocks", [True, False])
async def test_only_regular_files_are_opened_and_no_new_link_is_followed(root: Path, blocks: bool) -> None:
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_bytes(b"text")
    (root / "link").symlink_to("real")
    (root / "file-link").symlink_to("real/a.txt")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))

    async def content_of(name: str, place: ResolvedPath | None = None) -> bytes:
        if blocks:
            with open_regular_file(root / name, name, place=place) as (descriptor, _):
                return os.read(descriptor, 10)
        async with open_file(root / name, name, place=place) as (file, _):
            return await file.read(10)

    assert await content_of("real/a.txt") == b"text"
    before = len(os.listdir("/proc/self/fd"))
    replaced = ResolvedPath(root / "real" / "a.txt", {str(root / "real" / "a.txt"): (0, 0)})
    for name, (error, words) in REFUSED.items():
        with pytest.raises(error, match=words):
            await content_of(name, replaced)
    assert len(os.listdir("/proc/self/fd")) == before
