"""An event loop whose clock jumps: sleeping takes no time, and durations come out exactly."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Where the loop would sleep until its next timer, it moves the clock instead."""

    now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.now += timeout
        return ready


class VirtualClockLoop(asyncio.SelectorEventLoop):
    """For tests without threads and processes: nothing that takes real time is waited for."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)
        self._clock_resolution = 1e-9

    def time(self) -> float:
        return self._jumping.now

    def stand_still(self, seconds: float) -> None:
        """As if a callback had taken so long."""
        self._jumping.now += seconds


def run_virtual(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on a virtual clock."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(work)
