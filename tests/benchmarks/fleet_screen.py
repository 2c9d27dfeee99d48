"""Echo of the screen of a fleet: milliseconds from a key to the drawn row while all of 1,000 rows change.

Run by hand: `python -m tests.benchmarks.fleet_screen [UNITS]`, with at least 21 units. The screen runs without a
terminal, and ten times a second all rows arrive as finished records. Prints the median, the 95th percentile and the
slowest of 200 keys, and the share of a CPU, the making of the records included.
"""

import asyncio
import statistics
import sys
import time

from tests.ui.fleet.fleet_stage import fleet_app
from tests.ui.fleet.still_fleet import MemoryFleet, many_units

KEYS = 200
PERIOD = 0.1
"""Seconds between two changes of all rows."""


async def measure(units: int) -> None:
    """Print the figures for a fleet of so many units."""
    first = many_units(units)
    files = MemoryFleet(first)
    app = fleet_app(files, time.monotonic)
    times: list[float] = []

    async def change() -> None:
        step = 0
        while True:
            step += 1
            files.change(*(row.model_copy(update={"step": step, "cost": row.cost + step / 1000}) for row in first.rows))
            await asyncio.sleep(PERIOD)

    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        changing = asyncio.create_task(change())
        cpu, begin = time.process_time(), time.perf_counter()
        for number in range(KEYS):
            await asyncio.sleep(0.03)
            place, key = app.fleet.rows.cursor, "down" if number % 40 < 20 else "up"
            pressed = time.perf_counter()
            app.simulate_key(key)
            drawn = asyncio.Event()
            while app.fleet.rows.cursor == place:
                await asyncio.sleep(0)
            app.fleet.call_after_refresh(drawn.set)
            await drawn.wait()
            times.append((time.perf_counter() - pressed) * 1000)
        share = (time.process_time() - cpu) / (time.perf_counter() - begin)
        changing.cancel()
    times.sort()
    print(f"{units} units: median {statistics.median(times):.1f} ms, p95 {times[int(KEYS * 0.95)]:.1f} ms, ", end="")
    print(f"max {times[-1]:.1f} ms, CPU {share:.0%}")


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000))
