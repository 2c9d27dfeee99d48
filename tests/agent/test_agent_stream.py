"""A run read event by event, as seed 004 has it (S4-13, S4-46, P29, P31)."""

import asyncio
import gc

import pytest

from tui_agent.agent import (
    AgentLoop,
    AgentStreamEvent,
    Done,
    StepEnd,
    StepStart,
    TextPiece,
    ThinkingPiece,
    ToolCallEnd,
    ToolCallStart,
)
from tui_agent.execution import ExecutionOptions
from tui_agent.protocol.errors import AlreadyRunningError, ConfigurationError
from tui_agent.protocol.messages import Usage
from tui_agent.providers import Think, call, reply

from .harness import BenchMaker, ScriptedTool


async def _all(loop: AgentLoop, text: str = "Go") -> list[AgentStreamEvent]:
    return [event async for event in loop.stream(text)]


async def test_the_sequence_is_that_of_the_seed(bench: BenchMaker) -> None:
    usage = Usage(input_tokens=10, output_tokens=5)
    b = bench([reply(Think("hm"), "Look", call("change", n=1)), "Done."], ScriptedTool("change"))

    events = await _all(b.loop)

    latency = [event.latency_ms for event in events if isinstance(event, ToolCallEnd | StepEnd)]
    assert events == [
        StepStart(0),
        ThinkingPiece("hm"),
        TextPiece("Look"),
        ToolCallStart(0, "call_1", "change", {"n": 1}),
        ToolCallEnd(0, "call_1", latency[0]),
        StepEnd(0, usage, latency[1]),
        StepStart(1),
        TextPiece("Done."),
        StepEnd(1, usage, latency[2]),
        Done(b.loop.history.messages()[-1], b.loop.reports[0]),
    ]
    assert not b.loop.running


async def test_the_sequence_holds_in_the_seeds_own_preset(bench: BenchMaker) -> None:
    options = ExecutionOptions.preset("sdk_loop")
    look = ScriptedTool("look", read_only=True)
    b = bench([reply(call("look", n=1), call("look", n=2)), "Done."], look, options=options)

    kinds = [type(event).__name__ for event in await _all(b.loop)]

    assert kinds[0] == "StepStart"
    assert sorted(kinds[1:5]) == ["ToolCallEnd", "ToolCallEnd", "ToolCallStart", "ToolCallStart"]
    assert kinds[5:] == ["StepEnd", "StepStart", "TextPiece", "StepEnd", "Done"]


async def test_a_call_that_never_executes_has_a_start_all_the_same(bench: BenchMaker) -> None:
    b = bench([reply(call("unknown", n=1)), "Done."])

    events = await _all(b.loop)

    assert events[1] == ToolCallStart(0, "call_1", "unknown", {"n": 1})
    assert isinstance(events[2], ToolCallEnd)


async def test_a_run_without_an_answer_is_done_without_a_response(bench: BenchMaker) -> None:
    b = bench([])

    (*_, done) = await _all(b.loop)

    assert isinstance(done, Done)
    assert done.response is None
    assert done.report.reason == "error"


async def test_a_reader_that_stops_reading_does_not_stop_the_run(bench: BenchMaker) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply("Look", call("change")), "Done."], held)

    async for event in b.loop.stream("Go"):
        if isinstance(event, ToolCallStart):
            break
    gc.collect()
    held.go_on.set()
    while b.loop.running:
        await asyncio.sleep(0)

    assert b.texts[-1] == "assistant: Done."
    assert b.ended.reason == "done"


async def test_leaving_the_context_cancels_the_run_and_waits_for_it(bench: BenchMaker) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply("Look", call("change")), "Done."], held, options=ExecutionOptions(grace=0))

    async with b.loop.stream("Go") as stream:
        async for event in stream:
            if isinstance(event, ToolCallStart):
                break

    assert not b.loop.running
    assert b.ended.reason == "aborted"
    assert [event async for event in stream] == []
    await stream.aclose()


async def test_cancelling_the_reader_cancels_the_run(bench: BenchMaker) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply("Look", call("change"))], held, options=ExecutionOptions(grace=0))

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(_all(b.loop))
        await held.started.wait()
        reading.cancel()

    assert reading.cancelled()
    assert not b.loop.running
    assert b.ended.reason == "aborted"


async def test_what_a_run_raises_is_raised_to_the_reader(bench: BenchMaker) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply(call("change")), "Done."], held)

    with pytest.raises(ConfigurationError, match="empty message"):
        await _all(b.loop, " ")
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await held.started.wait()
        with pytest.raises(AlreadyRunningError):
            await _all(b.loop)
        held.go_on.set()


async def test_a_stream_that_is_never_read_begins_nothing(bench: BenchMaker) -> None:
    b = bench(["unused"])

    stream = b.loop.stream("Go")
    await stream.aclose()

    assert b.provider.left == 1
    assert [event async for event in stream] == []
