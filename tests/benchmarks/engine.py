"""What the engine costs: `python -m tests.benchmarks.engine [overhead] [makespan]`, run by hand.

`overhead`: CPU time of a call beyond what bare asyncio takes for the same tool calls, with one subscriber that reads
everything, for messages of 1 to 1,000 calls. `makespan`: how much longer random conflict graphs of 50 ms tools take
than their longest chain. Figures are for comparing, not for passing; the goals stand beside them.
"""

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from tui_agent.execution import (
    EarlyExecutions,
    ExecutionOptions,
    Parallel,
    ToolExecutor,
    ToolScheduler,
    execute_tool_calls,
)
from tui_agent.execution.access_tree import meet
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Accesses, Tool, ToolContext, ToolResult, ToolSpec

COUNTS = (1, 10, 100, 1_000)
CALLS_A_SAMPLE = 2_000
SAMPLES = 15
GRAPHS = 12
SECONDS = 0.05


class Step(Tool):
    """Gives way once and answers: everything beyond that is the engine's."""

    spec = ToolSpec(name="step", description="Gives way once.", input_schema={"type": "object"})

    def is_read_only(self, arguments: JsonObject) -> bool:
        return True

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult.of_text("done")


class Touch(Tool):
    """Takes 50 ms over the files it names."""

    spec = ToolSpec(name="touch", description="Touches files.", input_schema={"type": "object"})

    def accesses(self, arguments: JsonObject) -> Accesses:
        return accesses_of(arguments)

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(SECONDS)
        return ToolResult.of_text("done")


def accesses_of(arguments: JsonObject) -> Accesses:
    """The paths a call of `touch` names."""
    reads, writes = (frozenset(map(Path, arguments[kind])) for kind in ("reads", "writes"))
    return Accesses(reads=reads, writes=writes)


def asked(count: int) -> list[ToolCall]:
    """Calls of `step`."""
    return [ToolCall(id=f"c{number}", name="step", arguments={"n": number}) for number in range(count)]


Work = Callable[[list[ToolCall], EventBus], Awaitable[object]]


def engine_with(options: ExecutionOptions) -> Work:
    """The engine with these options."""

    async def run(calls: list[ToolCall], bus: EventBus) -> None:
        await execute_tool_calls([Step()], calls, bus=bus, options=options)

    return run


async def streamed(calls: list[ToolCall], bus: EventBus) -> None:
    """The engine where each call begins as its block completes."""
    executor = ToolExecutor([Step()], bus=bus, options=ExecutionOptions())
    async with EarlyExecutions(CancellationToken()) as early, ToolScheduler(executor, early=early) as scheduler:
        for call in calls:
            scheduler.submit(call)
        await scheduler.finish()


async def bare(calls: list[ToolCall], bus: EventBus) -> None:
    """The same calls in a task group, with nothing around them."""
    tool = Step()
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(tool.execute(call.arguments, ToolContext(call.id, call.name)))


async def sample(work: Work, calls: list[ToolCall], rounds: int) -> float:
    """CPU seconds a call, with one subscriber that reads everything as the screen does."""
    bus = EventBus()

    async def read() -> None:
        async for batch in subscription.batches():
            seen[0] += len(batch)

    seen = [0]
    with bus.subscribe() as subscription:
        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            began = time.process_time()
            for _ in range(rounds):
                await work(calls, bus)
            took = time.process_time() - began
            bus.close()
    assert work is bare or seen[0] >= 5 * len(calls) * rounds
    return took / (rounds * len(calls))


def seconds_a_call(work: Work, count: int) -> float:
    """CPU seconds a call: the lowest of several samples, each long enough to be measured; noise only adds."""
    calls, rounds = asked(count), max(CALLS_A_SAMPLE // count, 1)
    with asyncio.Runner() as runner:
        return min(runner.run(sample(work, calls, rounds)) for _ in range(SAMPLES))


def overhead() -> None:
    """Microseconds a call beyond bare asyncio; goal: at most 150, flat in the number of calls.

    What was imported is kept out of the garbage collector's way, as in any long-running program that cares.
    """
    gc.collect()
    gc.freeze()
    kinds = {
        "parallel": engine_with(ExecutionOptions(strategy=Parallel(), max_concurrency=None)),
        "auto": engine_with(ExecutionOptions()),
        "streamed": streamed,
    }
    print(f"{'calls':>8} {'bare':>9} " + " ".join(f"{name:>12}" for name in kinds) + "   µs a call beyond bare")
    for count in COUNTS:
        base = seconds_a_call(bare, count)
        beyond = [seconds_a_call(work, count) - base for work in kinds.values()]
        print(f"{count:>8} {base * 1e6:>9.1f} " + " ".join(f"{one * 1e6:>12.1f}" for one in beyond))


def longest_chain(calls: list[ToolCall]) -> int:
    """Calls in the longest chain of which each meets one before it."""
    depths: list[int] = []
    accesses = [accesses_of(call.arguments) for call in calls]
    for number, own in enumerate(accesses):
        before = [depths[earlier] for earlier in range(number) if meet(accesses[earlier], own)]
        depths.append(1 + max(before, default=0))
    return max(depths)


def random_calls(chance: random.Random) -> list[ToolCall]:
    """A message of calls of `touch` over a few files."""
    files = [f"/f{number}" for number in range(chance.randint(3, 12))]
    return [
        ToolCall(
            id=f"c{number}",
            name="touch",
            arguments={
                "reads": chance.sample(files, chance.randint(0, 2)),
                "writes": chance.sample(files, chance.randint(0, 1)),
            },
        )
        for number in range(chance.randint(10, 40))
    ]


def makespan() -> None:
    """How much longer random conflict graphs take than their longest chain; goal: within 2 %.

    Beside it, how much longer bare asyncio takes to sleep as often as the chain is long: timers come late.
    """
    chance = random.Random(0)
    options = ExecutionOptions(max_concurrency=None)

    async def chain_of(links: int) -> None:
        for _ in range(links):
            await asyncio.sleep(SECONDS)

    async def engine(calls: list[ToolCall]) -> None:
        await execute_tool_calls([Touch()], calls, bus=EventBus(), options=options)

    def seconds(work: Coroutine[Any, Any, None]) -> float:
        with asyncio.Runner() as runner:
            began = time.perf_counter()
            runner.run(work)
            return time.perf_counter() - began

    seconds(engine(random_calls(chance)))
    beyond_chain: list[float] = []
    beyond_bare: list[float] = []
    for _ in range(GRAPHS):
        calls = random_calls(chance)
        chain = longest_chain(calls)
        slept, took = seconds(chain_of(chain)), seconds(engine(calls))
        beyond_chain.append(took / (chain * SECONDS) - 1)
        beyond_bare.append(took / slept - 1)
        words = f"{len(calls):>3} calls, longest chain {chain:>2}: {took * 1000:7.1f} ms"
        print(f"{words}, {beyond_chain[-1]:+.2%} of the chain, {beyond_bare[-1]:+.2%} of bare sleeping")
    for name, excess in (("the chain", beyond_chain), ("bare sleeping", beyond_bare)):
        print(f"beyond {name}: median {statistics.median(excess):+.2%}, worst {max(excess):+.2%}")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["overhead", "makespan"]
    if "overhead" in chosen:
        overhead()
    if "makespan" in chosen:
        makespan()
