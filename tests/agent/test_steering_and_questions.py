"""A steering message withdraws the questions of calls that have not begun, whatever else runs."""

import asyncio

from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig, AgentLoopSnapshot, AgentTool
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.events import ApprovalRequested, ApprovalResolved, ToolEnded
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalDecision, PermissionDecision
from tui_agent.protocol.tool import Tool
from tui_agent.providers import ScriptedProvider, call, reply

from .fakes import FakePolicy
from .harness import AT_ONCE, Bench, BenchMaker, ScriptedTool

APPROVE = ApprovalDecision(decision="approve")


class AskingPolicy(FakePolicy):
    """Policy that asks about the tools of these names and allows all others."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.names = names

    def check(self, tool: Tool, arguments: JsonObject) -> PermissionDecision:
        return PermissionDecision(
            decision="ask" if tool.name in self.names else "allow", source="rule", reason=f"rule for {tool.name}"
        )


async def _turn() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def _asked(b: Bench, count: int = 1) -> None:
    while len(b.of(ApprovalRequested)) < count:
        await asyncio.sleep(0)


async def test_a_call_that_was_allowed_runs_to_its_end_while_questions_are_withdrawn(bench: BenchMaker) -> None:
    change, edit = ScriptedTool("change").hold(), ScriptedTool("edit")
    b = bench(
        [reply(call("change"), call("edit")), "Fine."],
        change,
        edit,
        policy=AskingPolicy("change", "edit"),
        gate=ApprovalGate(interactive=True),
    )

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await _asked(b, 2)
        assert b.loop.resolve_approval(b.loop.pending_calls[0].request_id, APPROVE)
        await change.started.wait()
        b.loop.steer("not the second one")
        await _turn()
        assert b.loop.pending_calls == ()
        assert b.delivered == []
        change.go_on.set()

    assert {event.name: event.status for event in b.of(ToolEnded)} == {"change": "ok", "edit": "skipped_steering"}
    assert b.delivered == ["not the second one"]


async def test_a_message_withdraws_only_the_questions_of_the_agent_that_gets_it(bench: BenchMaker) -> None:
    change = ScriptedTool("change")
    b = bench(
        [reply(call("agent", task="Change it")), reply(call("change")), reply(call("change")), "Left it.", "Done."],
        change,
        policy=AskingPolicy("change"),
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


async def _reopened(bench: BenchMaker) -> tuple[Bench, ScriptedTool]:
    """Restore an agent whose process ended while the question about an edit was open."""
    before = bench(
        [reply(call("edit"))], ScriptedTool("edit"), policy=AskingPolicy("edit"), gate=ApprovalGate(interactive=True)
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(before.loop.run("Go"))
        await _asked(before)
        snapshot = AgentLoopSnapshot.model_validate_json(before.loop.dump().model_dump_json())
        before.loop.abort("killed")
    edit = ScriptedTool("edit")
    provider, bus = ScriptedProvider(["Fine."]), ValidatingBus(whole=False)
    config = AgentLoopConfig(
        provider=provider,
        tools=(edit,),
        bus=bus,
        policy=AskingPolicy("edit"),
        gate=ApprovalGate(interactive=True),
        retry=AT_ONCE,
    )
    return bench.add(AgentLoop.restore(snapshot, config), provider, bus), edit


async def test_a_message_from_before_the_resume_follows_the_resumed_call(bench: BenchMaker) -> None:
    b, edit = await _reopened(bench)
    b.loop.steer("and then the tests")

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run())
        await _asked(b)
        await _turn()
        b.loop.resolve_approval(b.loop.pending_calls[0].request_id, APPROVE)

    assert len(edit.runs) == 1
    assert b.sent(0)[-1] == "user: and then the tests"
