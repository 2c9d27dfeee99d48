import asyncio
from typing import Any

import pytest

from tests.execution.bench import Bench, bench_of, settled
from tests.execution.kit import Doors, FakePolicy, Ran, ScriptedTool, Steering, call, calls, run, sleeping
from tests.support.virtual_clock import run_virtual
from tui_agent.execution import ApprovalGate, Auto, Batched, ExecutionOptions, HookBus, Parallel, Sequential
from tui_agent.execution.options import SteeringMode
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ApprovalRequested, ToolStarted
from tui_agent.protocol.messages import JsonObject, UserMessage
from tui_agent.protocol.permissions import ApprovalDecision
from tui_agent.protocol.tool import ToolContext, ToolResult


async def steered(asked: list[str], steering: Steering, **options: Any) -> Ran:
    tools = [ScriptedTool("look", read_only=True), ScriptedTool()]
    return await run(tools, calls(*asked), ExecutionOptions(**options), steering=steering)


@pytest.mark.parametrize(
    ("options", "polls"),
    [
        ({"strategy": Sequential()}, 4),
        ({"strategy": Batched(2)}, 2),
        ({"strategy": Batched(3)}, 2),
        ({"strategy": Parallel()}, 1),
        ({"strategy": Auto(), "steering_mode": "after_batch"}, 1),
        ({"strategy": Auto()}, 4),
        ({"strategy": Auto(), "steering_mode": "between_calls"}, 4),
        ({"strategy": Parallel(), "steering_mode": "between_calls"}, 4),
        ({"strategy": Sequential(), "steering_mode": "between_batches"}, 4),
        ({"strategy": Sequential(), "steering_mode": "after_batch"}, 1),
        ({"strategy": Auto(), "steering_mode": "off"}, 0),
    ],
)
async def test_each_mode_polls_exactly_at_its_boundaries(options: dict[str, Any], polls: int) -> None:
    """`Auto` polls before each effect but the first, and at the end."""
    steering = Steering()

    ran = await steered(["act"] * 4, steering, **options)

    assert steering.polls == polls
    assert ran.result.steering_messages is None
    assert ran.statuses == ["ok"] * 4


async def test_before_effects_leaves_the_first_call_and_invalid_ones_alone() -> None:
    steering = Steering()
    steering.say()

    ran = await steered(["act", "nothing", "act"], steering)

    assert ran.statuses == ["ok", "not_found", "skipped_steering"]


async def test_before_effects_still_reports_the_fault_of_a_later_call() -> None:
    ran = await steered(["act", "act", "nothing"], Steering(1), strategy=Sequential(), steering_mode="before_effects")

    assert ran.statuses == ["ok", "skipped_steering", "not_found"]


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


@pytest.mark.parametrize("mode", ["between_calls", "between_batches", "interrupt", "before_effects", "after_batch"])
async def test_there_is_no_poll_before_the_last_call_is_known(mode: SteeringMode) -> None:
    """The next call may be a read whose work would be lost, or the answer may still break off."""
    steering = Steering()
    steering.say()
    look = ScriptedTool("look", read_only=True)
    async with bench_of([look], ExecutionOptions(steering_mode=mode), get_steering=steering) as bench:
        for number in range(2):
            bench.scheduler.submit(call("look", f"c{number}"))
            await settled()
            bench.scheduler.notify_steering()
            await settled()
        assert bench.ended() == {"c0": "ok", "c1": "ok"}
        assert steering.polls == 0
        await bench.scheduler.finish()


def test_interrupt_cancels_interruptible_calls_and_skips_the_rest() -> None:
    steering = Steering()

    async def speak(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(1)
        steering.say()
        await asyncio.sleep(9)
        return ToolResult.of_text("spoke")

    async def work() -> tuple[Ran, float]:
        tools = [
            ScriptedTool("long", sleeping(1000), safe=True, interruptible=True),
            ScriptedTool("speak", speak, safe=True),
            ScriptedTool("look", read_only=True),
            ScriptedTool(),
        ]
        loop = asyncio.get_running_loop()
        began = loop.time()
        asked = calls("long", "speak", "act", "look", "nothing")
        ran = await run(tools, asked, ExecutionOptions(steering_mode="interrupt"), steering=steering)
        return ran, loop.time() - began

    ran, took = run_virtual(work())

    assert ran.statuses == ["interrupted", "ok", "skipped_steering", "skipped_steering", "not_found"]
    assert 9.9 < took < 10.2
    assert "the user sent a message" in ran.texts[0]


def test_interrupt_polls_repeatedly_and_at_the_end() -> None:
    steering = Steering()

    async def work() -> Ran:
        options = ExecutionOptions(steering_mode="interrupt", interrupt_interval=0.5)
        return await run([ScriptedTool(behaviour=sleeping(2.2))], calls("act"), options, steering=steering)

    ran = run_virtual(work())

    assert ran.statuses == ["ok"]
    assert steering.polls == 6


def test_auto_between_batches_polls_whenever_nothing_runs() -> None:
    steering = Steering()

    async def work() -> Ran:
        tools = [
            ScriptedTool("look", sleeping(1), read_only=True),
            ScriptedTool("search", sleeping(2), read_only=True),
            ScriptedTool(behaviour=sleeping(1)),
        ]
        options = ExecutionOptions(steering_mode="between_batches")
        return await run(tools, calls("look", "search", "act"), options, steering=steering)

    ran = run_virtual(work())

    assert ran.statuses == ["ok"] * 3
    assert steering.polls == 2, "after the two concurrent calls, and at the end"


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


@pytest.mark.parametrize("options", [{"strategy": Sequential()}, {"strategy": Batched(1)}, {"strategy": Auto()}])
@pytest.mark.parametrize("first", ["unknown", "denied", "vetoed"])
async def test_a_first_call_that_never_ran_is_a_boundary_like_any_other(options: dict[str, Any], first: str) -> None:
    hooks = HookBus()
    hooks.before_tool(lambda question: question.call.name != "vetoed")
    tools = [ScriptedTool("denied"), ScriptedTool("vetoed"), ScriptedTool()]
    policy = FakePolicy({"denied": "deny"})

    ran = await run(
        tools, calls(first, "act"), ExecutionOptions(**options), steering=Steering(1), hooks=hooks, policy=policy
    )

    assert ran.statuses[1] == "skipped_steering"


@pytest.mark.parametrize("mode", ["before_effects", "between_calls"])
async def test_only_the_interrupt_mode_cancels_running_calls(mode: Any) -> None:
    doors, steering = Doors(), Steering(at_poll=1)
    tools = [ScriptedTool("wait", doors, read_only=True, interruptible=True), ScriptedTool()]
    async with bench_of(tools, ExecutionOptions(steering_mode=mode), get_steering=steering) as bench:
        bench.scheduler.submit_all(calls("wait", "wait", "act"))
        async with asyncio.TaskGroup() as group:
            finishing = group.create_task(bench.scheduler.finish())
            await doors.until("c0", "c1")
            if mode == "between_calls":
                doors.open("c0")
            else:
                bench.scheduler.notify_steering()
            await settled()
            assert steering.polls == 1
            doors.open("c0", "c1")

    assert [report.status for report in finishing.result().reports] == ["ok", "ok", "skipped_steering"]


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


@pytest.mark.parametrize("mode", ["between_calls", "between_batches", "after_batch", "off"])
async def test_in_other_modes_a_question_does_not_yield(mode: SteeringMode) -> None:
    steering = Steering()
    steering.say()
    gate = ApprovalGate(approver=lambda request: ApprovalDecision(decision="approve"))
    options = ExecutionOptions(strategy=Parallel(), steering_mode=mode)

    ran = await run(
        [ScriptedTool()], calls("act"), options, policy=FakePolicy({"act": "ask"}), gate=gate, steering=steering
    )

    assert ran.statuses == ["ok"]
