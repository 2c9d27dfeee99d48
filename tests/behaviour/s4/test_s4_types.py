"""The data types, and the configuration of an agent (S4-8 … S4-15, S4-90)."""

import asyncio

from tests.agent.fakes import FakeCheckpoints, FakeGuardrail, FakePolicy
from tests.agent.harness import BenchMaker, ScriptedTool
from tui_agent.agent import AgentLoopConfig, GuardrailDecision
from tui_agent.execution import ApprovalGate, ExecutionOptions, HookBus
from tui_agent.protocol.function_tool import function_tool
from tui_agent.protocol.hooks import BeforeTool, FailureAnswer, ToolFailed
from tui_agent.protocol.messages import ImageBlock, TextBlock, Usage
from tui_agent.protocol.permissions import ApprovalDecision, PermissionMode
from tui_agent.protocol.reports import AgentRunReport, Metric
from tui_agent.protocol.tool import ToolContext, ToolResult
from tui_agent.providers import Call, call, reply


async def test_s4_8_a_tool_is_a_definition_and_an_execute_function_that_returns_text_or_blocks(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    @function_tool(read_only=True)
    async def words(query: str, context: ToolContext) -> str:
        """Find words."""
        return f"{context.tool_name}: {query}"

    @function_tool(read_only=True)
    async def pictures() -> list[TextBlock | ImageBlock]:
        """Find pictures."""
        return [TextBlock(text="a cat"), ImageBlock(media_type="image/png", data="eA==")]

    b = bench([reply(call("words", query="cat"), call("pictures")), "Done."], words, pictures, options=literal)

    await b.loop.run("Go")

    spec = b.provider.requests[0].tools[0]
    assert (spec.name, spec.description) == ("words", "Find words.")
    assert spec.input_schema["properties"].keys() == {"query"}
    assert b.results[0].text == "words: cat"
    assert [type(block) for block in b.results[1].content] == [TextBlock, ImageBlock]


async def test_s4_9_a_running_call_knows_its_step_its_id_its_signal_and_its_metrics(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    seen: list[tuple[int, str, bool]] = []
    signalled: list[str] = []

    @function_tool()
    async def look(context: ToolContext) -> str:
        """Look."""
        seen.append((context.step, context.call_id, context.cancellation.is_set()))
        context.measure("files", 3)
        context.measure("how", "fast")
        context.measure("cached", True)
        if len(seen) == 2:
            await context.signal.wait()
            signalled.append(context.cancellation.reason)
        return "seen"

    b = bench([reply(call("look")), reply(call("look")), "Done."], look, options=literal)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        while len(seen) < 2:
            await asyncio.sleep(0)
        b.loop.abort("enough")

    assert seen == [(0, "call_1", False), (1, "call_2", False)]
    assert signalled == ["enough"]
    assert running.result().steps[0].tool_calls[0].metrics == {
        "files": Metric(value=3),
        "how": Metric(value="fast"),
        "cached": Metric(value=True),
    }


async def test_s4_10_s4_11_the_report_of_a_run_and_of_its_steps_have_every_field(
    bench: BenchMaker, literal: ExecutionOptions
) -> None:
    usage = Usage(input_tokens=3, output_tokens=2)
    b = bench(
        [reply("Look.", call("look"), call("look"), usage=usage), reply("Done.", stop_reason="stop_sequence")],
        ScriptedTool("look"),
        options=literal,
    )

    report = await b.loop.run("Go")

    said = (report.model, report.reason, report.user_message, report.final_text)
    assert said == ("scripted-model", "done", "Go", "Done.")
    assert (report.error, report.step_count, report.tool_call_count) == (None, 2, 2)
    assert report.total_usage == Usage(input_tokens=13, output_tokens=7)
    assert report.total_llm_time_ms == sum(step.llm_latency_ms for step in report.steps)
    assert report.total_tool_time_ms == sum(step.tool_total_ms for step in report.steps)
    assert 0 < report.total_llm_time_ms <= report.total_ms
    assert AgentRunReport.model_validate_json(report.model_dump_json()) == report
    first, second = report.steps
    assert (first.index, first.type, first.usage, first.finish_reason) == (0, "initial", usage, "tool_use")
    assert (second.index, second.type, second.finish_reason) == (1, "tool_followup", "stop_sequence")
    assert first.tool_total_ms == sum(made.latency_ms for made in first.tool_calls)
    assert first.llm_latency_ms > 0
    assert (len(first.tool_calls), second.tool_calls) == (2, ())


async def test_s4_12_a_call_report_has_every_field(bench: BenchMaker, literal: ExecutionOptions) -> None:
    hooks = HookBus()

    @hooks.before_tool
    def choose(question: BeforeTool) -> bool:
        return question.call.name != "change"

    b = bench(
        [reply(call("look", n=1), call("broken"), call("change")), "Done."],
        ScriptedTool("look"),
        ScriptedTool("broken", error=ValueError("disk gone")),
        ScriptedTool("change"),
        options=literal,
        hooks=hooks,
    )

    look, broken, skipped = (await b.loop.run("Go")).steps[0].tool_calls

    assert (look.call_id, look.tool_name, look.arguments) == ("call_1", "look", {"n": 1})
    assert (look.result_size_bytes, look.skipped, look.error, look.metrics) == (len("look 1"), False, None, {})
    assert look.latency_ms > 0
    assert (broken.status, broken.skipped, broken.error) == ("error", False, "disk gone")
    assert (skipped.status, skipped.skipped, skipped.latency_ms) == ("skipped_hook", True, 0.0)


def test_s4_15_the_configuration_takes_every_part_of_an_agent() -> None:
    names = AgentLoopConfig.__dataclass_fields__.keys()

    ours = {"provider", "system", "context", "tools", "history", "hooks", "max_tokens", "temperature"}
    ours |= {"thinking_tokens", "cache", "max_steps", "guardrails", "policy", "checkpoint"}
    assert ours <= names
    assert ExecutionOptions.preset("sdk_loop", tool_timeout=5.0).tool_timeout == 5.0
    assert ApprovalGate(approver=lambda _: ApprovalDecision(decision="approve")).approver is not None


async def test_s4_90_every_named_event_can_be_observed(bench: BenchMaker, literal: ExecutionOptions) -> None:
    failed: list[str] = []
    hooks = HookBus()

    @hooks.on_tool_error
    def note(question: ToolFailed) -> FailureAnswer:
        failed.append(question.call.name)
        return FailureAnswer(fallback=ToolResult.of_text("instead"))

    soft = FakeGuardrail("soft", GuardrailDecision(passed=False, reason="hm"))
    b = bench(
        [reply(call("look"), call("gone"), Call("broken", {})), "Done."],
        ScriptedTool("look"),
        ScriptedTool("broken", error=ValueError("no")),
        options=literal,
        hooks=hooks,
        guardrails=[soft],
        policy=FakePolicy(PermissionMode.ASK),
        gate=ApprovalGate(approver=lambda _: ApprovalDecision(decision="approve")),
        checkpoint=FakeCheckpoints(),
    )

    await b.loop.run("Go")
    await b.loop.run("The script is used up")
    b.loop.destroy()

    moments = {
        "agent.created",
        "run.started",
        "step.started",
        "step.ended",
        "tool.started",
        "tool.ended",
        "approval.requested",
        "approval.resolved",
        "guardrail.tripped",
        "warning",
        "error",
        "run.ended",
        "agent.destroyed",
    }
    assert moments <= {event.type for event in b.events}
    assert sorted(failed) == ["broken", "gone"]
