"""An event loop on a clock of its own: time passes in it only when it is told to, and then at once.

Whatever a screen does by timers happens at its moment of the recording, in its order, however fast or slowly that is
watched. The loop runs in slices, inside a handler of the loop that the program itself runs on.
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
"""Owner, name and value of an attribute."""


_ROUNDING = 1e-7
"""Seconds; sums of times are not exact."""

_MAX_ROUNDS = 20_000
"""Rounds of the loop at one time; whoever asks the clock for longer waits for it to go on."""

_CREEP = 0.001
"""Seconds that each further round takes."""


class _LeapingSelector(selectors.DefaultSelector):
    """Waits for nothing: where nothing is ready, time leaps to the next timer, or the slice is over."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.limit = 0.0
        """How far time may leap."""
        self.deadline = float("inf")
        """When, on the clock of the machine, the slice is over wherever time stands."""
        self.idle = False
        """Whether there is nothing left to do before the limit."""
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
        """Time never stands still for good, as it would for somebody who does nothing but look at the clock."""
        if self.now >= self.limit:
            self.idle = True
            raise _SliceOver
        if time.perf_counter() >= self.deadline:
            raise _SliceOver
        self.now = min(self.now + _CREEP, self.limit)


class _SliceOver(Exception):
    """Leaves the loop between two of its rounds."""


class ReplayLoop(asyncio.SelectorEventLoop):
    """The loop of one replayed screen."""

    def __init__(self, start: float, instead: Sequence[Swap] = ()) -> None:
        """Makes a loop.

        Args:
            start: what its clock shows, in seconds.
            instead: what else is another thing while it runs.
        """
        self._leaps = _LeapingSelector()
        self._leaps.now = start
        # What Textual takes from modules, while this loop runs; it differs from what the program around it takes.
        self._globals: tuple[Swap, ...] = (
            *instead,
            (textual_time, "get_time", self.time),
            (notifications, "time", self.time),
            (sys, "stdout", sys.stdout),
            (sys, "stderr", sys.stderr),
        )
        super().__init__(self._leaps)

    def time(self) -> float:
        """Seconds on its own clock."""
        return self._leaps.now

    def run_slice(self, until: float, seconds: float = float("inf")) -> bool:
        """Lets time pass, and everything happen that happens in it; afterwards nothing is left to do at that time.

        Args:
            until: the time to stop at.
            seconds: of the machine's time; where they are not enough, time stops earlier.

        Returns:
            Whether the time was reached.
        """
        leaps = self._leaps
        leaps.limit, leaps.deadline, leaps.idle = until, time.perf_counter() + seconds, False
        with self._inside(), suppress(_SliceOver):
            self.run_forever()
        return leaps.idle

    @contextmanager
    def _inside(self) -> Generator[None]:
        """This loop instead of the one around it."""
        # For whoever makes event loops, says asyncio; it takes them for private all the same.
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
