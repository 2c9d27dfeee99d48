"""Opening through held directories: only regular files, and never through a new link."""

import os
import socket
from pathlib import Path

import pytest

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_file, open_regular_file


def test_only_regular_files_are_opened_and_no_new_link_is_followed(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_bytes(b"text")
    (root / "file-link").symlink_to("real/a.txt")
    (root / "link").symlink_to("real")
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))

    for name, words in (
        ("pipe", "pipe is a named pipe"),
        ("socket", "is a socket"),
        ("real", "is a directory"),
        ("file-link", "symbolic link"),
        ("/dev/zero", "is a device"),
    ):
        with pytest.raises(ToolError, match=words), open_regular_file(root / name, name):
            pass
    with pytest.raises(NotADirectoryError), open_regular_file(root / "link" / "a.txt", "a.txt"):
        pass
    with open_regular_file(root / "real" / "a.txt", "a.txt") as (descriptor, status):
        assert (os.read(descriptor, 10), status.st_size) == (b"text", 4)


def test_no_descriptor_is_left_open(root: Path) -> None:
    (root / "a.txt").write_bytes(b"text")
    before = len(os.listdir("/proc/self/fd"))

    for name in ("a.txt", "missing/a.txt", "missing", "a.txt/b"):
        try:
            with open_regular_file(root / name, name):
                pass
        except OSError:
            pass

    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_file_read_without_blocking_is_guarded_like_any_other(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_bytes(b"text")
    (root / "link").symlink_to("real")
    (root / "file-link").symlink_to("real/a.txt")
    os.mkfifo(root / "pipe")
    replaced = ResolvedPath(root / "real" / "a.txt", {str(root / "real" / "a.txt"): (0, 0)})
    before = len(os.listdir("/proc/self/fd"))

    async def open_it(name: str, place: ResolvedPath | None = None) -> None:
        async with open_file(root / name, name, place=place):
            raise AssertionError(name)

    with pytest.raises(ToolError, match="pipe is a named pipe"):
        await open_it("pipe")
    with pytest.raises(ToolError, match="is a directory"):
        await open_it("real")
    with pytest.raises(ToolError, match="symbolic link"):
        await open_it("file-link")
    with pytest.raises(NotADirectoryError):
        await open_it("link/a.txt")
    with pytest.raises(ToolError, match="was replaced after this call was allowed"):
        await open_it("real/a.txt", replaced)
    with pytest.raises(FileNotFoundError):
        await open_it("missing")
    assert len(os.listdir("/proc/self/fd")) == before
