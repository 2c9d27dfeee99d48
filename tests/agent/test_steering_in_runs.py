"""User messages during a run are delivered at the right point, whole, in order and once (S0-14…S0-19)."""

import asyncio

import pytest

from tui_agent.execution import ExecutionOptions, Sequential
from tui_agent.execution.options import SteeringMode
from tui_agent.protocol.events import SteeringRequeued, TurnStarted
from tui_agent.providers import call, reply

from .harness import Bench, BenchMaker, ScriptedTool


async def _steered_while_held(b: Bench, held: ScriptedTool, *texts: str) -> None:
    """Run the agent and send the texts while the held tool runs."""
    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await held.started.wait()
        for text in texts:
            b.loop.steer(text)
        for _ in range(20):
            await asyncio.sleep(0)
        held.go_on.set()


RUNS: dict[SteeringMode, int] = {
    "between_calls": 1,
    "between_batches": 1,
    "after_batch": 2,
    "before_effects": 1,
    "interrupt": 1,
    "off": 2,
}
"""Return how many of two sequential calls run if a steering message arrives during the first."""


@pytest.mark.parametrize("mode", RUNS)
async def test_in_every_mode_it_is_delivered_once_after_the_results(bench: BenchMaker, mode: SteeringMode) -> None:
    held = ScriptedTool("bash").hold()
    options = ExecutionOptions(strategy=Sequential(), steering_mode=mode)
    b = bench([reply(call("bash", n=1), call("bash", n=2)), "Fine."], held, options=options)

    await _steered_while_held(b, held, "one", "two")

    assert len(held.runs) == RUNS[mode]
    assert b.delivered == ["one", "two"]
    assert [line for line in b.texts if line.startswith("user")] == ["user: Go", "user: one", "user: two"]
    assert len(b.results) == 2


async def test_follow_ups_are_delivered_one_at_a_time_when_the_run_would_end(bench: BenchMaker) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash")), "Done.", "First follow-up.", "Second follow-up."], held)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await held.started.wait()
        b.loop.follow_up("then this")
        b.loop.follow_up("then that")
        held.go_on.set()

    assert b.texts[3:] == [
        "assistant: Done.",
        "user: then this",
        "assistant: First follow-up.",
        "user: then that",
        "assistant: Second follow-up.",
    ]
    assert [event.trigger for event in b.of(TurnStarted)] == ["prompt", "tools", "follow_up", "follow_up"]
    assert b.types().count("run.ended") == 1


async def test_queued_messages_survive_an_abort_and_are_delivered_by_the_next_run(bench: BenchMaker) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash"), call("bash")), "Fine.", "And that."], held, options=ExecutionOptions(grace=0))

    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await held.started.wait()
        b.loop.steer("wait")
        b.loop.follow_up("later")
        for _ in range(20):
            await asyncio.sleep(0)
        b.loop.abort("cancelled by the user")

    assert running.result().reason == "aborted"
    assert [message.text for message in b.loop.waiting_messages] == ["wait", "later"]
    assert b.delivered == []
    assert [event.text for event in b.of(SteeringRequeued)] == ["wait"]

    await b.loop.run("Again")

    assert b.texts[-5:] == ["user: wait", "user: Again", "assistant: Fine.", "user: later", "assistant: And that."]
