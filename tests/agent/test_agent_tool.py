"""Sub-agents: permissions, names, costs, stop and abort, failures."""

import asyncio

import pytest

from tui_agent.agent import AgentTool, Budget, delegate
from tui_agent.agent.delegation import MAX_LISTED, AgentProfile, listed_profiles
from tui_agent.execution import ApprovalGate, ExecutionOptions
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import (
    AgentCreated,
    AgentDestroyed,
    ApprovalRequested,
    RunEnded,
    RunStarted,
    SubagentEnded,
    SubagentStarted,
    ToolEnded,
    ToolStarted,
    UsageUpdated,
)
from tui_agent.protocol.messages import Usage
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.provider import ModelInfo, ModelRequest
from tui_agent.providers import ScriptedProvider, call, fail, reply
from tui_agent.providers.scripted_provider import Reply

from .fakes import FakePolicy
from .harness import Bench, BenchMaker, ScriptedTool


def made(bench: BenchMaker, *steps: object, tools: tuple[ScriptedTool, ...] = (), **config: object) -> Bench:
    """Return an agent with the tool `agent`."""
    b = bench(steps, *tools, **config)  # pyright: ignore
    b.loop.add_tool(AgentTool(b.loop))
    return b


async def test_s0_39_the_model_delegates_a_part_of_its_work(bench: BenchMaker) -> None:
    look = ScriptedTool("look")
    b = made(
        bench,
        reply("I ask.", call("agent", task="Find it")),
        reply(call("look")),
        "It is in a.py.",
        "Done.",
        tools=(look,),
    )

    report = await b.loop.run("Where is it?")

    assert b.sent(1) == ["user: Find it"], "a new sub-agent knows only its task"
    assert b.texts[2:] == ["tool_result: It is in a.py.", "assistant: Done."]
    assert (report.step_count, len(look.runs)) == (2, 1)
    child = next(envelope for envelope in b.envelopes if envelope.origin.depth == 1)
    assert child.origin.parent_call_id == "call_1"
    (started,), (ended,) = b.of(SubagentStarted), b.of(SubagentEnded)
    assert started.agent == child.origin.agent_id
    assert started.agent.startswith("agent-")
    runs = [envelope.origin.run_id for envelope in b.envelopes if isinstance(envelope.event, RunStarted)]
    assert started.child_run_id == ended.child_run_id == runs[1]
    assert {event.name: event.child_run_id for event in b.of(ToolEnded)} == {"agent": runs[1], "look": None}
    assert [len(b.of(kind)) for kind in (AgentCreated, AgentDestroyed)] == [2, 1]
    assert b.loop.children == {}


async def test_it_has_no_tool_beyond_its_parents(bench: BenchMaker) -> None:
    tools = (ScriptedTool("look"), ScriptedTool("change"))
    asks = reply(call("agent", task="a", tools=["look"]), call("agent", task="b", tools=["look", "fly"]))
    b = made(bench, asks, "Seen.", "Done.", tools=tools)

    await b.loop.run("Go")

    assert [spec.name for spec in b.provider.requests[1].tools] == ["look"]
    assert [result.is_error for result in b.results] == [False, True]
    assert "cannot have tools that its parent lacks: fly" in b.results[1].text


async def test_sub_agents_nest_three_deep_and_no_deeper(bench: BenchMaker) -> None:
    down = [reply(call("agent", task=f"floor {floor}")) for floor in (1, 2, 3)]
    b = made(bench, *down, "Bottom.", "Up.", "Up.", "Top.")

    report = await b.loop.run("Go")

    assert report.final_text == "Top."
    assert [len(request.tools) for request in b.provider.requests[:4]] == [1, 1, 1, 0]
    assert max(envelope.origin.depth for envelope in b.envelopes) == 3


async def test_at_the_deepest_level_a_library_call_is_refused_too(bench: BenchMaker) -> None:
    b = bench(["never"], depth=3)

    with pytest.raises(ConfigurationError, match="nested at most 3 levels deep"):
        await delegate(b.loop, "deeper")


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        ([fail("invalid_request", "no such model")], "did not finish (error: no such model)."),
        ([reply("Half of it.", call("look", n=place)) for place in range(16)], "Its last text:\nHalf of it."),
        ([" ", " "], "did not finish (error: The model gave an empty answer"),
    ],
    ids=["error", "cap", "silence"],
)
async def test_an_unfinished_sub_agent_is_an_error_with_its_last_words(
    bench: BenchMaker, steps: list[object], text: str
) -> None:
    b = made(bench, reply(call("agent", task="Find it")), *steps, "Then I do it.", tools=(ScriptedTool("look"),))

    report = await b.loop.run("Go")

    assert (report.reason, report.final_text) == ("done", "Then I do it.")
    assert b.results[0].is_error
    assert text in b.results[0].text
    assert b.of(SubagentEnded)[0].status in ("error", "max_steps")


async def test_its_usage_counts_in_the_parents_sums_and_budget(bench: BenchMaker) -> None:
    usage = Usage(input_tokens=100, output_tokens=10)
    b = made(
        bench,
        reply(call("agent", task="Find it"), usage=usage),
        reply("Found.", usage=usage),
        "never",
        budget=Budget(tokens=150),
    )
    b.provider.model = ModelInfo("paid", input_price=1000.0, output_price=0.0)

    report = await b.loop.run("Go")

    assert report.total_usage == Usage(input_tokens=200, output_tokens=20)
    assert report.cost_usd == pytest.approx(0.2)
    assert report.reason == "budget"
    updates = [(envelope.origin.depth, envelope.event) for envelope in b.envelopes]
    told = [(depth, event.total.input_tokens) for depth, event in updates if isinstance(event, UsageUpdated)]
    assert told == [(0, 100), (0, 200)]


async def test_an_abort_of_the_parent_reaches_it(bench: BenchMaker) -> None:
    slow = ScriptedTool("slow").hold()
    asks = reply(call("agent", task="Find it"))
    b = made(bench, asks, reply(call("slow")), "never", tools=(slow,), options=ExecutionOptions(grace=0.05))

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await slow.started.wait()
        b.loop.abort("enough")

    assert running.result().reason == "aborted"
    assert slow.cancelled == 1
    assert [event.reason for event in b.of(RunEnded)] == ["aborted", "aborted"]
    assert b.loop.children == {}
    assert len(b.results) == 1


async def test_a_sub_agent_whose_model_breaks_ends_with_an_error(bench: BenchMaker) -> None:
    def breaks(request: ModelRequest) -> Reply:
        raise RuntimeError("no such thing")

    b = bench([breaks])

    with pytest.raises(RuntimeError, match="no such thing"):
        await delegate(b.loop, "Find it")

    assert [event.status for event in b.of(SubagentEnded)] == ["error"]


async def test_the_parent_reaches_a_running_sub_agent_by_its_name_and_its_calls_by_their_ids(bench: BenchMaker) -> None:
    slow = ScriptedTool("slow").hold()
    asks, options = reply(call("agent", task="Find it")), ExecutionOptions(grace=0, tool_timeout=30.0)
    b = made(bench, asks, reply(call("slow")), "Other way.", "Done.", tools=(slow,), options=options)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await slow.started.wait()
        (agent_id,) = b.loop.children
        assert b.loop.steer_child("nobody", "hello") is None
        assert b.loop.steer_child(agent_id, "look elsewhere") is not None
        assert b.loop.steer_child(agent_id.rpartition("-")[0], "and here") is not None
        wrong = b.loop.steer_child(agent_id, "not this")
        assert wrong is not None
        assert b.loop.drop_message(wrong.id) == wrong
        (running,) = [event.call_id for event in b.of(ToolStarted) if event.name == "slow"]
        assert b.loop.extend_call(running, 60.0) == 90.0
        assert b.loop.extend_call("unknown", 60.0) is None
        with pytest.raises(ConfigurationError, match="seconds"):
            b.loop.extend_call(running, 0)
        assert b.loop.cancel_call(running, "use the other file")
        assert not b.loop.cancel_call("unknown", "x")

    assert b.sent(2)[-2:] == ["user: look elsewhere", "user: and here"]
    assert "use the other file" in b.sent(2)[-3]
    assert b.results[0].text == "Other way."
    assert not b.loop.cancel_call(running, "again")
    assert b.loop.extend_call(running, 60.0) is None


async def test_its_pending_approvals_are_not_in_the_parents_snapshot(bench: BenchMaker) -> None:
    gate, policy, change = ApprovalGate(interactive=True), FakePolicy(), ScriptedTool("change")
    b = made(bench, reply(call("change")), tools=(change,), gate=gate, policy=policy)

    async with asyncio.TaskGroup() as group:
        working = group.create_task(delegate(b.loop, "Change it"))
        while not gate.pending:
            await asyncio.sleep(0)
        snapshot = b.loop.dump()
        working.cancel()

    assert len(b.of(ApprovalRequested)) == 1
    assert snapshot.pending_tool_calls == (), "no call of its conversation is pending"


async def test_its_questions_name_it_and_are_answered_at_the_same_gate(bench: BenchMaker) -> None:
    gate, policy = ApprovalGate(interactive=True), FakePolicy()
    change = ScriptedTool("change")
    asks = reply(call("agent", task="Change it"))
    b = made(bench, asks, reply(call("change")), "Changed.", "Done.", tools=(change,), gate=gate, policy=policy)
    names: list[str] = []

    async def answer() -> None:
        while len(names) < 2:
            for request in gate.pending:
                names.append(request.agent)
                b.loop.resolve_approval(request.request_id, ApprovalDecision(decision="approve"))
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        group.create_task(answer())

    child, root = b.of(RunEnded)
    assert 0 < child.approval_ms < root.approval_ms == running.result().total_approval_wait_ms
    assert names == ["main", b.of(SubagentStarted)[0].agent]
    assert [event.agent for event in b.of(ApprovalRequested)] == names
    assert len(change.runs) == 1


async def test_a_run_with_a_limit_has_no_other_tools(bench: BenchMaker) -> None:
    write = ScriptedTool("write")
    b = bench([reply(call("write")), "I cannot.", reply(call("write")), "Done."], ScriptedTool("read"), write)

    await b.loop.run("Write!", allowed_tools=lambda name: name == "read")

    assert [tool.name for tool in b.provider.requests[0].tools] == ["read"]
    assert [event.status for event in b.of(ToolEnded)] == ["not_found"]
    assert write.runs == []

    await b.loop.run("Write!")

    assert [tool.name for tool in b.provider.requests[2].tools] == ["read", "write"]
    assert len(write.runs) == 1


async def test_a_named_sub_agent_has_its_own_prompt_model_and_the_tighter_rights(bench: BenchMaker) -> None:
    other = ScriptedProvider([reply(call("write")), "It is fine."], model=ModelInfo("other"))
    look, write = ScriptedTool("look"), ScriptedTool("write")
    b = bench([reply(call("agent", task="Review it", agent="review")), "Done."], look, write)
    profile = AgentProfile("review", "Reviews.", "Be strict.", lambda name: name in ("look", "fetch"), lambda: other)
    b.loop.add_tool(AgentTool(b.loop, [profile]))

    await b.loop.run("Go")

    (request, _) = other.requests
    assert [tool.name for tool in request.tools] == ["look"]
    assert any("Be strict." in part.text for part in request.system)
    assert write.runs == []
    assert b.of(SubagentStarted)[0].agent.startswith("review-")
    assert b.texts[2:] == ["tool_result: It is fine.", "assistant: Done."]


def test_the_list_of_kinds_is_capped_and_says_how_many_are_left_out() -> None:
    text = listed_profiles([AgentProfile(f"a{n}", "x" * 3_000, "") for n in range(100)])

    listed = text.count("- a")
    assert len(text) < MAX_LISTED + 100
    assert f"({100 - listed} more are not listed for lack of room.)" in text
