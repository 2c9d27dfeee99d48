"""Files with long output: bounded, and never the cause of a failure."""

import errno
import os
import threading

import pytest

from tui_agent.tools.processes.spool_file import SpoolBudget, SpoolFile
from tui_agent.tools.workspace import Workspace


def test_keeps_bytes_up_to_its_limit(workspace: Workspace) -> None:
    spool = SpoolFile(workspace.new_spool_file, limit=5)
    for data in (b"123", b"456", b"789"):
        spool.write(data)
    spool.close()

    assert spool.path is not None
    assert spool.path.read_bytes() == b"12345"
    assert spool.problem == "only the first 5 bytes were saved"


def test_a_full_disk_is_reported_and_does_not_raise(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_files_from_earlier_runs_of_the_session_count(workspace: Workspace) -> None:
    before = SpoolFile(workspace.new_spool_file)
    before.write(b"123456")
    before.close()
    (workspace.spool_dir / "something-else").write_bytes(b"x" * 100)
    (workspace.spool_dir / "output-link").symlink_to(workspace.spool_dir / "something-else")

    budget = SpoolBudget(workspace.spool_dir, limit=1_000)

    assert budget.take(2_000) == 1_000 - 6 - len(os.fspath(workspace.spool_dir / "something-else"))


def test_bytes_that_could_not_be_written_are_not_counted(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = SpoolBudget(workspace.spool_dir, limit=10)
    spool = SpoolFile(workspace.new_spool_file, budget=budget)

    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", write)
    spool.write(b"123456")
    monkeypatch.undo()

    assert spool.problem == "No space left on device"
    assert budget.take(100) == 10


def test_threads_together_never_exceed_the_limit(workspace: Workspace) -> None:
    budget = SpoolBudget(workspace.spool_dir, limit=100_000)
    spools = [SpoolFile(workspace.new_spool_file, budget=budget) for _ in range(5)]

    def flood(spool: SpoolFile) -> None:
        for _ in range(100):
            spool.write(b"y\n" * 500)
        spool.close()

    threads = [threading.Thread(target=flood, args=(spool,)) for spool in spools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(file.stat().st_size for file in workspace.spool_dir.iterdir()) == 100_000
    assert any(spool.problem for spool in spools)
