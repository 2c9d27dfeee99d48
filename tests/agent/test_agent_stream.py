"""A run read event by event (S4-13, S4-46)."""

import asyncio
import contextlib
import gc
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tui_agent.agent import (
    AgentLoop,
    AgentStreamEvent,
    Done,
    StepEnd,
    StepStart,
    TextPiece,
    ToolCallEnd,
    ToolCallStart,
)
from tui_agent.protocol.events import RunEnded
from tui_agent.providers import call, reply
from tui_agent.tools.bash_tool import BashTool
from tui_agent.tools.workspace import Workspace

from .harness import BenchMaker, ScriptedTool

Leave = Callable[[AgentLoop], Awaitable[None]]


async def leave_by_break(loop: AgentLoop) -> None:
    async for event in loop.stream("Go"):
        if isinstance(event, ToolCallStart):
            break


async def leave_by_an_error_that_is_kept(loop: AgentLoop) -> None:
    try:
        await fail_while_reading(loop)
    except ZeroDivisionError as error:
        KEPT.append(error)


async def fail_while_reading(loop: AgentLoop) -> None:
    async for event in loop.stream("Go"):
        if isinstance(event, ToolCallStart):
            raise ZeroDivisionError


async def leave_a_held_stream(loop: AgentLoop) -> None:
    KEPT.append(stream := loop.stream("Go"))
    async for event in stream:
        if isinstance(event, ToolCallStart):
            break
    assert [event async for event in stream] == [], "the run was abandoned"


async def leave_a_closed_generator(loop: AgentLoop) -> None:
    async with contextlib.aclosing(wrapped(loop)) as events:
        async for event in events:
            if isinstance(event, ToolCallStart):
                break


async def leave_a_stream_that_was_read_by_hand(loop: AgentLoop) -> None:
    stream = loop.stream("Go")
    while not isinstance(await anext(stream), ToolCallStart):
        pass
    del stream


async def leave_a_circle(loop: AgentLoop) -> None:
    circle: list[object] = [events := aiter(loop.stream("Go"))]
    circle.append(circle)
    while not isinstance(await anext(events), ToolCallStart):
        pass
    del circle, events
    gc.collect()


async def be_cancelled_between_two_events(loop: AgentLoop) -> None:
    async def read() -> None:
        async for event in loop.stream("Go"):
            if isinstance(event, ToolCallStart):
                await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read())
        while not loop.history.open_calls:
            await asyncio.sleep(0)
        reading.cancel()


async def run_out_of_time(loop: AgentLoop) -> None:
    async def read() -> None:
        async with asyncio.timeout(None) as limit:
            async for event in loop.stream("Go"):
                if isinstance(event, ToolCallStart):
                    limit.reschedule(0)

    with pytest.raises(TimeoutError):
        await read()


async def wrapped(loop: AgentLoop) -> AsyncGenerator[AgentStreamEvent]:
    async for event in loop.stream("Go"):
        yield event


KEPT: list[object] = []
"""References that a test keeps alive."""

LEAVE = [
    leave_by_break,
    leave_by_an_error_that_is_kept,
    leave_a_held_stream,
    leave_a_closed_generator,
    leave_a_stream_that_was_read_by_hand,
    leave_a_circle,
    be_cancelled_between_two_events,
    run_out_of_time,
]


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    yield
    KEPT.clear()


@pytest.mark.parametrize("leave", LEAVE)
async def test_leaving_a_stream_aborts_the_run_and_leaves_everything_whole_for_the_next(
    bench: BenchMaker, leave: Leave
) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply("Look", call("change")), "Again."], held)

    await leave(b.loop)
    report = await b.loop.run("And now?")

    assert [ended.reason for ended in b.of(RunEnded)] == ["aborted", "done"]
    assert report.final_text == "Again."
    assert len(b.provider.requests) == 2, "none for the abandoned run"
    assert [message.role for message in b.provider.requests[1].messages] == ["user", "assistant", "tool_result", "user"]
    assert (len(held.runs), held.cancelled) == (1, 1)


async def test_everything_else_waits_for_an_abandoned_run(bench: BenchMaker) -> None:
    b = bench([reply("Look", call("change")), "Done."], ScriptedTool("change").hold(), ScriptedTool("look"))

    await leave_by_break(b.loop)
    result = await b.loop.run_command("look", {}, "!look")

    assert result.text == "look"

    await leave_by_break_at(b.loop, StepStart)
    assert not await b.loop.compact(), "it is too short for that"


async def leave_by_break_at(loop: AgentLoop, kind: type[AgentStreamEvent]) -> None:
    async for event in loop.stream("Go"):
        if isinstance(event, kind):
            break


async def test_a_context_keeps_a_stream_open_between_two_loops(bench: BenchMaker) -> None:
    held = ScriptedTool("change").hold()
    b = bench([reply("Look", call("change")), "Done."], held)

    async with b.loop.stream("Go") as stream:
        async for event in stream:
            if isinstance(event, ToolCallStart):
                break
        held.go_on.set()
        rest = [type(event) async for event in stream]

    assert rest == [ToolCallEnd, StepEnd, StepStart, TextPiece, StepEnd, Done]
    assert b.ended.reason == "done"


async def test_an_iterator_can_be_read_in_several_loops(bench: BenchMaker) -> None:
    b = bench([reply("Look", call("change")), "Done."], ScriptedTool("change"))

    events = aiter(stream := b.loop.stream("Go"))
    assert aiter(stream) is events, "one reader reads"
    async for event in events:
        if isinstance(event, ToolCallStart):
            break
    rest = [type(event) async for event in events]

    assert rest == [ToolCallEnd, StepEnd, StepStart, TextPiece, StepEnd, Done]
    assert b.ended.reason == "done"


async def test_a_stream_may_be_dropped_in_another_thread(bench: BenchMaker) -> None:
    b = bench([reply("Look", call("change")), "unused"], ScriptedTool("change").hold())
    streams = [b.loop.stream("Go")]
    while not isinstance(await anext(streams[0]), ToolCallStart):
        pass

    await asyncio.to_thread(streams.clear)
    while b.loop.running:
        await asyncio.sleep(0)

    assert b.ended.reason == "aborted"


async def test_an_abandoned_run_leaves_no_process(bench: BenchMaker, tmp_path: Path) -> None:
    bash = BashTool(Workspace(tmp_path, spool_dir=tmp_path / "spool"), is_read_only_command=lambda *_: False)
    os.mkfifo(tmp_path / "pids")
    command = "sleep 1000 & echo $! $$ > pids; wait"
    b = bench([reply(call("bash", command=command)), "Again."], bash)

    pids: list[int] = []
    async for event in b.loop.stream("Go"):
        if isinstance(event, ToolCallStart):
            pids += map(int, (await asyncio.to_thread((tmp_path / "pids").read_text)).split())
            break
    await b.loop.run("And now?")

    assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in pids)
    assert [result.is_error for result in b.results] == [True]
