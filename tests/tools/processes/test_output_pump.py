"""The thread that reads a program's pipes."""

import asyncio
import os

from tui_agent.tools.processes.output_pump import OutputPump


class Kept:
    def __init__(self, enough: int = 10**9) -> None:
        self.data = b""
        self.enough = enough

    def feed(self, data: bytes) -> bool:
        self.data += data
        return len(self.data) < self.enough


def test_a_closed_loop_is_handled() -> None:
    loop = asyncio.new_event_loop()

    async def begin() -> OutputPump:
        pump = OutputPump([Kept()])
        pump.start()
        return pump

    pump = loop.run_until_complete(begin())
    loop.close()
    os.close(pump.write_ends[0])
    pump.stop()
    pump._thread.join(60)  # pyright: ignore[reportPrivateUsage]

    assert not pump._thread.is_alive()  # pyright: ignore[reportPrivateUsage]


async def test_data_that_comes_between_two_notices_is_noticed() -> None:
    kept, looks, all_seen = Kept(), [0], asyncio.Event()

    def look() -> None:
        looks[0] += 1
        if len(kept.data) == 2:
            all_seen.set()

    pump = OutputPump([kept], look)
    pump.start()
    os.write(pump.write_ends[0], b"a")
    while not looks[0]:
        await asyncio.sleep(0)
    os.write(pump.write_ends[0], b"b")

    await asyncio.wait_for(all_seen.wait(), 60)
    os.close(pump.write_ends[0])
    await pump.wait(60)
    pump.stop()
