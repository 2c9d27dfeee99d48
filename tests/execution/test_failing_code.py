"""Tools, hooks and policies that fail: only their own call does, and nothing is allowed that was not judged."""

import asyncio
from typing import Any

import pytest

from tests.execution.bench import bench_of
from tests.execution.kit import FakePolicy, ScriptedTool, call, run
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus, Parallel
from tui_agent.protocol.events import ToolStarted
from tui_agent.protocol.messages import AssistantMessage, JsonObject
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import ToolContext, ToolResult

LOST = RuntimeError("lost")


def failing(part: Any, method: str, error: BaseException = LOST) -> Any:
    """Return a tool or a policy of which one method raises."""

    def fail(*given: Any) -> Any:
        raise error

    setattr(part, method, fail)
    return part


@pytest.mark.parametrize("error", [LOST, SystemExit(1)], ids=repr)
@pytest.mark.parametrize("method", ["floor", "check"])
async def test_a_failing_policy_denies(method: str, error: BaseException) -> None:
    hooks = HookBus()
    hooks.before_tool(lambda question: None)

    ran = await run([ScriptedTool()], [call()], hooks=hooks, policy=failing(FakePolicy(), method, error))

    assert ran.statuses == ["denied_policy"]
    assert ran.of(ToolStarted) == []


async def test_a_policy_that_fails_while_calls_wait_denies_them() -> None:
    policy = FakePolicy({"act": "ask"})
    gate = ApprovalGate(interactive=True)

    async with bench_of([ScriptedTool()], policy=policy, gate=gate) as bench, asyncio.TaskGroup() as group:
        bench.scheduler.submit_all([call()])
        finishing = group.create_task(bench.scheduler.finish())
        while not gate.pending:
            await asyncio.sleep(0)
        policy.verdicts = {"act": "nonsense"}
        gate.reconsider()
        result = await finishing

    assert [report.status for report in result.reports] == ["denied_policy"]


PREDICATES = ["prepare_arguments", "is_read_only", "is_concurrency_safe", "timeout", "summarise", "interruptible"]


@pytest.mark.parametrize("method", PREDICATES)
async def test_a_predicate_that_fails_refuses_its_call_only(method: str) -> None:
    tools = [failing(ScriptedTool("odd"), method), ScriptedTool()]

    ran = await run(tools, [call("odd", "a"), call("act", "b")])

    assert ran.statuses == ["error", "ok"]
    assert ran.texts[0] == "lost"
    assert [event.call_id for event in ran.of(ToolStarted)] == ["b"]


@pytest.mark.parametrize("options", [ExecutionOptions(), ExecutionOptions(admit_first=True)], ids=["live", "first"])
@pytest.mark.parametrize("method", ["grant_rule", "grant_choices"])
async def test_a_failure_while_a_question_is_made_refuses_its_call_only(method: str, options: ExecutionOptions) -> None:
    policy = failing(FakePolicy({"act": "ask"}), method)
    gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="approve"))

    ran = await run(
        [ScriptedTool(), ScriptedTool("fine")], [call(), call("fine", "d")], options, policy=policy, gate=gate
    )

    assert ran.statuses == ["error", "ok"]


async def test_a_call_without_known_paths_runs_alone() -> None:
    tools = [failing(ScriptedTool("odd"), "accesses"), ScriptedTool()]

    ran = await run(tools, [call("odd", "a"), call("act", "b")])

    assert ran.statuses == ["ok", "ok"]


async def test_results_of_tools_and_hooks_fit_a_journal() -> None:
    loop: dict[str, Any] = {}
    loop["more"] = loop

    async def odd(arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult.of_text("half \ud83d", details=loop)

    hooks = HookBus()
    hooks.after_tool(lambda question: ToolResult.of_text("half \ud83d", details={"o": {1, 2}}))

    plain = await run([ScriptedTool(behaviour=odd)], [call()])
    hooked = await run([ScriptedTool()], [call()], hooks=hooks)

    assert plain.texts == hooked.texts == ["half \ufffd"]
    assert set(plain.ended("c").details or {}) == {"value"}
    assert hooked.ended("c").details == {"o": [1, 2]}


async def test_a_tool_changes_neither_the_message_nor_the_report_of_its_call() -> None:
    async def change(arguments: JsonObject, context: ToolContext) -> ToolResult:
        arguments["n"]["deep"] = 2
        return ToolResult()

    class Renaming(ScriptedTool):
        def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
            arguments["n"] = arguments.pop("m")
            return arguments

    message = AssistantMessage(content=(call(m={"deep": 1}),), stop_reason="tool_use")
    ran = await run([Renaming(behaviour=change)], message.tool_calls, ExecutionOptions(strategy=Parallel()))

    assert message.tool_calls[0].arguments == {"m": {"deep": 1}}
    assert ran.result.reports[0].arguments == {"n": {"deep": 1}}
