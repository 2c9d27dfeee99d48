"""Calls by the user (`!cmd`): the same pipeline, with output that the model reads or not."""

import asyncio

import pytest

from tui_agent.agent import InputVerdict
from tui_agent.execution import ApprovalGate, ExecutionOptions
from tui_agent.protocol.events import (
    ApprovalRequested,
    MessageEnded,
    PermissionDecided,
    ToolEnded,
)
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode

from .fakes import FakePolicy
from .harness import BenchMaker, ScriptedTool


async def test_the_output_of_a_private_command_stays_with_the_user(bench: BenchMaker) -> None:
    b = bench(["Hello."], ScriptedTool("bash"))

    await b.loop.run_command("bash", {}, "!!look", shared=False)
    await b.loop.run("Hi")

    assert b.sent(0) == ["user: Hi"]
    assert [event.status for event in b.of(ToolEnded)] == ["ok"]


async def test_it_needs_approval_like_any_call(bench: BenchMaker) -> None:
    tool = ScriptedTool("bash")
    b = bench((), tool, policy=FakePolicy(), gate=ApprovalGate(interactive=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(b.loop.run_command("bash", {}, "!look"))
        while not b.of(ApprovalRequested):
            await asyncio.sleep(0)
        assert tool.runs == []
        assert b.of(ApprovalRequested)[0].agent == "you"
        b.loop.resolve_approval(b.of(ApprovalRequested)[0].request_id, ApprovalDecision(decision="deny"))
        await task

    assert [event.status for event in b.of(ToolEnded)] == ["denied_user"]
    assert tool.runs == []
    assert b.texts == []


@pytest.mark.parametrize("mode", PermissionMode)
async def test_what_the_user_typed_runs_in_every_mode_without_a_question(
    bench: BenchMaker, mode: PermissionMode
) -> None:
    tool = ScriptedTool("bash")
    b = bench((), tool, policy=FakePolicy(mode), gate=ApprovalGate(interactive=True))

    await b.loop.run_command("bash", {}, "!look", typed=True)

    assert [event.status for event in b.of(ToolEnded)] == ["ok"]
    assert b.of(ApprovalRequested) == []


@pytest.mark.parametrize("name", ["bash", "missing"])
async def test_a_command_that_never_ran_adds_nothing_to_the_conversation(bench: BenchMaker, name: str) -> None:
    tool = ScriptedTool("bash")
    b = bench((), tool, policy=FakePolicy(PermissionMode.DENY))

    result = await b.loop.run_command(name, {}, "!look")

    assert result.is_error
    assert tool.runs == []
    assert b.texts == []
    assert b.of(PermissionDecided) or name == "missing"


async def test_an_abort_ends_it_and_keeps_its_output(bench: BenchMaker) -> None:
    tool = ScriptedTool("bash").hold()
    b = bench((), tool, options=ExecutionOptions(grace=0))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(b.loop.run_command("bash", {}, "!look"))
        await tool.started.wait()
        assert b.loop.running
        b.loop.abort("enough")
        result = await task

    assert (b.ended.reason, b.ended.error) == ("aborted", "enough")
    assert result.is_error
    assert [event.status for event in b.of(ToolEnded)] == ["cancelled"]
    assert not b.loop.running


async def test_a_cancelled_task_leaves_nothing_open(bench: BenchMaker) -> None:
    tool = ScriptedTool("bash").hold()
    b = bench((), tool, options=ExecutionOptions(grace=0))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(b.loop.run_command("bash", {}, "!look"))
        await tool.started.wait()
        task.cancel()

    assert b.ended.reason == "aborted"
    assert not b.loop.running


async def test_a_message_queued_meanwhile_waits_for_the_next_run(bench: BenchMaker) -> None:
    tool = ScriptedTool("bash").hold()
    b = bench(["Fine."], tool)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(b.loop.run_command("bash", {}, "!look"))
        await tool.started.wait()
        b.loop.steer("Is it fine?")
        tool.go_on.set()
        await task
    await b.loop.run()

    assert b.delivered == ["Is it fine?"]
    assert [line.split(": ")[-1] for line in b.sent(0)] == ["!look\n\nbash", "Is it fine?"]


async def test_filters_check_its_output(bench: BenchMaker) -> None:
    class Refuser:
        name = "refuser"

        def check(self, message: UserMessage) -> InputVerdict:
            return InputVerdict("reject", "secret")

    b = bench((), ScriptedTool("bash"), input_filters=(Refuser(),))

    await b.loop.run_command("bash", {}, "!look")

    assert b.of(MessageEnded) == []
    assert b.texts == []
