"""The events of a session with their positions in a replay."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from tui_agent.protocol.envelope import Envelope

LONGEST_PAUSE = 5.0
"""Seconds that a pause without events lasts at most. Time passes faster in a longer one, so that clocks stay true: a
session may have been left for a night."""


class ReplayTimeline:
    """A session's events in order, each with its position in seconds from the start of the replay."""

    def __init__(self, envelopes: Sequence[Envelope], stamps: Sequence[int], notices: Sequence[str] = ()) -> None:
        """Compute the positions.

        Args:
            envelopes: the events; those of a long journal are parsed at each access.
            stamps: their `ts`, in milliseconds since the epoch.
            notices: reports of damaged parts that were skipped, a sentence each.
        """
        self.notices = notices
        """Reports of damaged parts that were skipped, a sentence each."""
        self.moments: list[float] = []
        """Position of each event in seconds; they never decrease."""
        self._envelopes = envelopes
        self._times: list[float] = []
        at = before = 0.0
        # Not by the monotonic times of the events: those of two processes cannot be compared.
        for stamp in stamps:
            # The machine's clock may have been set back.
            now = max(before, stamp / 1000)
            at += min(now - before, LONGEST_PAUSE) if self._times else 0.0
            self.moments.append(at)
            self._times.append(now)
            before = now

    def __len__(self) -> int:
        return len(self.moments)

    @property
    def length(self) -> float:
        """Length in seconds."""
        return self.moments[-1] if self.moments else 0.0

    def count_until(self, at: float) -> int:
        """Return the number of events up to a position, that position included."""
        return bisect_right(self.moments, at)

    def time_at(self, at: float) -> float:
        """Return the time at a position, in seconds on the clock of the replayed events."""
        following = self.count_until(at)
        if not 0 < following < len(self):
            return self._times[max(0, following - 1)] if self._times else 0.0
        start, end = self.moments[following - 1], self.moments[following]
        began, ended = self._times[following - 1], self._times[following]
        return began + (ended - began) * (at - start) / (end - start)

    def event(self, place: int) -> Envelope:
        """Return an event, with its time on the clock of the replay."""
        # A session that was resumed has events of several processes, whose monotonic clocks cannot be compared.
        return replace(self._envelopes[place], mono=self._times[place])
