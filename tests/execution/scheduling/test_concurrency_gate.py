import asyncio
from dataclasses import replace

import pytest

from tests.execution.bench import bench_of, settled
from tests.execution.kit import Doors, FakePolicy, ScriptedTool, Steering, call, calls
from tests.execution.stage_kit import Stand
from tui_agent.execution import ExecutionOptions
from tui_agent.execution.outcomes import skipped
from tui_agent.execution.scheduling.concurrency_gate import ConcurrencyGate, SteeringPoints
from tui_agent.execution.scheduling.conflict_order import ConflictOrder
from tui_agent.execution.scheduling.steering_poll import SteeringPoll
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.events import ToolBlockedOn


def keeper_of(
    stands: list[Stand], *, ordered: bool = True, permits: int | None = None, steering: Steering | None = None
) -> ConcurrencyGate:
    publisher = stands[0].services.publisher
    states = [stand.state for stand in stands]
    for index, state in enumerate(states):
        state.received = replace(state.received, index=index)
    poll = SteeringPoll(steering, publisher, CancellationToken(), grace=2.0)
    boundaries = SteeringPoints(ExecutionOptions(), poll, states, has_waves=False)
    keeper = ConcurrencyGate(ConflictOrder() if ordered else None, boundaries, permits, publisher)
    for state in states:
        keeper.add(state, settled=True)
    keeper.close()
    return keeper


async def test_a_free_call_gets_its_turn_without_waiting() -> None:
    stand = Stand()
    keeper = keeper_of([stand])

    assert await keeper.take(stand.state) is None
    assert not stand.state.admission.stale
    assert stand.state.turn.holds_permit


async def test_a_call_waits_for_its_predecessor_and_is_stale_afterwards() -> None:
    first, second = Stand(), Stand()
    keeper = keeper_of([first, second])
    await keeper.take(first.state)

    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.take(second.state))
        await asyncio.sleep(0)
        assert not second.state.turn.holds_permit
        keeper.leave(first.state)

    assert second.state.turn.holds_permit
    assert second.state.admission.stale
    assert [event.what for event in first.events(ToolBlockedOn)] == ["group"]


async def test_without_an_order_only_slots_count() -> None:
    first, second = Stand(), Stand()
    keeper = keeper_of([first, second], ordered=False, permits=1)
    keeper.settle(first.state)
    keeper.change(first.state)
    await keeper.take(first.state)

    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.take(second.state))
        await asyncio.sleep(0)
        assert not second.state.turn.holds_permit
        keeper.give_back(first.state)
        keeper.give_back(first.state)

    assert second.state.turn.holds_permit
    assert [event.what for event in first.events(ToolBlockedOn)] == ["slot"]


async def test_steering_never_skips_the_first_call_but_the_next_one() -> None:
    first, second = Stand(), Stand()
    steering = Steering()
    steering.say()
    keeper = keeper_of([first, second], ordered=False, steering=steering)

    assert await keeper.take(first.state) is None
    refusal = await keeper.take(second.state)

    assert refusal == skipped("steering")
    assert second.state.turn.holds_permit, "until it leaves"


async def test_a_call_that_cannot_run_blocks_no_other() -> None:
    refused, other = Stand(asked=call("nothing")), Stand()
    keeper = keeper_of([refused, other])

    assert await keeper.take(other.state) is None
    assert not other.state.turn.waited


@pytest.mark.parametrize("what", ["group", "slot"])
async def test_a_call_that_waited_is_decided_by_the_rules_at_its_start(what: str) -> None:
    doors, policy = Doors(), FakePolicy()
    first = ScriptedTool("first", doors, read_only=what == "slot")
    second = ScriptedTool("second", read_only=True)
    options = ExecutionOptions(max_concurrency=1 if what == "slot" else 2)
    async with bench_of([first, second], options, policy=policy) as bench:
        bench.scheduler.submit_all(calls("first", "second"))
        async with asyncio.TaskGroup() as group:
            group.create_task(bench.scheduler.finish())
            await bench.until(ToolBlockedOn)
            await doors.until("c0")
            policy.verdicts["second"] = "deny"
            doors.open("c0")

        assert [event.what for event in bench.events(ToolBlockedOn)] == [what]
        assert bench.ended() == {"c0": "ok", "c1": "denied_policy"}
    assert second.calls == []


async def test_a_slot_is_released_once_however_often_requested() -> None:
    stands = [Stand(), Stand(), Stand()]
    first, second, third = (stand.state for stand in stands)
    keeper = keeper_of(stands, ordered=False, permits=1)
    await keeper.take(first)
    keeper.give_back(first)
    keeper.leave(first)
    await keeper.take(second)
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(keeper.take(third))
        await settled()
        assert not taking.done()
        keeper.leave(second)

    assert third.turn.holds_permit
