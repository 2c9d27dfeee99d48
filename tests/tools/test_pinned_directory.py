"""Opening through held directories: only regular files, and never through a new link."""

import os
import socket
from pathlib import Path

import pytest

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import open_regular_file, pinned_directory


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
