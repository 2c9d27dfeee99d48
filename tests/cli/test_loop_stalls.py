import asyncio
import logging

import pytest

from tests.support.virtual_clock import VirtualClockLoop, run_virtual
from tui_agent.cli.process.log_file import log_loop_stalls


async def watched(*stalls: float) -> int:
    """Stall the loop for these times, and return the number of timers that are left."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualClockLoop)
    async with log_loop_stalls():
        for seconds in stalls:
            loop.call_later(0.51, loop.stand_still, seconds)
            await asyncio.sleep(1)
    return len([timer for timer in loop._scheduled if not timer.cancelled()])


def test_stalls_of_the_loop_are_logged_and_short_pauses_are_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tui_agent.cli.process.log_file")

    assert run_virtual(watched(0.3, 0.1, 2.0)) == 0

    first, second = [int(record.getMessage().split()[-2]) for record in caplog.records]
    assert caplog.messages[0] == f"the event loop stalled for {first} ms"
    assert 200 < first < 300
    assert 1900 < second < 2000
