"""Commands in a trial start while the model still streams; their changes wait for the whole message, and an answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.fakes import FakeGuardrail
from tests.agent.harness import Bench, BenchMaker, killed_while_asking, revived
from tests.session.real_agents import TrialPolicy
from tests.support.trial_directories import CopiedLayers, TrialTool
from tui_agent.agent.guardrails import GuardrailDecision
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.cancellation import PROGRAM_QUIT
from tui_agent.protocol.events import (
    ApprovalResolved,
    ChangesDiscarded,
    ChangesKept,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.providers import Wait, fail
from tui_agent.providers.scripted_provider import call, reply

YES = ApprovalDecision(decision="approve")
WRITE = {"a": "new"}


@dataclass
class Desk:
    """A workspace with one file, and an agent that works there."""

    bench: BenchMaker
    root: Path

    def __post_init__(self) -> None:
        self.file = self.root / "workspace" / "a"
        self.file.parent.mkdir()
        self.file.write_text("old")
        self.tool = TrialTool(CopiedLayers(self.file.parent, self.root / "layers"))
        self.asked: list[str] = []

    def agent(self, steps: Sequence[Any], **more: Any) -> Bench:
        more.setdefault("gate", ApprovalGate(approver=self._approve))
        return self.bench(steps, self.tool, policy=TrialPolicy(), **more)

    def _approve(self, request: Any) -> ApprovalDecision:
        self.asked.append(request.call_id)
        return YES

    async def until_ran(self, count: int = 1) -> None:
        while len(self.tool.ran) < count:
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
def desk(bench: BenchMaker, tmp_path: Path) -> Desk:
    return Desk(bench, tmp_path)


@pytest.mark.parametrize("is_repeated", [True, False])
@pytest.mark.parametrize("seconds", [0, 0.05])
async def test_a_command_of_a_broken_answer_is_adopted_once_or_leaves_no_trace(
    desk: Desk, is_repeated: bool, seconds: float
) -> None:
    gate = Wait(asyncio.Event())
    asked = call("command", write=WRITE, seconds=seconds)
    again = asked if is_repeated else call("command", write={"b": "other"})
    b = desk.agent([reply("I", asked, gate, fail("stream_cut")), reply("", again), "Done."])
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("go"))
        await desk.until_ran()
        gate.gate.set()

    assert desk.file.read_text() == ("new" if is_repeated else "old")
    assert len(desk.tool.ran) == (1 if is_repeated else 2)
    assert desk.tool.layers.left == []
    assert desk.asked == ["call_2"]
    assert [event.call_id for event in b.of(ChangesKept)] == ["call_2"]
    assert [event.adopted_from for event in b.of(ToolStarted)] == [None, "call_1" if is_repeated else None]
    # A command that left no trace needs no notice.
    assert len([message for message in b.loop.history.messages() if isinstance(message, UserMessage)]) == 1


async def test_a_refused_answer_discards_what_its_command_changed(desk: Desk) -> None:
    gate = Wait(asyncio.Event())

    refusal = GuardrailDecision(passed=False, tripwire=True, reason="not this")
    guardrails = [FakeGuardrail("no", refusal, "output")]
    b = desk.agent([reply("I", call("command", write=WRITE), gate)], guardrails=guardrails)
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("go"))
        await desk.until_ran()
        gate.gate.set()

    assert (desk.file.read_text(), desk.tool.layers.left, desk.asked) == ("old", [], [])
    assert len(b.of(ChangesDiscarded)) == 1
    assert b.of(ToolEnded)[0].status == "cancelled"


@pytest.mark.parametrize("how", ["abort", "stop"])
async def test_an_abort_discards_and_a_stop_waits_for_the_answer(desk: Desk, how: str) -> None:
    gate = ApprovalGate(interactive=True)
    b = desk.agent([reply("", call("command", write=WRITE))], gate=gate)
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("go"))
        while not gate.pending:
            await asyncio.sleep(0)
        b.loop.abort() if how == "abort" else b.loop.stop()
        for _ in range(20):
            await asyncio.sleep(0)
        for request in gate.pending:
            gate.resolve(request.request_id, YES)

    assert desk.file.read_text() == ("old" if how == "abort" else "new")
    assert desk.tool.layers.left == []


async def test_a_cancelled_task_discards_the_changes(desk: Desk) -> None:
    gate = ApprovalGate(interactive=True)
    b = desk.agent([reply("", call("command", write=WRITE))], gate=gate)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(b.loop.run("go"))
        while not gate.pending:
            await asyncio.sleep(0)
        run.cancel()

    assert (desk.file.read_text(), desk.tool.layers.left) == ("old", [])
    assert len(b.of(ChangesDiscarded)) == 1
    assert "none of its changes were kept" in b.of(ToolEnded)[0].content[0].text


@pytest.mark.parametrize(("answer", "content"), [(YES, "new"), (ApprovalDecision(decision="deny"), "old")])
async def test_a_restored_agent_takes_the_answer_and_runs_nothing_again(
    desk: Desk, answer: ApprovalDecision, content: str
) -> None:
    asked = reply("", call("command", write=WRITE))
    snapshot, _ = await killed_while_asking(desk.bench, asked, desk.tool, reason=PROGRAM_QUIT, policy=TrialPolicy())
    assert (desk.file.read_text(), desk.tool.layers.left) == ("old", ["call_1"])

    again = revived(desk.bench, snapshot, ["Done."], desk.tool, policy=TrialPolicy())
    await again.loop.resume_with_approval("call_1", answer)

    assert (desk.file.read_text(), desk.tool.layers.left, desk.tool.ran) == (content, [], ["call_1"])
    assert [event.decision for event in again.of(ApprovalResolved)] == [answer.decision]
    assert again.results[0].text.startswith("ran call_1")
