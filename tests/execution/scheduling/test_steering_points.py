import asyncio
from typing import Any

import pytest

from tests.execution.bench import Bench, bench_of, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.validating_bus import ValidatingBus
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ApprovalGate, Auto, ExecutionOptions, HookBus, Parallel
from tui_agent.execution.options import SteeringMode
from tui_agent.execution.scheduling.concurrency_gate import SteeringPoll
from tui_agent.protocol.bus import Publisher
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ApprovalRequested, ToolStarted
from tui_agent.protocol.messages import JsonObject, UserMessage, user_message
from tui_agent.protocol.tool import ToolContext, ToolResult

SLOW_LOOKS: dict[str, dict[str, Any]] = {
    "auto, between calls": {"strategy": Auto(), "steering_mode": "between_calls"},
    "auto, between batches": {"strategy": Auto(), "steering_mode": "between_batches"},
    "parallel, one at a time": {"strategy": Parallel(), "steering_mode": "between_calls", "max_concurrency": 1},
}


@pytest.mark.parametrize("slow", ["getter", "observer", "both"])
@pytest.mark.parametrize("options", SLOW_LOOKS)
def test_no_call_starts_between_a_boundary_and_its_poll(options: str, slow: str) -> None:
    steering, hooks = Steering(1), HookBus()

    async def get() -> list[UserMessage]:
        await asyncio.sleep(0 if slow == "observer" else 5)
        return await steering()

    async def watch(ended: object) -> None:
        await asyncio.sleep(5)

    if slow != "getter":
        hooks.add("after_tool_observer", watch)
    act = ScriptedTool(behaviour=sleeping(1))

    chosen = ExecutionOptions(**SLOW_LOOKS[options])
    ran = run_virtual(run([act], calls("act", "act", "act"), chosen, hooks=hooks, steering=get))

    assert ran.statuses == ["ok", "skipped_steering", "skipped_steering"]
    assert act.calls == ["c0"]


@pytest.mark.parametrize("options", SLOW_LOOKS)
def test_a_call_held_by_a_poll_yields_to_an_abort(options: str) -> None:
    token = CancellationToken()

    async def get() -> list[UserMessage]:
        token.cancel("enough")
        await asyncio.Event().wait()
        return []

    act = ScriptedTool()
    chosen = ExecutionOptions(**SLOW_LOOKS[options])
    ran = run_virtual(run([act], calls(*["act"] * 3), chosen, cancellation=token, steering=get))

    assert ran.statuses == ["ok", "cancelled", "cancelled"]
    assert act.calls == ["c0"]


@pytest.mark.parametrize("moment", ["before it noticed", "while it tidies up"])
async def test_a_message_that_arrives_during_cancellation_stays_queued(moment: str) -> None:
    steering = Steering()
    bench: Bench

    async def tidy(arguments: JsonObject, context: ToolContext) -> ToolResult:
        try:
            await asyncio.Event().wait()
        finally:
            bench.scheduler.notify_steering()
        return ToolResult()

    bench = Bench([ScriptedTool(behaviour=tidy)], get_steering=steering)

    async def work() -> None:
        async with bench.scheduler as scheduler:
            scheduler.submit_all(calls("act"))
            await scheduler.finish()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await bench.until(ToolStarted)
        steering.say()
        task.cancel()
        if moment == "before it noticed":
            bench.scheduler.notify_steering()

    assert task.cancelled()
    assert steering.waiting
    assert bench.ended() == {"c0": "cancelled"}


async def test_a_call_is_decided_again_after_a_poll() -> None:
    policy = FakePolicy()
    act = ScriptedTool()

    async def forbid() -> list[UserMessage]:
        policy.verdicts["act"] = "deny"
        return []

    options = ExecutionOptions(strategy=Parallel(), steering_mode="before_effects")
    ran = await run(
        [ScriptedTool("other"), act],
        calls("other", "act"),
        options,
        policy=policy,
        steering=forbid,  # pyright: ignore[reportArgumentType]
    )

    assert ran.statuses == ["ok", "denied_policy"]
    assert act.calls == []


async def test_a_question_asked_during_the_stream_is_withdrawn_once_the_message_is_complete() -> None:
    gate, doors, steering, policy = ApprovalGate(interactive=True), Doors(), Steering(), FakePolicy()
    tools = [ScriptedTool("look", doors, read_only=True), ScriptedTool("peek", read_only=True)]
    options = ExecutionOptions(max_concurrency=1)
    async with bench_of(tools, options, gate=gate, policy=policy, get_steering=steering) as bench:
        bench.scheduler.submit(call("look", "c0"))
        bench.scheduler.submit(call("peek", "c1"))
        await doors.until("c0")
        policy.verdicts["peek"] = "ask"
        doors.open("c0")
        await bench.until(ApprovalRequested)
        steering.say()
        bench.scheduler.notify_steering()
        await settled()
        assert len(gate.pending) == 1, "the model may yet discard the message"
        result = await bench.scheduler.finish()

    assert [report.status for report in result.reports] == ["ok", "skipped_steering"]
    assert result.steering_messages


@pytest.mark.parametrize("mode", ["before_effects", "interrupt"])
async def test_no_question_is_asked_while_a_message_waits(mode: SteeringMode) -> None:
    steering = Steering()
    steering.say()
    options = ExecutionOptions(steering_mode=mode)

    ran = await run(
        [ScriptedTool()], calls("act", "act"), options, policy=FakePolicy({"act": "ask"}), steering=steering
    )

    assert ran.of(ApprovalRequested) == []
    assert ran.statuses == ["skipped_steering"] * 2
    assert steering.polls == 1


def poll_of(getter: Any, bus: Publisher) -> SteeringPoll:
    return SteeringPoll(getter, bus, CancellationToken(), grace=2.0)


async def test_two_concurrent_polls_run_in_sequence() -> None:
    inside = 0

    async def getter() -> list[UserMessage]:
        nonlocal inside
        inside += 1
        assert inside == 1
        await asyncio.sleep(0)
        inside -= 1
        return [user_message("hi")]

    poll = poll_of(getter, ValidatingBus(whole=False))
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(poll.poll())

    assert len(poll.found) == 1


async def test_a_getter_that_raises_is_published_and_counts_as_empty() -> None:
    async def broken() -> list[UserMessage]:
        raise OSError("gone")

    bus = ValidatingBus(whole=False)
    with bus.subscribe() as subscription:
        assert not await poll_of(broken, bus).poll()
        events = [envelope.event for envelope in subscription.drain()]

    assert [getattr(event, "code", "") for event in events] == ["steering_failed"]


async def test_a_system_notice_is_never_attributed_to_the_user() -> None:
    notice = poll_of(Steering(at_poll=1, kind="notice"), ValidatingBus(whole=False))
    person = poll_of(Steering(at_poll=1), ValidatingBus(whole=False))
    await notice.poll()
    await person.poll()

    assert notice.reason == "notice"
    assert person.reason == "steering"


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ("look here", ["look here"]),
        (["first", "second"], ["first", "second"]),
        (("first", user_message("second")), ["first", "second"]),
        (user_message("one"), ["one"]),
        (dict.fromkeys(["first", None, " ", "second"]).keys(), ["first", "second"]),
        ("", []),
        ([], []),
        (None, []),
        ([None], []),
        ("half \ud83d", ["half \ufffd"]),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_getter_returns_texts_or_messages_one_or_several(answer: Any, texts: list[str], is_async: bool) -> None:
    async def later() -> Any:
        return answer

    bus = ValidatingBus(whole=False)
    with bus.subscribe(merge=False) as subscription:
        poll = poll_of(later if is_async else lambda: answer, bus)

        assert await poll.poll() is bool(texts)
        assert subscription.drain() == []
    assert [message.text for message in poll.found] == texts
    assert all(isinstance(message, UserMessage) for message in poll.found)
    assert poll.reason == ("steering" if texts else "notice")


@pytest.mark.parametrize("answer", [5, b"abc", {"text": "abc"}, [object()], True])
async def test_a_getter_that_returns_no_messages_is_published_and_counts_as_empty(answer: Any) -> None:
    bus = ValidatingBus(whole=False)
    with bus.subscribe(merge=False) as subscription:
        poll = poll_of(lambda: answer, bus)

        assert not await poll.poll()
        warned = [envelope.event for envelope in subscription.drain()]

    assert [event.type for event in warned] == ["warning"]
