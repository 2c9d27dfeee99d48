"""Runs with guardrails, permissions and approvals (S4-67 … S4-75)."""

import asyncio

import pytest

from tui_agent.agent import AgentLoop, GuardrailDecision
from tui_agent.execution import ApprovalGate
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.events import (
    ApprovalResolved,
    CheckpointRestored,
    CompactionEnded,
    PermissionModeChanged,
    ToolEnded,
    Warned,
)
from tui_agent.protocol.messages import AssistantMessage, ToolCall, user_message
from tui_agent.protocol.past_session import OpenCall
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.tool import ToolResult
from tui_agent.providers import Wait, call, reply

from .fakes import FakeCheckpoints, FakeGuardrail, FakePolicy
from .harness import BenchMaker, ScriptedTool, killed_while_asking, revived

PASS = GuardrailDecision(passed=True)
APPROVE = ApprovalDecision(decision="approve")
DENY = ApprovalDecision(decision="deny", note="not now")
TOOLS = (ScriptedTool("look", read_only=True), ScriptedTool("change"))


async def test_an_abort_ends_a_hanging_guardrail(bench: BenchMaker) -> None:
    asked = asyncio.Event()

    class HangingGuardrail(FakeGuardrail):
        async def check(self, context: object) -> GuardrailDecision:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    for kind in ("input", "output"):
        asked.clear()
        change = ScriptedTool("change")
        b = bench([reply("Look", call("change"))], change, guardrails=[HangingGuardrail("slow", PASS, kind)])
        async with asyncio.TaskGroup() as group:
            running = group.create_task(b.loop.run("Go"))
            await asked.wait()
            b.loop.abort("enough")
        assert running.result().reason == "aborted"
        assert change.runs == []
        assert len(b.results) == (kind == "output")


async def test_a_change_of_mode_answers_pending_questions(bench: BenchMaker) -> None:
    for mode, status in ((PermissionMode.ALLOW, "ok"), (PermissionMode.DENY, "denied_policy")):
        gate = ApprovalGate(interactive=True)
        b = bench([reply(call("change")), "Fine."], ScriptedTool("change"), policy=FakePolicy(), gate=gate)
        async with asyncio.TaskGroup() as group:
            group.create_task(b.loop.run("Go"))
            await _question(b.loop)
            b.loop.set_mode(mode, "user")
        assert b.of(ToolEnded)[0].status == status
        assert b.of(PermissionModeChanged) == [PermissionModeChanged(old=PermissionMode.ASK, new=mode, by="user")]
        assert b.of(ApprovalResolved)[0].by == "policy"
        assert b.loop.policy.mode is mode


async def test_without_a_policy_there_are_no_modes(bench: BenchMaker) -> None:
    b = bench([])

    b.loop.set_mode(PermissionMode.ALLOW)
    with pytest.raises(ConfigurationError, match="mode plan needs a permission policy"):
        b.loop.set_mode(PermissionMode.PLAN)

    policy = b.loop.policy
    assert policy.mode is PermissionMode.ALLOW
    tool = ScriptedTool("x")
    assert (policy.floor(tool, {}), policy.grant_rule(tool, {})) == (None, None)
    policy.grant("x", "session")


async def test_a_layer_listener_that_raises_produces_a_warning_and_the_run_continues(bench: BenchMaker) -> None:
    texts = iter(["first", "second"])
    b = bench(["One.", "Two."], system=lambda: next(texts))
    heard: list[object] = []

    def failing(change: object) -> None:
        raise ValueError("broken")

    b.loop.history.registry.listen(failing)
    b.loop.history.registry.listen(heard.append)

    reports = [await b.loop.run("Go") for _ in range(2)]

    assert [report.reason for report in reports] == ["done", "done"]
    assert len(heard) == 2
    warnings = [event for event in b.of(Warned) if event.code == "listener_failed"]
    assert len(warnings) == 1, "reported once"
    assert "failing failed (ValueError: broken)" in warnings[0].text
    assert "in failing" in str(warnings[0].context["traceback"])


async def test_a_failing_system_function_ends_the_run_and_keeps_the_message(bench: BenchMaker) -> None:
    def system() -> str:
        raise OSError("no such file")

    b = bench(["unused"], system=system)

    report = await b.loop.run("Go")

    assert (report.reason, b.texts) == ("error", ["user: Go"])
    assert "no such file" in (report.error or "")


async def test_a_system_function_can_be_aborted(bench: BenchMaker) -> None:
    asked = asyncio.Event()

    async def system() -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    b = bench(["unused"], system=system)

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await asked.wait()
        b.loop.abort("enough")

    assert running.result().reason == "aborted"
    assert b.texts == ["user: Go"]


# --- dump, restore, resume --------------------------------------------------------------------------------------------


async def test_a_pending_call_survives_the_process_and_is_executed_itself(bench: BenchMaker) -> None:
    snapshot, _ = await killed_while_asking(
        bench, reply("Look", call("look"), call("change", n=1), call("change", n=2)), *TOOLS
    )
    look, change = ScriptedTool("look", read_only=True), ScriptedTool("change")
    again = revived(bench, snapshot, ["Done."], look, change)
    assert {request.call_id for request in again.loop.pending_calls} == {"call_2", "call_3"}
    assert again.of(CheckpointRestored)[0].pending == ("call_2", "call_3")

    async with asyncio.TaskGroup() as group:
        running = group.create_task(again.loop.resume_with_approval("call_2", APPROVE))
        again.loop.resolve_approval(await _question(again.loop), DENY)

    report = running.result()
    assert report is not None
    assert (report.reason, report.final_text) == ("done", "Done.")
    assert [run["n"] for run in change.runs] == [1]
    assert look.runs == []
    assert [event.status for event in again.of(ToolEnded)] == ["interrupted", "ok", "denied_user"]
    assert "its outcome is unknown" in again.results[0].text
    assert again.loop.pending_calls == ()
    assert again.sent(0)[-1].startswith("tool_result")


async def test_if_the_user_says_something_else_finished_results_are_kept_and_nothing_runs(
    bench: BenchMaker,
) -> None:
    finished = OpenCall("done", "finished", ToolResult.of_text("what it gave"))
    change = ScriptedTool("look")
    calls = (ToolCall(id="done", name="look"), ToolCall(id="open", name="look"))
    asked = [user_message("Go"), AssistantMessage(content=calls, stop_reason="tool_use")]
    b = bench(["Fine."], change, history=asked, open_calls=[finished, OpenCall("open", "not_started")])

    await b.loop.run("Something else")

    assert [result.text[:13] for result in b.results] == ["what it gave", "No result: th"]
    assert change.runs == []
    assert b.sent(0)[-1] == "user: Something else"


@pytest.mark.parametrize("changed", ["target", "schema"])
async def test_a_call_whose_target_or_tool_changed_meanwhile_asks_again(bench: BenchMaker, changed: str) -> None:
    """An approval covers what the dialog showed: the tool as it was as much as the input."""
    snapshot, _ = await killed_while_asking(bench, reply(call("change", n=1)), *TOOLS)
    change = ScriptedTool("change")
    if changed == "schema":
        change.spec = change.spec.model_copy(update={"input_schema": {"type": "object", "title": "more"}})
    else:
        (request,) = snapshot.pending_tool_calls
        other = request.model_copy(update={"digest": "of something else"})
        snapshot = snapshot.model_copy(update={"pending_tool_calls": (other,)})
    again = revived(bench, snapshot, ["Fine."], change)

    async with asyncio.TaskGroup() as group:
        group.create_task(again.loop.resume_with_approval("call_1", APPROVE))
        again.loop.resolve_approval(await _question(again.loop), DENY)

    assert change.runs == []


async def test_a_conversation_with_pending_approvals_is_not_compacted(bench: BenchMaker) -> None:
    snapshot, _ = await killed_while_asking(bench, reply(call("change", n=1)), *TOOLS)
    change = ScriptedTool("change")
    again = revived(bench, snapshot, ["Done."], change)

    assert not await again.loop.compact()
    await again.loop.resume_with_approval("call_1", APPROVE)

    (ended,) = again.of(CompactionEnded)
    assert "calls wait for their results" in (ended.error or "")
    assert [run["n"] for run in change.runs] == [1]


async def test_a_running_agent_cannot_be_resumed(bench: BenchMaker) -> None:
    speaking, go_on = asyncio.Event(), asyncio.Event()
    b = bench([reply(Wait(go_on, speaking), "x")])

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await speaking.wait()
        with pytest.raises(AlreadyRunningError, match="already running"):
            await b.loop.resume_with_approval("call_1", APPROVE)
        go_on.set()


async def test_a_checkpoint_that_cannot_be_stored_is_a_warning(bench: BenchMaker) -> None:
    store, gate = FakeCheckpoints(error=OSError("disk full")), ApprovalGate(interactive=True)
    tool = ScriptedTool("change")
    b = bench([reply(call("change")), "Fine."], tool, policy=FakePolicy(), gate=gate, checkpoint=store)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        b.loop.resolve_approval(await _question(b.loop), APPROVE)

    assert [event.code for event in b.of(Warned)] == ["checkpoint_failed"]
    assert b.ended.reason == "done"


async def _question(loop: AgentLoop) -> str:
    """Return the id of the first pending question, once there is one."""
    while True:
        if loop.pending_calls and loop.running:
            return loop.pending_calls[0].request_id
        await asyncio.sleep(0)
