"""Atomic replacement of files: all or nothing, with mode, owner and attributes preserved."""

import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools import atomic_write
from tui_agent.tools.atomic_write import replace_file
from tui_agent.tools.pinned_directory import ResolvedPath


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_replaces_the_content_and_nothing_else(root: Path) -> None:
    path = root / "a.sh"
    path.write_text("old")
    has_attributes = True
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        has_attributes = False
    owner = (12345, 23456) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(path, *owner)
    path.chmod(0o6755)
    before = path.stat()

    status = replace_file(ResolvedPath(path), b"new", before, "a.sh")

    now = path.stat()
    assert path.read_bytes() == b"new"
    assert (stat.S_IMODE(now.st_mode), now.st_uid, now.st_gid) == (0o6755, *owner)
    assert status.st_ino == now.st_ino != before.st_ino
    assert not has_attributes or os.getxattr(path, "user.note") == b"kept"
    assert names_in(root) == ["a.sh"]


def test_creates_a_new_file_with_its_directories(root: Path) -> None:
    umask = os.umask(0o027)
    try:
        replace_file(ResolvedPath(root / "x" / "y" / "a"), b"new", None, "a")
    finally:
        os.umask(umask)

    assert (root / "x" / "y" / "a").read_bytes() == b"new"
    assert stat.S_IMODE((root / "x" / "y" / "a").stat().st_mode) == 0o640


def test_readers_see_the_old_or_the_new_content_and_never_a_part(root: Path) -> None:
    path = root / "a"
    contents = [bytes([letter]) * 1_000_000 for letter in b"ab"]
    path.write_bytes(contents[0])
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            data = path.read_bytes()
            seen.add(data[:1] + data[-1:] + str(len(data)).encode())

    reader = threading.Thread(target=look)
    reader.start()
    for number in range(50):
        replace_file(ResolvedPath(path), contents[number % 2], path.stat(), "a")
    over.set()
    reader.join()

    assert seen <= {b"aa1000000", b"bb1000000"}


def swap_for_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("victim")


@table(
    ("meddle", "words"),
    [
        (lambda path: path.write_text("other"), "changed just before"),
        (Path.unlink, "was deleted just before"),
        (swap_for_link, "is a symbolic link"),
        (None, "appeared just before it was written"),
    ],
)
def test_a_file_replaced_since_it_was_read_is_refused(
    tmp_path: Path, meddle: Callable[[Path], object] | None, words: str
) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    before = path.stat() if meddle else None
    if meddle is not None:
        meddle(path)
    names = names_in(tmp_path)

    with pytest.raises(ToolError, match=words):
        replace_file(ResolvedPath(path), b"new", before, "a")

    assert names_in(tmp_path) == names
    assert meddle is not None or path.read_text() == "old"


def test_a_change_while_the_new_content_is_written_is_noticed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a"
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        path.write_text("meanwhile")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(ToolError, match="changed just before it was written"):
        replace_file(ResolvedPath(path), b"new", path.stat(), "a")

    assert path.read_text() == "meanwhile"
    assert names_in(root) == ["a"]


def test_a_full_disk_leaves_everything_as_it_was(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a"
    path.write_text("old")

    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="No space"):
        replace_file(ResolvedPath(path), b"new", path.stat(), "a")

    monkeypatch.undo()
    assert path.read_text() == "old"
    assert names_in(root) == ["a"]


def test_a_write_protected_file_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = root / "a"
    path.write_text("old")
    path.chmod(0o444)
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "access", lambda *args, **options: False)

    with pytest.raises(ToolError, match=r"a is write-protected \(mode 0444\)"):
        replace_file(ResolvedPath(path), b"new", path.stat(), "a")


def test_a_directory_swapped_for_a_link_is_not_followed(root: Path) -> None:
    (root / "elsewhere").mkdir()
    (root / "dir").symlink_to("elsewhere")

    with pytest.raises(NotADirectoryError):
        replace_file(ResolvedPath(root / "dir" / "a"), b"new", None, "a")

    assert names_in(root / "elsewhere") == []


def test_a_file_is_whole_after_short_writes_and_on_a_system_without_attributes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, data[:2]))
    for content in (b"12345", b"new"):
        before = (root / "a").stat() if (root / "a").exists() else None
        replace_file(ResolvedPath(root / "a"), content, before, "a")
        assert (root / "a").read_bytes() == content
        monkeypatch.setattr(atomic_write.sys, "platform", "other")
