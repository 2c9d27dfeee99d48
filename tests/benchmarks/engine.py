"""Costs of the engine: `python -m tests.benchmarks.engine [overhead] [makespan]`, run by hand.

`overhead`: CPU time of a call beyond bare asyncio with a task for each call and one subscriber that reads everything,
for messages of 1 to 1,000 calls. The figures include the costs of a message (building its engine, opening and closing
its task group, publishing and delivering its two events), most of all that of one call; the line below states them
separately. `makespan`: time that random conflict graphs of 50 ms tools take beyond their longest chain.

Figures are for comparison; the goals are printed beside them. As in the program after its start, imported objects are
frozen for the garbage collector.
"""

import asyncio
import gc
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
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
from tui_agent.execution.scheduling.conflict_order import meet
from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.messages import JsonObject, ToolCall
from tui_agent.protocol.tool import Accesses, Tool, ToolContext, ToolResult, ToolSpec

COUNTS = (1, 10, 100, 1_000)
CALLS_A_SAMPLE = 2_000
SAMPLES = 11
GRAPHS = 12
SECONDS = 0.05
DEFAULTS = ExecutionOptions()


class Step(Tool):
    """Tool that yields once and answers; all further time is the engine's."""

    spec = ToolSpec(name="step", description="Gives way once.", input_schema={"type": "object"})

    def is_read_only(self, arguments: JsonObject) -> bool:
        return True

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult.of_text("done")


class Touch(Tool):
    """Tool that takes 50 ms for the files it names."""

    spec = ToolSpec(name="touch", description="Touches files.", input_schema={"type": "object"})

    def accesses(self, arguments: JsonObject) -> Accesses:
        return accesses_of(arguments)

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        await asyncio.sleep(SECONDS)
        return ToolResult.of_text("done")


def accesses_of(arguments: JsonObject) -> Accesses:
    """Return the paths that a call of `touch` names."""
    reads, writes = (frozenset(map(Path, arguments[kind])) for kind in ("reads", "writes"))
    return Accesses(reads=reads, writes=writes)


def asked(count: int) -> list[ToolCall]:
    """Return calls of `step`."""
    return [ToolCall(id=f"c{number}", name="step", arguments={"n": number}) for number in range(count)]


Work = Callable[[list[ToolCall], EventBus], Awaitable[object]]


def engine_with(options: ExecutionOptions) -> Work:
    """Run the calls in an engine with these options."""

    async def run(calls: list[ToolCall], bus: EventBus) -> None:
        await execute_tool_calls([Step()], calls, bus=bus, options=options)

    return run


async def streamed(calls: list[ToolCall], bus: EventBus) -> None:
    """Run the calls in an engine that starts each as its block completes."""
    executor = ToolExecutor([Step()], bus=bus, options=DEFAULTS)
    async with EarlyExecutions(CancellationToken()) as early, ToolScheduler(executor, early=early) as scheduler:
        for call in calls:
            scheduler.submit(call)
        await scheduler.finish()


async def bare(calls: list[ToolCall], bus: EventBus) -> None:
    """Run the same calls in a bare task group."""
    tool = Step()
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(tool.execute(call.arguments, ToolContext(call.id, call.name)))


async def sample(work: Work, calls: list[ToolCall], rounds: int) -> float:
    """Return CPU seconds per call, with one subscriber that reads everything as the screen does."""
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


def seconds_a_call(kinds: Sequence[Work], count: int) -> list[float]:
    """Return CPU seconds per call for each kind of work.

    The result is the lowest of several samples, since noise only adds time. The kinds alternate, so a busy machine
    slows all of them.
    """
    calls, rounds = asked(count), max(CALLS_A_SAMPLE // count, 1)
    with asyncio.Runner() as runner:
        samples = [[runner.run(sample(work, calls, rounds)) for work in kinds] for _ in range(SAMPLES)]
    return [min(of_kind) for of_kind in zip(*samples, strict=True)]


def overhead() -> None:
    """Print microseconds per call beyond bare asyncio; goal: at most 150, whatever the number of calls."""
    kinds = {
        "parallel": engine_with(ExecutionOptions(strategy=Parallel(), max_concurrency=None)),
        "auto": engine_with(DEFAULTS),
        "streamed": streamed,
    }
    print(f"{'calls':>8} {'bare':>9} " + " ".join(f"{name:>12}" for name in kinds) + "   µs a call beyond bare")
    rows: dict[int, list[float]] = {}
    for count in COUNTS:
        base, *others = [seconds * 1e6 for seconds in seconds_a_call([bare, *kinds.values()], count)]
        rows[count] = [one - base for one in others]
        print(f"{count:>8} {base:>9.1f} " + " ".join(f"{one:>12.1f}" for one in rows[count]))
    once = [(one - ten) * 10 / 9 for one, ten in zip(rows[1], rows[10], strict=True)]
    print(f"{'once':>8} {'':>9} " + " ".join(f"{cost:>12.1f}" for cost in once) + "   µs a message besides its calls")


def longest_chain(calls: list[ToolCall]) -> int:
    """Return the number of calls in the longest chain of conflicting calls."""
    depths: list[int] = []
    accesses = [accesses_of(call.arguments) for call in calls]
    for number, own in enumerate(accesses):
        before = [depths[earlier] for earlier in range(number) if meet(accesses[earlier], own)]
        depths.append(1 + max(before, default=0))
    return max(depths)


def random_calls(chance: random.Random) -> list[ToolCall]:
    """Return a message of calls of `touch` over a few files."""
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
    """Print the time that random conflict graphs take beyond their longest chain; goal: within 2 %.

    Beside it: the excess of bare asyncio for as many sleeps as the chain is long, since timers are late; and the CPU
    time of
    the whole graph, which bounds what the engine itself can add on a busy machine.
    """
    chance = random.Random(0)
    options = ExecutionOptions(max_concurrency=None)

    async def chain_of(links: int) -> None:
        for _ in range(links):
            await asyncio.sleep(SECONDS)

    async def engine(calls: list[ToolCall]) -> None:
        await execute_tool_calls([Touch()], calls, bus=EventBus(), options=options)

    def seconds(work: Coroutine[Any, Any, None]) -> tuple[float, float]:
        with asyncio.Runner() as runner:
            began, worked = time.perf_counter(), time.process_time()
            runner.run(work)
            return time.perf_counter() - began, time.process_time() - worked

    seconds(engine(random_calls(chance)))
    figures: dict[str, list[float]] = {"beyond the chain": [], "beyond bare sleeping": [], "CPU": []}
    for _ in range(GRAPHS):
        calls = random_calls(chance)
        links = longest_chain(calls)
        chain = links * SECONDS
        (slept, _), (took, worked) = seconds(chain_of(links)), seconds(engine(calls))
        row = (took / chain - 1, took / slept - 1, worked / chain)
        for of_kind, figure in zip(figures.values(), row, strict=True):
            of_kind.append(figure)
        words = f"{len(calls):>3} calls, longest chain {chain * 1000:4.0f} ms: {took * 1000:7.1f} ms"
        print(f"{words}, {row[0]:+.2%} of the chain, {row[1]:+.2%} of bare sleeping, CPU {row[2]:.2%}")
    for name, of_kind in figures.items():
        print(f"{name}: median {statistics.median(of_kind):.2%}, worst {max(of_kind):.2%}")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["overhead", "makespan"]
    gc.collect()
    gc.freeze()
    if "overhead" in chosen:
        overhead()
    if "makespan" in chosen:
        makespan()
