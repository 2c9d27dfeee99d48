"""A delay from outside: no request is sent before it is over, and a stop ends the wait."""

import asyncio
from time import monotonic

from tui_agent.protocol.events import StepStarted

from .harness import BenchMaker


async def test_no_request_is_sent_before_the_delay_is_over(bench: BenchMaker) -> None:
    b = bench(["Answer."])
    begun = monotonic()
    b.loop.delay_requests(0.1)
    b.loop.delay_requests(0.05)

    await b.loop.run("Go")

    assert monotonic() - begun >= 0.1
    assert b.ended.reason == "done"


async def test_a_stop_ends_the_wait(bench: BenchMaker) -> None:
    b = bench(["never asked for"])
    b.loop.delay_requests(3600)

    async with asyncio.TaskGroup() as group:
        group.create_task(b.loop.run("Go"))
        while not b.of(StepStarted):
            await asyncio.sleep(0)
        b.loop.stop()

    assert b.ended.reason in ("stopped", "aborted")
    assert b.provider.left == 1
