"""Opening through held directories: only regular files, and never through a new link."""

import os
import socket
from pathlib import Path

import pytest

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_file, open_regular_file

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
