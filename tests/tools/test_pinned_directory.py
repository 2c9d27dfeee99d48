"""Opening through held directories: only regular files, and never through a new link."""

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_file, open_regular_file, pinned_directory


def test_opens_a_regular_file_for_reading(root: Path) -> None:
    (root / "a.txt").write_bytes(b"text")

    with open_regular_file(root / "a.txt", "a.txt") as (descriptor, status):
        assert os.read(descriptor, 10) == b"text"
        assert status.st_size == 4


def test_the_root_directory_can_be_held() -> None:
    with pinned_directory(Path("/")) as descriptor:
        assert os.stat(".", dir_fd=descriptor).st_ino == os.stat("/").st_ino


def test_a_pipe_is_refused_without_waiting_for_a_writer(root: Path) -> None:
    os.mkfifo(root / "pipe")

    with pytest.raises(ToolError, match="pipe is a named pipe"), open_regular_file(root / "pipe", "pipe"):
        pass


def test_a_device_is_refused_without_being_opened() -> None:
    with pytest.raises(ToolError, match="is a device"), open_regular_file(Path("/dev/zero"), "/dev/zero"):
        pass


def test_a_socket_is_refused(root: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "s"))

        with pytest.raises(ToolError, match="is a socket"), open_regular_file(root / "s", "s"):
            pass


def test_a_directory_is_refused(root: Path) -> None:
    with pytest.raises(ToolError, match="is a directory"), open_regular_file(root, "work"):
        pass


def test_a_link_that_replaced_the_file_is_not_followed(root: Path) -> None:
    (root / "a.txt").write_bytes(b"text")
    (root / "link").symlink_to("a.txt")

    with pytest.raises(ToolError, match="symbolic link"), open_regular_file(root / "link", "link"):
        pass


def test_a_link_that_replaced_a_directory_is_not_followed(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "a.txt").write_bytes(b"text")
    (root / "link").symlink_to("real")

    with pytest.raises(NotADirectoryError), open_regular_file(root / "link" / "a.txt", "a.txt"):
        pass


def test_missing_directories_are_created_on_request(root: Path) -> None:
    with pytest.raises(FileNotFoundError), pinned_directory(root / "x" / "y"):
        pass

    with pinned_directory(root / "x" / "y", create=True):
        pass
    assert (root / "x" / "y").is_dir()


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


async def test_a_file_is_opened_in_a_thread_below_the_held_directory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_bytes(b"text")
    whole_open = os.open
    held: list[tuple[os.stat_result, threading.Thread]] = []

    def open_and_record(path: str, flags: int, *args: Any, dir_fd: int | None = None) -> int:
        if path == "a.txt":
            assert dir_fd is not None
            assert flags & os.O_NOFOLLOW
            held.append((os.fstat(dir_fd), threading.current_thread()))
        return whole_open(path, flags, *args, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_and_record)

    async with open_file(root / "a.txt", "a.txt") as (file, status):
        assert await file.read(10) == b"text"
        assert status.st_ino == os.stat(root / "a.txt").st_ino

    [(directory, thread)] = held
    assert os.path.samestat(directory, os.stat(root))
    assert thread is not threading.current_thread()


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
