"""An event loop with a clock of its own, which advances only on request, and then without waiting.

The timers of an app under test fire at their moments and in order, without waiting. The loop runs in slices.
"""

import asyncio
import selectors
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

from textual import _time as textual_time
from textual import notifications

Swap: TypeAlias = tuple[Any, str, Any]
"""Owner, name and value of an attribute that is replaced while the loop runs."""


_ROUNDING = 1e-7
"""Seconds of tolerance: sums of floats are not exact."""

_MAX_ROUNDS = 20_000
"""Rounds of the loop without time passing; after that, code may be polling the clock, so the clock creeps on."""

_CREEP = 0.001
"""Seconds that the clock advances with each further round."""


class _LeapingSelector(selectors.DefaultSelector):
    """Never waits: if nothing is ready, the clock leaps to the next timer, or the slice ends."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limit = 0.0
        """The time that the clock must not pass."""
        self.deadline = float("inf")
        """The moment on the machine's clock at which the slice ends in any case."""
        self.idle = False
        """True if there is nothing left to do before the limit."""
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            self._rounds += 1
            if self._rounds > _MAX_ROUNDS:
                self._creep()
            return ready
        self._rounds = 0
        if timeout is None or self.now + timeout > self.limit + _ROUNDING:
            self.now, self.idle = max(self.now, self.limit), True
        elif time.perf_counter() < self.deadline:
            self.now += timeout
            return ready
        raise _SliceOver

    def _creep(self) -> None:
        """Advance the clock a little, so that code that polls it makes progress."""
        if self.now >= self.limit:
            self.idle = True
            raise _SliceOver
        if time.perf_counter() >= self.deadline:
            raise _SliceOver
        self.now = min(self.now + _CREEP, self.limit)


class _SliceOver(Exception):
    """Ends a slice between two rounds of the loop."""


class LeapingLoop(asyncio.SelectorEventLoop):
    """The event loop of one app under test."""

    def __init__(self, start: float, instead: Sequence[Swap] = ()) -> None:
        """Make a loop.

        Args:
            start: the initial time of its clock, in seconds.
            instead: further attributes to replace while it runs.
        """
        self._leaps = _LeapingSelector()
        self._leaps.now = start
        # Module attributes that Textual reads. The program around the loop needs the original values.
        self._globals: tuple[Swap, ...] = (
            *instead,
            (textual_time, "get_time", self.time),
            (notifications, "time", self.time),
            (sys, "stdout", sys.stdout),
            (sys, "stderr", sys.stderr),
        )
        super().__init__(self._leaps)

    def time(self) -> float:
        """Return the seconds on its own clock."""
        return self._leaps.now

    def run_slice(self, until: float, seconds: float = float("inf")) -> bool:
        """Advance the clock and run everything that is due, that moment included.

        Args:
            until: the time to stop at.
            seconds: limit of the machine's time; when it is used up, the clock stops earlier.

        Returns:
            True if the time was reached.
        """
        leaps = self._leaps
        leaps.limit, leaps.deadline, leaps.idle = until, time.perf_counter() + seconds, False
        with self._inside(), suppress(_SliceOver):
            self.run_forever()
        return leaps.idle

    @contextmanager
    def _inside(self) -> Generator[None]:
        """Replace the running loop and the attributes while the context is open."""
        # asyncio documents these two functions for authors of event loops, but type checkers see private names.
        events: Any = asyncio.events
        outer_loop = events._get_running_loop()
        outer = [getattr(owner, name) for owner, name, _ in self._globals]
        events._set_running_loop(None)
        for owner, name, value in self._globals:
            setattr(owner, name, value)
        try:
            yield
        finally:
            self._globals = tuple((owner, name, getattr(owner, name)) for owner, name, _ in self._globals)
            for (owner, name, _), value in zip(self._globals, outer, strict=True):
                setattr(owner, name, value)
            events._set_running_loop(outer_loop)
