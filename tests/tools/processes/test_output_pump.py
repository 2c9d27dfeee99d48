"""The thread that reads a program's pipes."""

import asyncio
import os

from tui_agent.tools.processes.output_pump import NOTICE_INTERVAL, OutputPump


class Kept:
    def __init__(self, enough: int = 10**9) -> None:
        self.data = b""
        self.enough = enough

    def feed(self, data: bytes) -> bool:
        self.data += data
        return len(self.data) < self.enough


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_reads_until_the_writers_are_gone(root: object) -> None:
    before = open_descriptors()
    out, err, noticed = Kept(), Kept(), asyncio.Event()
    pump = OutputPump([out, err], noticed.set)
    pump.start()
    os.write(pump.write_ends[0], b"out")
    os.write(pump.write_ends[1], b"err")
    await noticed.wait()
    for descriptor in pump.write_ends:
        os.close(descriptor)

    await pump.wait(60)
    pump.stop()
    pump.stop()

    assert (out.data, err.data) == (b"out", b"err")
    assert open_descriptors() == before


async def test_stops_although_a_writer_keeps_its_end_open(root: object) -> None:
    before = open_descriptors()
    kept = Kept()
    pump = OutputPump([kept])
    pump.start()
    os.write(pump.write_ends[0], b"x")
    await pump.wait(0.01)

    pump.stop()
    await pump.wait(60)

    os.close(pump.write_ends[0])
    assert open_descriptors() == before


async def test_stops_before_it_began(root: object) -> None:
    before = open_descriptors()
    pump = OutputPump([Kept()])
    pump.stop()
    os.close(pump.write_ends[0])

    assert open_descriptors() == before


async def test_reports_a_sink_that_has_enough() -> None:
    kept = Kept(enough=1)
    pump = OutputPump([kept])
    pump.start()
    os.write(pump.write_ends[0], b"x")

    await asyncio.wait_for(pump.sated.wait(), 60)
    await pump.wait(60)

    pump.stop()
    os.close(pump.write_ends[0])


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


async def test_a_flood_wakes_the_loop_at_a_bounded_rate() -> None:
    loop = asyncio.get_running_loop()
    kept, looks, begin = Kept(), [0], loop.time()

    def look() -> None:
        looks[0] += 1

    pump = OutputPump([kept], look)
    pump.start()
    for _ in range(500):
        os.write(pump.write_ends[0], b"y")
        await asyncio.sleep(0)
    os.close(pump.write_ends[0])
    await pump.wait(60)
    await asyncio.sleep(2 * NOTICE_INTERVAL)

    assert 1 <= looks[0] <= (loop.time() - begin) / NOTICE_INTERVAL + 2
    assert kept.data == b"y" * 500


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
