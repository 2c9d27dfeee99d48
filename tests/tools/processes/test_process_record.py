"""The commands of a killed program are found by their records, and no other process is."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.table import table
from tests.tools.calls import eventually
from tests.tools.processes.test_process_tree import lives
from tui_agent.protocol.tool import StartedProcess
from tui_agent.tools.processes.detached_commands import end_recorded, record_of, running_of
from tui_agent.tools.processes.process_tree import TreeMark


@pytest.fixture
def left(root: Path) -> Iterator[tuple[StartedProcess, int]]:
    """A command whose shell has ended, as a killed program leaves it, and the id of its remaining process."""
    mark = TreeMark.new()
    shell = subprocess.Popen(
        ["bash", "-c", "setsid sleep 600 & echo $! > pid; wait"],
        cwd=root,
        env=mark.put_into(os.environ),
        start_new_session=True,
    )
    record = record_of(shell.pid, mark)
    assert record is not None
    assert eventually(lambda: (root / "pid").exists() and (root / "pid").read_text().endswith("\n"))
    shell.kill()
    shell.wait()
    pid = int((root / "pid").read_text())
    yield record, pid
    if lives(pid):
        os.kill(pid, signal.SIGKILL)


def test_remaining_processes_of_a_command_are_found_and_ended(left: tuple[StartedProcess, int]) -> None:
    record, pid = left

    assert [process.pid for process in running_of(record)] == [pid]
    (ended,) = end_recorded([record], grace=0.5)

    assert ended.endswith(f"(pid {pid})")
    assert eventually(lambda: not lives(pid))
    assert running_of(record) == ()
    assert end_recorded([record], grace=0.5) == ()


def test_a_command_that_still_runs_is_found_with_its_first_process(root: Path) -> None:
    mark = TreeMark.new()
    shell = subprocess.Popen(["sleep", "600"], env={}, start_new_session=True)
    record = record_of(shell.pid, mark)
    assert record is not None

    assert [process.pid for process in running_of(record)] == [shell.pid]
    end_recorded([record], grace=0.5)

    assert shell.wait(30) == -signal.SIGTERM


DAMAGED = ("", "0", "a" * 31, "a" * 33, "z" * 32, "A" * 32, "\N{ARABIC-INDIC DIGIT ONE}" * 32)
OTHERS: list[dict[str, object]] = [
    {"started": 1},
    {"boot": "another run of the system"},
    *({"mark": mark} for mark in DAMAGED),
    *({"mark": mark, "pid": 0, "started": 0, "boot": ""} for mark in DAMAGED),
]


@table("other", OTHERS)
def test_another_process_with_a_reused_id_is_left_alone_and_a_damaged_mark_names_none(other: dict[str, object]) -> None:
    innocent = subprocess.Popen(["sleep", "600"], env={"DIGITS": "0123456789abcdef" * 4}, start_new_session=True)
    try:
        record = record_of(innocent.pid, TreeMark.new())
        assert record is not None
        old = record.model_copy(update=other)

        assert running_of(old) == ()
        assert end_recorded([old], grace=0.1) == ()
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()
