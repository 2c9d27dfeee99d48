"""The execution of calls in the preset `sdk_loop` (S4-56 … S4-66)."""

import asyncio
from dataclasses import replace

import pytest

from tests.agent.fakes import FakePolicy
from tests.agent.harness import Bench, BenchMaker, ScriptedTool
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.events import Failed, PermissionDecided, ToolEnded, ToolStarted, Warned
from tui_agent.protocol.function_tool import function_tool
from tui_agent.protocol.hooks import BeforeTool, FailureAnswer, OverrideResult, SkipCall, ToolFailed
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.providers import call, reply


def hooks_that(answer: object) -> tuple[HookBus, list[BeforeTool]]:
    """Return hooks that answer every call alike, and the list of their questions."""
    hooks, asked = HookBus(), list[BeforeTool]()

    async def give(question: BeforeTool) -> object:
        asked.append(question)
        await asyncio.sleep(0)
        return answer

    hooks.add("before_tool", give)
    return hooks, asked


async def ended(b: Bench) -> ToolEnded:
    """Run the agent and return the end of its only call."""
    await b.loop.run("Go")
    (event,) = b.of(ToolEnded)
    return event


@pytest.mark.parametrize("result", [None, ToolResult.of_text("cached")])
async def test_s4_58_a_skipped_call_has_no_lookup_no_policy_check_and_no_execution(
    bench: BenchMaker, literal: ExecutionOptions, result: ToolResult | None
) -> None:
    hooks, _ = hooks_that(SkipCall(result))
    gate = ApprovalGate(approver=lambda _: ApprovalDecision(decision="approve"))
    b = bench([reply(call("gone")), "Done."], hooks=hooks, options=literal, policy=FakePolicy(), gate=gate)

    event = await ended(b)

    assert (event.status, event.is_error) == ("skipped_hook", False)
    assert b.of(Warned, PermissionDecided, ToolStarted) == []
    assert b.loop.reports[0].steps[0].tool_calls[0].skipped
    if result is not None:
        assert b.results[0].text == "cached"


async def test_s4_59_a_result_supplied_by_the_hook_replaces_the_tool(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    hooks, _ = hooks_that(OverrideResult(ToolResult.of_text("from the hook")))
    tool = ScriptedTool("look")
    b = bench([reply(call("look")), "Done."], tool, hooks=hooks, options=literal)

    event = await ended(b)

    assert (event.status, b.results[0].text, tool.runs) == ("overridden", "from the hook", [])


async def test_s4_60_an_unknown_tool_is_published_with_a_warning_reported_and_answered(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    hooks, failed = HookBus(), list[str]()
    hooks.on_tool_error(lambda question: failed.append(question.error))
    b = bench([reply(call("gone")), "Done."], ScriptedTool("look"), hooks=hooks, options=literal)

    event = await ended(b)

    assert (event.status, event.is_error) == ("not_found", True)
    assert [warning.code for warning in b.of(Warned)] == ["unknown_tool"]
    assert failed[0].startswith("Tool gone not found")
    report = b.loop.reports[0]
    assert (report.reason, report.steps[0].tool_calls[0].error) == ("done", b.results[0].text)


@pytest.mark.parametrize(
    ("mode", "answer", "status"),
    [
        (PermissionMode.ALLOW, None, "ok"),
        (PermissionMode.ASK, "approve", "ok"),
        (PermissionMode.ASK, "deny", "denied_user"),
        (PermissionMode.DENY, None, "denied_policy"),
    ],
)
async def test_s1_18_s4_61_the_policy_allows_asks_or_denies_and_ask_waits_for_the_user(
    bench: BenchMaker, literal: ExecutionOptions, mode: PermissionMode, answer: str | None, status: str
) -> None:
    asked: list[str] = []

    def approver(request: object) -> ApprovalDecision:
        asked.append("asked")
        return ApprovalDecision.model_validate({"decision": answer})

    tool = ScriptedTool("change")
    b = bench(
        [reply(call("change")), "Done."],
        tool,
        options=literal,
        policy=FakePolicy(mode),
        gate=ApprovalGate(approver=approver),
    )

    event = await ended(b)

    assert event.status == status
    assert len(asked) == (answer is not None)
    assert len(tool.runs) == (status == "ok")
    if status == "denied_policy":
        assert "mode deny" in b.results[0].text


async def test_s4_62_after_its_timeout_a_calls_own_signal_is_set_and_the_result_says_so(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    signals: list[bool] = []

    @function_tool()
    async def slow(context: ToolContext) -> str:
        """Wait for the stop signal."""
        await context.cancellation.wait()
        signals.append(True)
        return "late"

    @function_tool()
    async def quick(context: ToolContext) -> str:
        """End at once."""
        signals.append(context.cancellation.is_set())
        return "quick"

    b = bench([reply(call("slow"), call("quick")), "Done."], slow, quick, options=replace(literal, tool_timeout=1.25))

    await b.loop.run("Go")

    assert sorted(signals) == [False, True]
    statuses = {event.name: event.status for event in b.of(ToolEnded)}
    assert statuses == {"slow": "timeout", "quick": "ok"}
    assert "1.25" in b.results[0].text


async def test_s4_63_s4_65_s4_66_each_call_has_a_result_with_its_id_an_end_and_a_report(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    b = bench(
        [reply(call("broken"), call("gone"), call("look", n=4)), "Done."],
        ScriptedTool("broken", error=ValueError("disk gone")),
        ScriptedTool("look"),
        options=literal,
    )

    await b.loop.run("Go")

    back = b.provider.requests[1].messages[2:]
    assert [(message.role, getattr(message, "call_id", "")) for message in back] == [
        ("tool_result", "call_1"),
        ("tool_result", "call_2"),
        ("tool_result", "call_3"),
    ]
    assert [(result.text, result.is_error) for result in b.results[::2]] == [("disk gone", True), ("look 4", False)]
    ends = {event.call_id: (event.status, event.is_error) for event in b.of(ToolEnded)}
    assert ends == {"call_1": ("error", True), "call_2": ("not_found", True), "call_3": ("ok", False)}
    errors = [made.error for made in b.loop.reports[0].steps[0].tool_calls]
    assert (errors[0], errors[2]) == ("disk gone", None)


async def test_s4_64_on_failure_a_hook_may_replace_the_result(bench: BenchMaker, literal: ExecutionOptions) -> None:
    hooks = HookBus()
    hooks.on_tool_error(lambda _: FailureAnswer(fallback=ToolResult.of_text("plan B")))
    tool = ScriptedTool("broken", error=ValueError("disk gone"))
    b = bench([reply(call("broken")), "Done."], tool, hooks=hooks, options=literal)

    event = await ended(b)

    assert (b.results[0].text, event.is_error, b.ended.reason) == ("plan B", False, "done")


async def test_s4_64_on_failure_a_hook_may_end_the_run_with_every_call_answered(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    hooks = HookBus()

    @hooks.on_tool_error
    def give_up(question: ToolFailed) -> FailureAnswer:
        return FailureAnswer(continue_on_error=False)

    tool = ScriptedTool("broken", error=ValueError("disk gone"))
    b = bench([reply(call("broken"), call("look")), "never"], tool, ScriptedTool("look"), hooks=hooks, options=literal)

    report = await b.loop.run("Go")

    assert (report.reason, report.error, len(b.results), b.provider.left) == ("error", "disk gone", 2, 1)
    assert "disk gone" in b.of(Failed)[0].text
