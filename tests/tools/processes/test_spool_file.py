"""Files with long output: bounded, and never the cause of a failure."""

import errno
import os
import threading

import pytest

from tui_agent.tools.processes.spool_file import SpoolBudget, SpoolFile
from tui_agent.tools.workspace import Workspace


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
