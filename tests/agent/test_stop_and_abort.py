"""Stop after this step, abort now, cancel the task: each ends the run once and leaves everything whole."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.support.examples import sample
from tests.support.table import table
from tests.support.validating_bus import ValidatingBus
from tui_agent.agent import AgentLoop, AgentLoopConfig
from tui_agent.execution import ApprovalGate, ExecutionOptions
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    Noticed,
    ToolEnded,
    Warned,
)
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.provider import ModelInfo, ModelRequest, StreamEvent, TextDelta
from tui_agent.providers import ScriptedProvider, Think, Wait, call, fail, reply

from .fakes import FakePolicy
from .harness import AT_ONCE, Bench, BenchMaker, ScriptedTool

QUICK = ExecutionOptions(grace=0)


async def _braked(b: Bench, when: asyncio.Event, brake: str) -> None:
    """Run the agent and stop or abort it once the event is set."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(b.loop.run("Go"))
        await when.wait()
        if brake == "abort":
            b.loop.abort("enough")
        elif brake == "stop":
            b.loop.stop()
        else:
            running.cancel()


@table(
    ("before", "texts", "is_discarded"),
    [
        ([Think("secret"), "Half a th"], ["assistant: Half a th"], False),
        ([Think("hm")], [], True),
        ([], [], False),
    ],
)
async def test_an_abort_closes_the_stream_and_keeps_the_text_so_far(
    bench: BenchMaker, before: list[Any], texts: list[str], is_discarded: bool
) -> None:
    reached = asyncio.Event()
    b = bench([reply(*before, Wait(asyncio.Event(), reached), "ought")])

    await _braked(b, reached, "abort")

    assert b.texts == ["user: Go", *texts]
    assert (b.ended.reason, b.ended.error) == ("aborted", "enough")
    assert b.provider.closed_early == 1
    assert [event.text for event in b.of(Noticed)] == ["The run ends now: enough."]
    assert ("message.discarded" in b.types()) is is_discarded


@pytest.mark.parametrize("brake", ["abort", "cancel"])
async def test_running_calls_end_with_results(bench: BenchMaker, brake: str) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash"), call("bash")), "unused"], held, options=QUICK)

    await _braked(b, held.started, brake)

    assert held.cancelled == 1
    assert [event.status for event in b.of(ToolEnded)] == ["cancelled", "cancelled"]
    assert (b.ended.reason, b.ended.steps) == ("aborted", 1)
    assert not b.loop.running


async def test_a_retry_delay_ends_at_once(bench: BenchMaker) -> None:
    for brake, reason in (("abort", "aborted"), ("stop", "stopped"), ("cancel", "aborted")):
        b = bench([fail("overloaded", retry_after=100)])
        waiting = asyncio.Event()
        _when(b.bus, "step.retry", waiting.set)

        await _braked(b, waiting, brake)

        assert b.ended.reason == reason
        assert b.types()[-3:] == ["step.ended", "turn.ended", "run.ended"]


async def test_a_failure_after_a_stop_is_not_retried(bench: BenchMaker) -> None:
    speaking, go_on = asyncio.Event(), asyncio.Event()
    b = bench([reply("Half", Wait(go_on, speaking), fail())])

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await speaking.wait()
        b.loop.stop()
        go_on.set()

    assert (b.ended.reason, b.texts[-1]) == ("stopped", "assistant: Half")


async def test_a_callers_token_that_is_already_set_lets_nothing_start(bench: BenchMaker) -> None:
    token = CancellationToken()
    token.cancel("over")
    b = bench(["unused"], cancellation=token)

    report = await b.loop.run("Go")

    assert report.reason == "aborted"
    assert b.texts == ["user: Go"]


async def test_destroying_an_agent_aborts_its_run(bench: BenchMaker) -> None:
    held = ScriptedTool("bash").hold()
    b = bench([reply(call("bash"))], held, options=QUICK)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        await held.started.wait()
        b.loop.destroy("closed")

    assert b.ended.reason == "aborted"
    assert "agent.destroyed" in b.types()


async def test_a_fault_of_the_provider_is_raised_with_the_run_ended_and_the_conversation_whole(
    bench: BenchMaker,
) -> None:
    class FaultyProvider(ScriptedProvider):
        """Provider that raises an exception that no provider may raise."""

        async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
            yield TextDelta("Half")
            raise ValueError("a bug")

    b = bench([])
    b.loop.provider = FaultyProvider(model=ModelInfo("faulty"))

    with pytest.raises(ValueError, match="a bug"):
        await b.loop.run("Go")

    assert b.ended.reason == "error"
    assert b.ended.error == "Internal error: ValueError: a bug. The conversation was kept."
    assert b.texts == ["user: Go", "assistant: Half"]
    assert not b.loop.running


class BrakingBus(ValidatingBus):
    """Bus that calls a function once it has published a number of events."""

    def __init__(self, number: int) -> None:
        super().__init__(whole=False)
        self.left = number
        self.brake = lambda: None

    def publish(self, event: AgentEvent, origin: Origin | None = None) -> None:
        super().publish(event, origin)
        self.left -= 1
        if self.left == 0:
            self.brake()


def _scripted_run(bus: EventBus) -> Bench:
    """Return an agent whose run has it all: thinking, early and late calls, a failure, questions, an empty answer."""
    provider = ScriptedProvider(
        [
            reply(Think("hm"), "Looking", call("look"), call("bash"), call("look")),
            reply("Half", call("look"), fail()),
            reply("Whole", call("bash"), call("bash")),
            reply(Think("only")),
            "Done.",
            "And that.",
        ]
    )
    gate = ApprovalGate(interactive=True)
    tools = (ScriptedTool("look", read_only=True), ScriptedTool("bash"))
    loop = AgentLoop(
        AgentLoopConfig(
            provider=provider, tools=tools, bus=bus, policy=FakePolicy(), gate=gate, options=QUICK, retry=AT_ONCE
        )
    )
    return Bench(loop, provider, bus)


async def _answer_questions(b: Bench) -> None:
    """Act as the user: approve every question, steer at the first and queue a follow-up."""
    said = False
    with b.bus.subscribe(merge=False, since=0) as subscription:
        async for batch in subscription.batches():
            for envelope in batch:
                if isinstance(envelope.event, ApprovalRequested):
                    if not said:
                        b.loop.follow_up("and then")
                        b.loop.steer("by the way")
                        said = True
                    b.loop.resolve_approval(envelope.event.request_id, ApprovalDecision(decision="approve"))
                if envelope.type == "run.ended":
                    return


async def _run_to_its_end(bus: EventBus, brake: Callable[[Bench, "asyncio.Task[object]"], Awaitable[None]]) -> Bench:
    """Run the script with a user who answers and an action that stops the run."""
    b = _scripted_run(bus)
    async with asyncio.TaskGroup() as group:
        person = group.create_task(_answer_questions(b))
        running = group.create_task(b.loop.run("Go"))
        await brake(b, running)
        await asyncio.wait([running])
        person.cancel()
    return b


def _judge_braked(b: Bench) -> None:
    b.judge()
    assert not b.loop.running
    assert b.of(Warned) == []
    texts = [*(message.text for message in b.loop.waiting_messages), *b.delivered]
    assert len(texts) == len(set(texts))
    assert b.types().count("run.started") == b.types().count("run.ended") <= 1


def _pull(b: Bench, running: "asyncio.Task[object]", brake: str) -> None:
    {"abort": b.loop.abort, "stop": b.loop.stop, "cancel": running.cancel}[brake]()


@pytest.mark.slow
@table("brake", ["abort", "cancel", "stop"])
async def test_everything_is_whole_after_a_stop_at_any_event(brake: str) -> None:
    async def no_brake(_b: Bench, _running: "asyncio.Task[object]") -> None:
        """Let it run."""

    whole = await _run_to_its_end(ValidatingBus(whole=False), no_brake)
    _judge_braked(whole)
    assert whole.ended.reason == "done"
    assert len(whole.events) > 80

    for number in sample(range(2, len(whole.events)), 3):
        bus = BrakingBus(number)

        async def at_an_event(b: Bench, running: "asyncio.Task[object]", bus: BrakingBus = bus) -> None:
            bus.brake = lambda: _pull(b, running, brake)

        _judge_braked(await _run_to_its_end(bus, at_an_event))


@pytest.mark.slow
@table("brake", ["abort", "cancel", "stop"])
async def test_everything_is_whole_after_a_stop_at_any_turn_of_the_event_loop(brake: str) -> None:
    for number in sample(range(120), 4):

        async def after_a_while(b: Bench, running: "asyncio.Task[object]", number: int = number) -> None:
            for _ in range(number):
                await asyncio.sleep(0)
            _pull(b, running, brake)

        b = await _run_to_its_end(ValidatingBus(whole=False), after_a_while)
        _judge_braked(b)


def _when(bus: EventBus, kind: str, act: Callable[[], object]) -> None:
    """Call a function once an event of this type is published."""
    publish = bus.publish

    def told(event: AgentEvent, origin: Origin | None = None) -> None:
        publish(event, origin)
        if event.type == kind:
            act()

    bus.publish = told
