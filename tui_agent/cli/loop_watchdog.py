"""Notes in the debug log when the event loop stood still: then neither keys nor events got through (P42)."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

STALL = 0.1
"""Seconds of standing still that are worth a line."""

_PAUSE = 0.05
"""Seconds between two looks."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def log_loop_stalls() -> AsyncGenerator[None]:
    """While this is open, each time the loop stood still for more than `STALL` is logged, where debug logs are kept."""
    if not _log.isEnabledFor(logging.DEBUG):
        yield
        return
    loop = asyncio.get_running_loop()

    def look() -> None:
        nonlocal timer
        late = loop.time() - timer.when()
        if late > STALL:
            _log.debug("the event loop stood still for %.0f ms", late * 1000)
        timer = loop.call_later(_PAUSE, look)

    timer = loop.call_later(_PAUSE, look)
    try:
        yield
    finally:
        timer.cancel()
