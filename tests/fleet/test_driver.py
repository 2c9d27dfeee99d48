"""The driver's decisions: grants with epochs, saved facts, rate limits, stops, and a disk that fails."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tui_agent.fleet import unit_progress
from tui_agent.fleet.driver import QUESTION_PAUSE, FleetDriver
from tui_agent.fleet.fleet_directory import FleetDirectory, read_status
from tui_agent.fleet.unit_events import DELTAS, seq_of, type_of
from tui_agent.fleet.worker_messages import (
    CommitReported,
    DriverMessage,
    EventsReported,
    UnitAbandoned,
    UnitCancelled,
    UnitClaimed,
    UnitEnded,
    UnitGranted,
    UnitInput,
    UnitRefused,
    WorkerLost,
    WorkerMessage,
)
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import ApprovalRequested, MessageDelta, RunEnded, StepRetry, StepStarted
from tui_agent.protocol.fleet_records import FleetStatus, UnitTask
from tui_agent.protocol.trial import ProposedChanges, ProposedFile

from .test_unit_progress import line_of

STEP = StepStarted(index=0, kind="initial")
RUN_END = RunEnded(reason="done", final_text="Done.")
Sent = TypeVar("Sent", bound=DriverMessage)


class HandBackend:
    """A backend whose workers are the test."""

    places = 2

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.sent: asyncio.Queue[tuple[str, DriverMessage]] = asyncio.Queue()
        self._messages: asyncio.Queue[WorkerMessage] = asyncio.Queue()

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        yield

    async def submit(self, unit_id: str) -> None:
        self.submitted.append(unit_id)

    async def send(self, unit_id: str, message: DriverMessage) -> None:
        self.sent.put_nowait((unit_id, message))

    async def messages(self) -> AsyncIterator[WorkerMessage]:
        while True:
            yield await self._messages.get()

    def report(self, *messages: WorkerMessage) -> None:
        for message in messages:
            self._messages.put_nowait(message)

    @property
    def waiting(self) -> int:
        """Messages that the driver has not taken."""
        return self._messages.qsize()

    async def next(self, kind: type[Sent]) -> tuple[str, Sent]:
        unit_id, message = await self.sent.get()
        assert isinstance(message, kind), message
        return unit_id, message


class DrivenFleet:
    """A running driver with the backend of the test."""

    def __init__(self, out: Path, count: int, verify: str = "") -> None:
        ids = [str(number) for number in range(1, count + 1)]
        tasks = tuple(UnitTask(id=unit_id, task=unit_id, prompt="Go", repo="/r", verify=verify) for unit_id in ids)
        self.directory = FleetDirectory.create(out, tasks, {"options": ["--demo"]})
        self.backend = HandBackend()
        self.driver = FleetDriver(self.directory, self.backend, tasks)
        self.driver.load()

    async def run(self, play: Callable[[], Awaitable[None]]) -> FleetStatus:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.driver.run(_serve_no_one))
            await play()
        self.directory.close()
        return running.result()

    async def granted(self, unit_id: str, worker: str = "w") -> UnitGranted:
        self.backend.report(UnitClaimed(unit_id, f"claim-{worker}", worker, sandboxed=False))
        answered, grant = await self.backend.next(UnitGranted)
        assert (answered, grant.claim) == (unit_id, f"claim-{worker}")
        return grant

    async def saved(self, unit_id: str, epoch: int, *lines: bytes) -> None:
        self.backend.report(EventsReported(unit_id, epoch, lines))
        last = max(seq_of(line) for line in lines if type_of(line) not in DELTAS)
        while self.driver.units[unit_id].last_seq < last:
            await asyncio.sleep(0)


async def _serve_no_one(_: FleetDriver) -> None:
    return


async def test_a_second_claim_is_a_resume_and_the_first_worker_counts_no_more(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)

    async def play() -> None:
        first = await fleet.granted("1", "a")
        assert (first.epoch, first.journal, first.base, first.options) == (1, b"", "", ("--demo",))
        fleet.backend.report(CommitReported("1", 1, "base-commit", b""))
        await fleet.saved("1", 1, line_of(STEP, 1), line_of(MessageDelta(message_id="m", kind="text", delta="x"), 2))
        fleet.backend.report(CommitReported("1", 1, "next", b"bundle", (line_of(STEP, 3),)))
        fleet.backend.report(WorkerLost("a", "it was killed"))

        second = await fleet.granted("1", "b")
        assert (second.epoch, second.base, second.bundles) == (2, "base-commit", (b"bundle",))
        assert second.journal.splitlines() == [line_of(STEP, 1), line_of(STEP, 3)], "deltas are not facts"

        fleet.backend.report(EventsReported("1", 1, (line_of(STEP, 4),)), UnitEnded("1", 1, 0, ""))
        await fleet.saved("1", 2, line_of(STEP, 3), line_of(STEP, 5))
        fleet.backend.report(UnitEnded("1", 2, 0, ""))

    status = await fleet.run(play)

    (row,) = status.rows
    assert (row.state, row.epoch, [span.worker for span in row.spans]) == ("done", 2, ["a", "b"])
    journal = (tmp_path / "out/units/1/journal.jsonl").read_bytes()
    assert journal.splitlines() == [line_of(STEP, 1), line_of(STEP, 3), line_of(STEP, 5)]
    assert read_status(tmp_path / "out").notices == ("worker a is lost: it was killed",)


async def test_the_time_limit_counts_what_lost_workers_and_drivers_used_since_the_last_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [1_000_000]
    monkeypatch.setattr(unit_progress, "now_ms", lambda: times[0])
    fleet = DrivenFleet(tmp_path / "out", 2)

    async def play() -> None:
        assert (await fleet.granted("1", "a")).used == 0
        times[0] += 20_000
        fleet.backend.report(WorkerLost("a", "it was killed"))
        assert (await fleet.granted("1", "b")).used == 20
        assert (await fleet.granted("2", "c")).used == 0
        times[0] += 500_000
        fleet.backend.report(UnitEnded("2", 1, 0, "it failed"))
        while not fleet.driver.units["2"].row.ended:
            await asyncio.sleep(0)

    running = asyncio.create_task(fleet.run(play))
    while not fleet.driver.units["2"].row.ended:
        await asyncio.sleep(0)
    await asyncio.sleep(0.1)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    fleet.directory.close()
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file():
            os.utime(file, (1_050, 1_050))
    times[0] += 9_000_000
    directory, backend = FleetDirectory.open(tmp_path / "out"), HandBackend()
    again = FleetDriver(directory, backend, tuple(unit.row.unit for unit in fleet.driver.units.values()))
    again.load()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(again.run(_serve_no_one))
        for unit_id, used in (("1", 20 + 30), ("2", 0)):
            backend.report(UnitClaimed(unit_id, "c", "w", sandboxed=False))
            _, grant = await backend.next(UnitGranted)
            assert grant.used == used
            backend.report(UnitEnded(unit_id, 3 if unit_id == "1" else 2, 0, ""))
    directory.close()
    assert [span.worker for span in again.status.rows[0].spans] == ["a", "b", "w"]
    assert [span.lost for span in again.status.rows[0].spans] == [True, True, False]


async def test_a_stopped_unit_takes_no_claim_and_ends_that_fail_have_their_reason(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 3)

    async def play() -> None:
        await fleet.driver.stop(("1",))
        fleet.backend.report(UnitClaimed("1", "late", "w", sandboxed=False))
        assert await fleet.backend.next(UnitRefused) == ("1", UnitRefused("late"))
        await fleet.granted("2")
        await fleet.granted("3")
        fleet.backend.report(UnitEnded("2", 1, 1, "it broke"), UnitAbandoned("3", "workers died 4 times"))

    status = await fleet.run(play)

    ends = [("stopped", "stopped"), ("failed", "it broke"), ("failed", "workers died 4 times")]
    assert [(row.state, row.reason) for row in status.rows] == ends


async def test_a_rate_limit_of_one_unit_pauses_all(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 3)
    limit = StepRetry(attempt=2, max=4, wait_s=1.5, error_kind="rate_limit", status=429)

    async def play() -> None:
        for unit_id in ("1", "2"):
            await fleet.granted(unit_id)
            await fleet.saved(unit_id, 1, line_of(STEP, 1))
        fleet.backend.report(EventsReported("1", 1, (line_of(limit, 2),)))
        paused = dict([await fleet.backend.next(UnitInput), await fleet.backend.next(UnitInput)])
        assert {name: json.loads(message.line) for name, message in paused.items()} == {
            unit_id: {"type": "pause", "seconds": 2.0} for unit_id in ("1", "2")
        }
        assert fleet.driver.paused_until
        await fleet.granted("3")
        assert not fleet.driver.paused_until, "a claim waits"
        fleet.backend.report(*(UnitEnded(unit_id, 1, 0, "") for unit_id in ("1", "2", "3")))

    status = await fleet.run(play)

    assert status.notices == ("a rate limit was met; the fleet waits 2 s",)


async def test_no_message_is_taken_while_the_disk_fails(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)

    async def play() -> None:
        await fleet.granted("1")
        obstacle = fleet.directory.unit("1") / "journal.jsonl"
        obstacle.mkdir()
        fleet.backend.report(EventsReported("1", 1, (line_of(STEP, 1),)))
        while not fleet.driver.status.notices:
            await asyncio.sleep(0.01)
        assert "cannot be written" in fleet.driver.status.notices[0]
        fleet.backend.report(UnitEnded("1", 1, 0, ""))
        await asyncio.sleep(0.1)
        assert fleet.backend.waiting == 1
        obstacle.rmdir()

    await fleet.run(play)

    assert (tmp_path / "out/units/1/journal.jsonl").read_bytes() == line_of(STEP, 1) + b"\n"


async def test_without_a_viewer_questions_are_denied(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)
    fleet.driver.denies_questions = True
    question = ApprovalRequested(request_id="ask_1", call_id="c", digest="d", tool="bash", args={})
    changes = ProposedChanges(layer="l1", files=(ProposedFile(path="a", kind="added", sort="workspace"),))
    proposal = question.model_copy(update={"request_id": "ask_2", "changes": changes})

    async def play() -> None:
        await fleet.granted("1")
        await fleet.saved("1", 1, line_of(question, 1))
        _, answer = await fleet.backend.next(UnitInput)
        assert json.loads(answer.line)["decision"] == "deny"
        await fleet.saved("1", 1, line_of(proposal, 2))
        _, answer = await fleet.backend.next(UnitInput)
        assert json.loads(answer.line)["by"] == "nobody", "rules and mode decide about changes"
        assert await fleet.driver.send_input("1", {"type": "stop"}) == ""
        assert await fleet.driver.send_input("9", {"type": "stop"}) == "there is no unit 9"
        await fleet.backend.next(UnitInput)
        fleet.backend.report(UnitEnded("1", 1, 0, ""))

    await fleet.run(play)

    assert await fleet.driver.send_input("1", {"type": "stop"}) == "unit 1 does not run"


async def test_a_retry_continues_what_is_not_done(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 3, verify="make test")

    async def play() -> None:
        for unit_id in ("1", "2"):
            await fleet.granted(unit_id)
            await fleet.saved(unit_id, 1, line_of(STEP, 1), line_of(RUN_END, 2))
        fleet.backend.report(UnitEnded("1", 1, 0, "", verified=True))
        fleet.backend.report(UnitEnded("2", 1, 0, "verify ended with code 1", verified=False, verify_output="red"))
        await fleet.granted("3")
        fleet.backend.report(UnitEnded("3", 1, None, "no such repository"))

    await fleet.run(play)
    directory = FleetDirectory.open(tmp_path / "out")
    backend = HandBackend()
    again = FleetDriver(directory, backend, tuple(unit.row.unit for unit in fleet.driver.units.values()))
    again.load()

    assert [unit.row.state for unit in again.units.values()] == ["done", "queued", "queued"]
    assert [unit.row.epoch for unit in again.units.values()] == [1, 1, 1]
    assert [unit.row.step for unit in again.units.values()] == [1, 1, 0]
    assert not any(span.lost for unit in again.units.values() for span in unit.row.spans)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(again.run(_serve_no_one))
        backend.report(UnitClaimed("2", "c", "w", sandboxed=False))
        _, grant = await backend.next(UnitGranted)
        assert (grant.epoch, grant.journal) == (2, line_of(STEP, 1) + b"\n" + line_of(RUN_END, 2) + b"\n")
        assert "red" in grant.note
        await again.stop(("3",))
        backend.report(UnitEnded("2", 2, 0, "", verified=True))
    directory.close()

    assert backend.submitted == ["2", "3"]
    assert [row.state for row in again.status.rows] == ["done", "done", "stopped"]


async def test_a_stop_between_claim_and_grant_stops_the_unit(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)

    async def play() -> None:
        obstacle = tmp_path / "out" / "driver.jsonl"
        kept = obstacle.read_bytes()
        obstacle.unlink()
        obstacle.mkdir()
        fleet.backend.report(UnitClaimed("1", "c", "w", sandboxed=False))
        while fleet.driver.status.rows[0].state != "starting":
            await asyncio.sleep(0)
        await fleet.driver.stop(now=True)
        obstacle.rmdir()
        obstacle.write_bytes(kept)
        await fleet.backend.next(UnitCancelled)
        assert await fleet.backend.next(UnitRefused) == ("1", UnitRefused("c"))

    status = await fleet.run(play)

    assert [(row.state, row.reason) for row in status.rows] == [("stopped", "stopped")]


async def test_questions_under_an_id_of_another_unit_or_start_are_denied_too(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 2)
    fleet.driver.denies_questions = True
    question = ApprovalRequested(request_id="ask_1", call_id="c", digest="d", tool="bash", args={})

    async def play() -> None:
        for unit_id in ("1", "2"):
            await fleet.granted(unit_id, f"w{unit_id}")
            await fleet.saved(unit_id, 1, line_of(question, 1))
            answered, _ = await fleet.backend.next(UnitInput)
            assert answered == unit_id
        fleet.backend.report(WorkerLost("w1", "it was killed"))
        await fleet.granted("1", "w3")
        await asyncio.sleep(1.2 * QUESTION_PAUSE)
        await fleet.saved("1", 2, line_of(question, 2))
        answered, _ = await fleet.backend.next(UnitInput)
        assert answered == "1"
        fleet.backend.report(UnitEnded("1", 2, 0, ""), UnitEnded("2", 1, 0, ""))

    await fleet.run(play)


async def test_a_driver_that_died_leaves_no_open_questions_and_a_damaged_end_is_named(tmp_path: Path) -> None:
    fleet = DrivenFleet(tmp_path / "out", 1)
    question = ApprovalRequested(request_id="ask_1", call_id="c", digest="d", tool="bash", args={})
    fleet.directory.append_events("1", [line_of(question, 1)])
    fleet.driver.load()
    assert fleet.driver.questions == ()

    fleet.directory.record({"type": "ended", "unit": "1", "row": {"state": "bogus"}})
    with pytest.raises(ConfigurationError, match="the end of unit 1 cannot be read"):
        fleet.driver.load()
    fleet.directory.close()
