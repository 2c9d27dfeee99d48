"""The loop from user input to run.ended, path by path (S4-33 … S4-45)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tui_agent.context import ContextLayer
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.events import (
    ContextUsage,
    RunStarted,
    StepEnded,
    ToolEnded,
    UsageUpdated,
    Warned,
)
from tui_agent.protocol.messages import TextBlock, ToolResultMessage, Usage, user_message
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEvent
from tui_agent.providers import Call, ScriptedProvider, Wait, call, reply

from .harness import BenchMaker, ScriptedTool, asking


async def test_a_step_reports_the_duration_of_calls_that_ended_before_its_answer(bench: BenchMaker) -> None:
    go_on = asyncio.Event()
    b = bench(
        [reply(call("look"), Wait(go_on), "and I go on"), reply(call("change")), "Done."],
        ScriptedTool("look", read_only=True),
        ScriptedTool("change"),
    )

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        while not b.of(ToolEnded):
            await asyncio.sleep(0)
        go_on.set()

    first, second, third = [event.tool_ms for event in b.of(StepEnded)]
    assert first == b.of(ToolEnded)[0].latency_ms > 0
    assert (second, third) == (0, 0)


async def test_events_name_their_run_turn_and_step(bench: BenchMaker) -> None:
    b = bench([reply(call("look")), "Done."], ScriptedTool("look"), session_id="s-1", agent_id="explorer", depth=1)

    await b.loop.run("Go")

    assert b.events
    run_id = b.loop.reports[0].id
    places = {
        (envelope.type, envelope.origin.run_id, envelope.origin.turn, envelope.origin.step) for envelope in b.told
    }
    assert ("agent.created", None, None, None) in places
    assert ("run.started", run_id, None, None) in places
    assert ("tool.ended", run_id, 0, 0) in places
    assert ("step.started", run_id, 1, 1) in places
    assert ("run.ended", run_id, None, None) in places
    assert {(envelope.origin.session_id, envelope.origin.agent_id, envelope.origin.depth) for envelope in b.told} == {
        ("s-1", "explorer", 1)
    }


async def test_a_run_names_its_trigger(bench: BenchMaker) -> None:
    b = bench(["One.", "Two.", "Three."])

    await b.loop.run("Go")
    await b.loop.run()
    await b.loop.run("From above", trigger="subagent")

    assert [(event.trigger, event.input) for event in b.of(RunStarted)] == [
        ("prompt", "Go"),
        ("continue", ""),
        ("subagent", "From above"),
    ]
    assert b.sent(1)[-1] == "user: Please continue."


async def test_a_run_needs_something_to_do(bench: BenchMaker) -> None:
    b = bench([])

    with pytest.raises(ConfigurationError, match="nothing to run"):
        await b.loop.run()
    with pytest.raises(ConfigurationError, match="empty message"):
        await b.loop.run("  \n")
    with pytest.raises(ConfigurationError, match="not with both"):
        await b.loop.run([TextBlock(text="x"), user_message("y")])

    assert b.types() == []


async def test_a_new_model_is_used_from_the_next_request_on(bench: BenchMaker) -> None:
    b = bench(["One."])
    await b.loop.run("Go")

    b.loop.provider = ScriptedProvider(["Two."], model=ModelInfo("other"))
    report = await b.loop.run("Go")

    assert (report.final_text, report.model) == ("Two.", "other")


async def test_an_answer_costs_the_price_of_the_model_that_gave_it(bench: BenchMaker) -> None:
    b = bench([])
    free = ScriptedProvider([], model=ModelInfo("free", input_price=0.0, output_price=0.0))

    class Replaced(ScriptedProvider):
        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            b.loop.provider = free
            async for event in super().stream(request):
                yield event

    answer = reply("One.", usage=Usage(output_tokens=1_000_000))
    b.loop.provider = Replaced([answer], model=ModelInfo("priced", input_price=1.0, output_price=2.0))
    report = await b.loop.run("Go")

    assert report.cost_usd == 2.0
    assert b.loop.provider is free


async def test_usage_and_cost_add_up(bench: BenchMaker) -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    b = bench([], ScriptedTool("look"), usage=Usage(output_tokens=7), cost=1.0)
    b.loop.provider = ScriptedProvider(
        [reply(call("look"), usage=usage), reply("Done.", usage=usage)],
        model=ModelInfo("priced", input_price=1.0, output_price=2.0),
    )

    report = await b.loop.run("Go")

    assert (report.total_usage, report.cost_usd) == (usage + usage, 6.0)
    assert [step.usage for step in report.steps] == [usage, usage]
    last = b.of(UsageUpdated)[-1]
    assert (last.delta, last.total, last.cost) == (usage, usage + usage + Usage(output_tokens=7), 7.0)
    assert [event.usage for event in b.of(StepEnded)] == [usage, usage]
    assert (b.ended.usage, b.ended.cost, b.ended.steps, b.ended.tool_calls) == (usage + usage, 6.0, 2, 1)


async def test_the_window_usage_is_counted_or_otherwise_estimated(bench: BenchMaker) -> None:
    counted = Usage(input_tokens=50, cache_read_tokens=25, output_tokens=7)
    b = bench([reply("x" * 40, usage=Usage()), reply("y", usage=counted)], system="")

    await b.loop.run("z" * 40)
    await b.loop.run("Go")

    assert [(event.tokens, event.source) for event in b.of(ContextUsage)] == [(20, "estimate"), (76, "actual")]


async def test_a_tool_may_end_the_run(bench: BenchMaker) -> None:
    b = bench([reply(call("finish"))], ScriptedTool("finish", terminate=True))

    report = await b.loop.run("Go")

    assert report.reason == "done"
    assert b.texts[-1] == "tool_result: finish"


async def test_a_paused_answer_is_continued_by_a_user_message(
    bench: BenchMaker,
) -> None:
    b = bench([reply("Searching", stop_reason="pause_turn"), "found it."])

    report = await b.loop.run("Go")

    assert b.sent(1) == ["user: Go", "assistant: Searching", "user: Please continue."]
    assert (report.reason, report.final_text) == ("done", "Searching\nfound it.")
    assert [step.type for step in report.steps] == ["initial", "tool_followup"]


async def test_pauses_count_as_steps(bench: BenchMaker) -> None:
    b = bench([reply("…", stop_reason="pause_turn") for _ in range(9)], max_steps=3)

    assert (await b.loop.run("Go")).reason == "max_steps"
    assert len(b.provider.requests) == 3


async def test_calls_of_a_truncated_answer_do_not_run_and_the_run_continues(bench: BenchMaker) -> None:
    change = ScriptedTool("change")
    cut = reply("Writing", Call("change", {"n": 1}), Call("change", {}, cut=True), stop_reason="max_tokens")
    b = bench([cut, "Shorter then."], change)

    report = await b.loop.run("Go")

    assert report.reason == "done"
    assert change.runs == []
    assert all("output token limit" in result.text and result.is_error for result in b.results)
    assert len(b.results) == 2


async def test_a_truncated_answer_without_calls_is_kept_with_a_warning(bench: BenchMaker) -> None:
    b = bench([reply("It is because", stop_reason="max_tokens")])

    report = await b.loop.run("Why?")

    assert (report.reason, report.final_text) == ("done", "It is because")
    assert [event.code for event in b.of(Warned)] == ["output_limit"]


async def test_an_invalid_history_is_repaired_at_the_start_with_a_warning(bench: BenchMaker) -> None:
    broken = [
        user_message("Before"),
        asking("lost"),
        ToolResultMessage(call_id="ghost", tool_name="x", content=()),
    ]
    b = bench(["Fine."], history=broken)

    await b.loop.run("Go")

    (warning,) = b.of(Warned)
    assert warning.code == "unanswered_tool_calls_repaired"
    assert warning.context == {"calls": ["lost"]}
    assert [line.split(":")[0] for line in b.sent(0)] == ["user", "assistant", "tool_result", "user"]


async def test_layers_and_the_working_directory_are_in_the_prompt(bench: BenchMaker, tmp_path: Path) -> None:
    layer = ContextLayer(name="instructions:x", content="use tabs", priority=60)
    b = bench(["Fine."], system="be good", layers=[layer], workspace=tmp_path, context="and this")

    await b.loop.run("Go")

    stable, dynamic = b.provider.requests[0].system
    assert stable.text == "be good\n\nuse tabs"
    assert dynamic.text.startswith(f"Working directory: {tmp_path}\nPlatform: ")
    assert dynamic.text.endswith("\n\nand this")


async def test_limits_and_options_may_be_changed_between_steps(bench: BenchMaker) -> None:
    tool = ScriptedTool("look").hold()
    b = bench([reply(call("look")), reply(call("look")), "unused"], tool)
    b.loop.set_options(ExecutionOptions(tool_timeout=0.01, grace=0.01))
    b.loop.config.max_steps = 2

    report = await b.loop.run("Go")

    assert (report.reason, report.step_count) == ("max_steps", 2)
    assert [result.is_error for result in b.results] == [True, True]
    assert tool.cancelled == 2
