"""An event loop with a virtual clock: sleeping takes no time, and durations are exact."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Selector that advances the clock instead of sleeping until the next timer."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """Loop for tests without threads and processes, since it never waits for real time to pass."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now

    def stand_still(self, seconds: float) -> None:
        """Advance the clock, as if a callback had taken this long."""
        self._jumping.now += seconds


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(work)
