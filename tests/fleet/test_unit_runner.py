"""A unit on its worker: claim, files before the ends of calls, and an end in every case."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tui_agent.fleet import unit_process
from tui_agent.fleet.unit_events import type_of
from tui_agent.fleet.unit_runner import UnitHost, run_unit
from tui_agent.fleet.worker_messages import (
    CommitReported,
    DriverLink,
    DriverMessage,
    EventsReported,
    UnitCancelled,
    UnitClaimed,
    UnitEnded,
    UnitGranted,
    UnitRefused,
    WorkerMessage,
)
from tui_agent.protocol.fleet_records import UnitTask
from tui_agent.protocol.pipes import LONGEST_LINE

PROGRAM = (sys.executable, "-S", str(Path(__file__).with_name("stand_in_program.py")))


class HandLink:
    """A link whose driver is the test."""

    def __init__(self) -> None:
        self.sent: list[WorkerMessage] = []
        self.inbox: asyncio.Queue[DriverMessage] = asyncio.Queue()
        self.on_send: Callable[[WorkerMessage], None] = lambda _: None
        self.driver = DriverLink(self._send, self.inbox.get)

    async def _send(self, message: WorkerMessage) -> None:
        self.sent.append(message)
        self.on_send(message)

    @property
    def ended(self) -> UnitEnded:
        """The last message."""
        last = self.sent[-1]
        assert isinstance(last, UnitEnded)
        return last


class Worker:
    """A worker that runs one unit with the small program."""

    def __init__(self, tmp_path: Path, repo: Path) -> None:
        self.link = HandLink()
        self.link.on_send = self.answer
        self.repo = repo
        self.task = UnitTask(id="1", task="1", prompt="10", repo=str(repo))
        self.host = UnitHost("w", tmp_path, tmp_path, PROGRAM)

    def answer(self, message: WorkerMessage) -> None:
        """Grant the unit."""
        if isinstance(message, UnitClaimed):
            self.link.inbox.put_nowait(UnitGranted(message.claim, 1, self.task, ()))

    async def run(self) -> UnitEnded:
        await run_unit("1", self.link.driver, self.host)
        return self.link.ended


@pytest.fixture
def worker(tmp_path: Path, repo: Path) -> Worker:
    return Worker(tmp_path, repo)


def commits(link: HandLink) -> list[CommitReported]:
    return [message for message in link.sent if isinstance(message, CommitReported)]


async def test_the_end_of_a_call_travels_with_its_effect(worker: Worker) -> None:
    ended = await worker.run()

    base, after_call, at_end = commits(worker.link)
    assert (base.bundle, base.lines) == (b"", ())
    assert [type_of(line) for line in after_call.lines] == ["tool.ended"]
    assert after_call.bundle
    assert at_end.bundle
    told = [
        type_of(line)
        for message in worker.link.sent
        if isinstance(message, EventsReported | CommitReported)
        for line in message.lines
    ]
    assert told == ["run.started", "tool.started", "tool.ended", "tool.started", "tool.ended", "run.ended"]
    assert (ended.reason, ended.exit_code, ended.verified) == ("", 0, None)
    assert ended.changes is not None
    assert ended.changes.files == 2
    assert list(worker.host.work.glob("1-*")) == []


async def test_a_cancelled_unit_keeps_its_files_and_says_why(worker: Worker) -> None:
    worker.task = worker.task.model_copy(update={"prompt": "hang"})
    grant = worker.answer

    def answer(message: WorkerMessage) -> None:
        grant(message)
        if isinstance(message, EventsReported):
            worker.link.inbox.put_nowait(UnitCancelled("stopped"))

    worker.link.on_send = answer

    ended = await worker.run()

    assert ended.reason == "stopped"
    assert list(worker.host.work.glob("1-*")) == []


async def test_a_check_that_hangs_or_fails_fails_the_unit(worker: Worker) -> None:
    worker.task = worker.task.model_copy(update={"verify": "echo $ODD_TOKEN; ls; exit 3"})
    worker.host.environment["ODD_TOKEN"] = "secret-value"  # pyright: ignore[reportIndexIssue]

    ended = await worker.run()

    assert (ended.reason, ended.verified) == ("verify ended with code 3", False)
    assert "made.bin" in ended.verify_output
    assert "secret-value" not in ended.verify_output
    assert ended.patch, "its work is kept"

    worker.task = worker.task.model_copy(update={"verify": "setsid sleep 10 & sleep 0.2; echo Done.", "timeout": 5.0})
    ended = await worker.run()
    assert (ended.verified, ended.verify_output) == (True, "Done.\n"), "it waits for no process that was left"

    worker.task = worker.task.model_copy(update={"verify": "sleep 60 & sleep 60", "timeout": 2.0})
    ended = await worker.run()
    assert (ended.reason, ended.verified) == ("its time limit of 2 s is over", None)


async def test_rules_that_allow_need_a_sandbox_and_a_program_must_be_there(worker: Worker) -> None:
    worker.host = UnitHost("w", worker.host.work, worker.host.mirrors, ("/nowhere/tui-agent",))
    assert (await worker.run()).reason
    assert [type(message) for message in worker.link.sent] == [UnitClaimed, CommitReported, UnitEnded]

    rights = worker.task.permissions.model_copy(update={"allow": ("bash(*)",)})
    worker.task = worker.task.model_copy(update={"permissions": rights})

    ended = await worker.run()

    assert "needs a sandbox" in ended.reason
    assert ended.exit_code is None


async def test_a_resumed_unit_has_the_time_that_is_left_and_keeps_its_work(worker: Worker) -> None:
    await worker.run()
    base, after_call, _ = commits(worker.link)

    def answer(message: WorkerMessage) -> None:
        if isinstance(message, UnitClaimed):
            resumed = UnitGranted(message.claim, 2, worker.task, (), b"", base.commit, "", (after_call.bundle,), 59.9)
            worker.link.inbox.put_nowait(resumed)

    worker.link.on_send = answer
    worker.task = worker.task.model_copy(update={"prompt": "hang", "timeout": 60.0})

    ended = await worker.run()

    assert ended.reason == "its time limit of 60 s is over"
    assert ended.changes is not None
    assert ended.changes.files == 1


async def test_a_very_large_event_is_kept_and_one_above_the_limit_ends_the_unit_with_its_reason(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = LONGEST_LINE + 1
    worker.task = worker.task.model_copy(update={"prompt": f"tell {size}"})

    ended = await worker.run()

    assert ended.reason == ""
    lines = [line for message in worker.link.sent if isinstance(message, EventsReported) for line in message.lines]
    assert max(map(len, lines)) > size

    monkeypatch.setattr(unit_process, "LARGEST_EVENT", 1_000_000)
    worker.link.sent.clear()
    ended = await worker.run()

    assert "event 5 (message.ended) is larger than" in ended.reason
    lines = [line for message in worker.link.sent if isinstance(message, EventsReported) for line in message.lines]
    assert [type_of(line) for line in lines][-1] == "tool.started", "what was told before is kept"


async def test_a_refused_claim_starts_nothing(worker: Worker) -> None:
    def refuse(message: WorkerMessage) -> None:
        if isinstance(message, UnitClaimed):
            worker.link.inbox.put_nowait(UnitRefused("another"))
            worker.link.inbox.put_nowait(UnitRefused(message.claim))

    worker.link.on_send = refuse

    await run_unit("1", worker.link.driver, worker.host)

    assert len(worker.link.sent) == 1
