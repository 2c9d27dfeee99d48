"""The directory of a fleet: private, held by one driver, whole after any cut."""

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.fleet.fleet_directory import (
    FleetDirectory,
    is_driven,
    read_records,
    read_status,
    read_tasks,
)
from tui_agent.fleet.unit_events import UnitLines
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.fleet_records import (
    INTERRUPTED,
    NOT_STARTED,
    FleetStatus,
    UnitQuestion,
    UnitRow,
    UnitTask,
    WorkerSpan,
)
from tui_agent.protocol.permissions import ApprovalRequest

TASK = UnitTask(id="1", task="1", prompt="Go", repo="/r")


def event(seq: int, kind: str = "step.started") -> bytes:
    """A line of a journal."""
    line = f'{{"v":1,"seq":{seq},"ts":1,"depth":0,"turn":null,"step":null,"type":"{kind}","data":{{}}}}'
    assert json.loads(line)
    return line.encode()


@pytest.fixture
def directory(tmp_path: Path) -> FleetDirectory:
    return FleetDirectory.create(tmp_path / "out", (TASK,), {"started": 1})


def test_everything_is_private(directory: FleetDirectory) -> None:
    directory.append_events("1", [event(1)])
    directory.save_commit("1", b"bundle", 1, 1)
    directory.save_result("1", {"result.json": b"{}", "patch/0001.patch": b"x"})
    directory.save_status(FleetStatus(name="out", started=1, running=True, rows=()))

    for path in (directory.path, *directory.path.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_one_driver_holds_it(directory: FleetDirectory) -> None:
    assert is_driven(directory.path)
    with pytest.raises(ConfigurationError, match="is running"):
        FleetDirectory.open(directory.path)

    directory.close()

    assert not is_driven(directory.path)
    FleetDirectory.open(directory.path).close()


def test_a_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()

    with pytest.raises(ConfigurationError, match="not empty"):
        FleetDirectory.create(tmp_path, (TASK,), {})
    with pytest.raises(ConfigurationError, match="not the directory of a fleet"):
        FleetDirectory.open(tmp_path)
    with pytest.raises(ConfigurationError):
        read_tasks(tmp_path)
    with pytest.raises(ConfigurationError):
        read_status(tmp_path)


@given(cut=st.integers(0, 400), added=st.integers(1, 3))
def test_a_cut_line_disappears_and_the_next_one_is_whole(
    tmp_path_factory: pytest.TempPathFactory, cut: int, added: int
) -> None:
    directory = FleetDirectory.create(tmp_path_factory.mktemp("fleet") / "out", (TASK,), {})
    directory.append_events("1", [event(seq) for seq in range(1, 4)])
    journal = directory.unit("1") / "journal.jsonl"
    whole = journal.read_bytes()
    os.truncate(journal, min(cut, len(whole)))
    kept = whole[:cut].count(b"\n")

    directory.append_events("1", [event(seq) for seq in range(10, 10 + added)])

    assert journal.read_bytes().splitlines() == [
        *(event(seq) for seq in range(1, kept + 1)),
        *(event(seq) for seq in range(10, 10 + added)),
    ]
    directory.close()


def test_a_commit_counts_only_with_its_events(directory: FleetDirectory) -> None:
    directory.append_events("1", [event(1), event(2)])
    directory.save_commit("1", b"first", 3, 4)
    directory.append_events("1", [event(3), event(4)])
    directory.save_commit("1", b"second", 6, 8)
    directory.append_events("1", [event(5), event(6), event(7)])

    files = directory.load_unit("1")

    assert files.bundles == (b"first",)
    assert files.last_seq == 5
    assert UnitLines(directory.unit("1")).read()[-2:] == [event(4), event(5)]
    assert directory.load_unit("1") == files


def test_units_of_a_driver_that_is_gone_are_interrupted_since_its_last_sign(directory: FleetDirectory) -> None:
    spans = (WorkerSpan(worker="a", started=1_000, ended=2_000), WorkerSpan(worker="b", started=3_000))
    tasks = [UnitTask(id=str(number), task=str(number), prompt="Go", repo="/r") for number in (1, 2, 3)]
    works = UnitRow(unit=tasks[0], state="asking", spans=spans, activity="make test")
    waits, done = UnitRow(unit=tasks[1]), UnitRow(unit=tasks[2], state="done")
    request = ApprovalRequest(request_id="ask_1", call_id="call_1", digest="d", tool="bash", args={"command": "make"})
    question = UnitQuestion(unit_id="1", request=request)
    rows = (works, waits, done)
    status = FleetStatus(name="out", started=1, running=True, rows=rows, questions=(question,), paused_until=9_000)
    directory.save_status(status)
    assert read_status(directory.path) == status
    directory.close()
    for file in (directory.path / "status.json", directory.path / "driver.jsonl"):
        os.utime(file, (5, 5))

    left = read_status(directory.path)

    assert (left.running, left.questions, left.paused_until) == (False, (), 0)
    assert [one.state for one in left.rows] == ["interrupted", "queued", "done"]
    assert [one.reason for one in left.rows] == [INTERRUPTED, NOT_STARTED, ""]
    assert [span.ended for span in left.rows[0].spans] == [2_000, 5_000]
    assert left.rows[0].spans[1].lost


def test_records_survive_a_cut(directory: FleetDirectory) -> None:
    directory.record({"type": "granted", "unit": "1"})
    with (directory.path / "driver.jsonl").open("ab") as file:
        file.write(b'{"type": "gra')

    assert [record["type"] for record in read_records(directory.path)] == ["fleet", "granted"]

    directory.record({"type": "ended"})

    assert [record["type"] for record in read_records(directory.path)] == ["fleet", "granted", "ended"]


def test_a_fleet_without_a_lock_that_can_be_written_is_read_and_not_driven(tmp_path: Path) -> None:
    out = tmp_path / "out"
    FleetDirectory.create(out, (UnitTask(id="1", task="1", prompt="Go", repo="/r"),), {}).close()
    (out / "lock").unlink()
    (out / "lock").symlink_to(tmp_path / "elsewhere")

    assert not is_driven(out)
    assert not read_status(out).running
    with pytest.raises(ConfigurationError, match="cannot be written"):
        FleetDirectory.open(out)


def test_records_that_cannot_be_read_are_reported(directory: FleetDirectory) -> None:
    (directory.path / "driver.jsonl").unlink()
    assert read_records(directory.path) == []

    (directory.path / "driver.jsonl").mkdir()
    with pytest.raises(ConfigurationError, match=r"driver\.jsonl cannot be read: Is a directory"):
        read_records(directory.path)
