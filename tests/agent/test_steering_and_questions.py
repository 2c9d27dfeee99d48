"""A steering message withdraws the questions of calls that have not begun, whatever else runs."""

import asyncio

from tests.execution import kit
from tui_agent.agent import AgentTool
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.providers import call, reply

from .harness import Bench, BenchMaker, ScriptedTool, killed_while_asking, revived

APPROVE = ApprovalDecision(decision="approve")


async def _turn() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def _asked(b: Bench, count: int = 1) -> None:
    while len(b.of(ApprovalRequested)) < count:
        await asyncio.sleep(0)


async def test_a_message_withdraws_only_the_questions_of_the_agent_that_gets_it(bench: BenchMaker) -> None:
    change = ScriptedTool("change")
    b = bench(
        [reply(call("agent", task="Change it")), reply(call("change")), reply(call("change")), "Left it.", "Done."],
        change,
        policy=kit.FakePolicy({"change": "ask"}),
        gate=ApprovalGate(interactive=True),
    )
    b.loop.add_tool(AgentTool(b.loop))

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await _asked(b)
        b.loop.steer("to the main agent")
        await _turn()
        assert b.of(ApprovalResolved) == [], "the sub-agent, which asks, runs to its end"
        (child,) = b.loop.children
        b.loop.steer_child(child, "to the sub-agent")
        await _asked(b, 2)
        assert b.of(ApprovalResolved)[0].by == "cancel"
        b.loop.resolve_approval(b.loop.pending_calls[0].request_id, APPROVE)

    assert b.delivered == ["to the sub-agent", "to the main agent"]
    assert len(change.runs) == 1


async def test_a_message_from_before_the_resume_follows_the_resumed_call(bench: BenchMaker) -> None:
    snapshot, _ = await killed_while_asking(bench, reply(call("edit")), ScriptedTool("edit"))
    edit = ScriptedTool("edit")
    b = revived(bench, snapshot, ["Fine."], edit)
    b.loop.steer("and then the tests")

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run())
        await _asked(b)
        await _turn()
        b.loop.resolve_approval(b.loop.pending_calls[0].request_id, APPROVE)

    assert len(edit.runs) == 1
    assert b.sent(0)[-1] == "user: and then the tests"
