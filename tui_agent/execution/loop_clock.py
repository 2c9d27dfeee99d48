"""The one clock of the engine, so that a test can turn it."""

import asyncio


def now() -> float:
    """Seconds on the event loop's clock; every time and duration of the engine is measured with it."""
    return asyncio.get_running_loop().time()
