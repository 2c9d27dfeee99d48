"""User messages during a run are delivered at the right point, whole, in order and once (S0-14…S0-19)."""

import asyncio

import pytest

from tui_agent.execution import ExecutionOptions, Sequential
from tui_agent.execution.options import SteeringMode
from tui_agent.protocol.events import SteeringDelivered, SteeringRequeued, TurnStarted
from tui_agent.protocol.messages import user_message
from tui_agent.providers import Wait, call, fail, reply

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


async def test_a_steering_message_during_the_final_answer_continues_the_same_run(bench: BenchMaker) -> None:
    speaking, go_on = asyncio.Event(), asyncio.Event()
    b = bench([reply("That is", Wait(go_on, speaking), " all."), "One more thing then."])

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await speaking.wait()
        b.loop.steer("and?")
        go_on.set()

    assert b.texts == ["user: Go", "assistant: That is\n all.", "user: and?", "assistant: One more thing then."]
    assert b.types().count("run.started") == 1


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


async def test_messages_queued_while_idle_precede_the_next_input(bench: BenchMaker) -> None:
    b = bench(["Fine."])
    b.loop.steer("by the way")

    await b.loop.run("Go")

    assert b.texts[:2] == ["user: by the way", "user: Go"]
    assert b.of(SteeringDelivered)[0].boundary == "at the start"


async def test_a_run_without_input_delivers_queued_messages(bench: BenchMaker) -> None:
    b = bench(["One.", "Two.", "Three."])
    b.loop.steer("a")
    b.loop.steer("b")
    b.loop.follow_up("c")

    await b.loop.run()

    assert b.texts == ["user: a", "user: b", "assistant: One.", "user: c", "assistant: Two."]


async def test_continuing_after_results_leaves_follow_ups_for_the_end(bench: BenchMaker) -> None:
    b = bench([reply(call("bash")), "Done.", "And that."], ScriptedTool("bash"), max_steps=1)
    await b.loop.run("Go")
    b.loop.follow_up("later")

    await b.loop.run()

    assert b.texts[2:] == ["tool_result: bash", "assistant: Done."]
    assert [message.text for message in b.loop.waiting_messages] == ["later"]


async def test_a_steering_message_can_be_recalled_until_delivery(bench: BenchMaker) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash")), "Fine."], held)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await held.started.wait()
        first, _ = b.loop.steer("first"), b.loop.steer("second")
        for _ in range(10):  # The executor polls for messages while calls run.
            await asyncio.sleep(0)
        assert b.loop.drop_message(first.id) == first
        held.go_on.set()

    assert b.texts[-2:] == ["user: second", "assistant: Fine."]
    assert not any("first" in text for text in b.texts)
    assert b.loop.waiting_messages == ()


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


async def test_at_the_step_limit_messages_stay_queued(bench: BenchMaker) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash"))], held, max_steps=1, options=ExecutionOptions(steering_mode="after_batch"))

    await _steered_while_held(b, held, "one")

    assert b.ended.reason == "max_steps"
    assert [message.text for message in b.loop.waiting_messages] == ["one"]


async def test_messages_of_an_earlier_session_are_queued_again(bench: BenchMaker) -> None:
    b = bench(["Fine.", "Later."], waiting=(user_message("a", "steer"), user_message("b", "follow_up")))

    await b.loop.run()

    assert b.delivered == ["a", "b"]


async def test_after_a_failure_a_queued_follow_up_begins_the_next_run(bench: BenchMaker) -> None:
    """Only the end of a run drains the queue, so a failure must not leave a message stuck."""
    look = ScriptedTool("look").hold()
    b = bench([reply(call("look")), fail("authentication"), "Now.", "Then."], look)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await look.started.wait()
        b.loop.follow_up("and then this")
        look.go_on.set()
    failed = b.ended.reason
    waited = [message.text for message in b.loop.waiting_messages]
    await b.loop.run("Again")

    assert (failed, waited) == ("error", ["and then this"])
    assert b.delivered == ["and then this"]
    assert b.texts[-4:] == ["user: Again", "assistant: Now.", "user: and then this", "assistant: Then."]
    assert b.loop.waiting_messages == ()
