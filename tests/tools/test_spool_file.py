"""Files with long output: bounded, and never a reason to fail."""

import errno
import os
from pathlib import Path

import pytest

from tui_agent.tools.spool_file import SpoolFile
from tui_agent.tools.workspace import Workspace


def test_nothing_is_made_before_there_are_bytes(workspace: Workspace) -> None:
    spool = SpoolFile(workspace.new_spool_file)
    spool.close()
    spool.write(b"late")

    assert (spool.path, spool.size, spool.problem) == (None, 0, "")
    assert not workspace.spool_dir.exists()


def test_keeps_bytes_up_to_its_limit(workspace: Workspace) -> None:
    spool = SpoolFile(workspace.new_spool_file, limit=5)
    for data in (b"123", b"456", b"789"):
        spool.write(data)
    spool.close()

    assert spool.path is not None
    assert spool.path.read_bytes() == b"12345"
    assert spool.problem == "only the first 5 bytes are kept"


def test_a_full_disk_is_told_and_does_not_raise(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = SpoolFile(workspace.new_spool_file)
    spool.write(b"123")

    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    spool.write(b"456")
    monkeypatch.undo()
    spool.write(b"789")

    assert spool.path is not None
    assert spool.path.read_bytes() == b"123"
    assert spool.problem == "No space left on device"


def test_a_directory_that_cannot_be_made_is_told(root: Path) -> None:
    (root / "file").touch()
    spool = SpoolFile(Workspace(root, spool_dir=root / "file").new_spool_file)
    spool.write(b"123")

    assert spool.path is None
    assert spool.problem == "File exists"
