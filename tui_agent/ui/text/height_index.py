"""Heights of things that stand on each other, and which of them is at a row: what makes a long transcript cheap."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class HeightIndex:
    """A list of heights. Changes cost what stands below them, once, when a row is asked for next."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The sum of all heights."""
        self._settle()
        return self._ends[-1] if self._ends else 0

    def append(self, height: int) -> None:
        """Adds one below."""
        self._heights.append(height)

    def insert(self, place: int, height: int) -> None:
        """Adds one above the one at `place`."""
        self._heights.insert(place, height)
        del self._ends[place:]

    def remove(self, place: int) -> None:
        """Takes one out."""
        del self._heights[place]
        del self._ends[place:]

    def cut(self, length: int) -> None:
        """Keeps the first `length`."""
        del self._heights[length:]
        del self._ends[length:]

    def height(self, place: int) -> int:
        """The height of one."""
        return self._heights[place]

    def set(self, place: int, height: int) -> bool:
        """Changes one; False where it was the same."""
        if self._heights[place] == height:
            return False
        self._heights[place] = height
        del self._ends[place:]
        return True

    def start(self, place: int) -> int:
        """The row at which one begins; with `place` the length, the row after all."""
        self._settle()
        return self._ends[place - 1] if place else 0

    def find(self, row: int) -> int:
        """The one that holds a row; those without height hold none. The length, where the row is below all."""
        self._settle()
        return bisect_right(self._ends, max(0, row))

    def _settle(self) -> None:
        """Completes the sums."""
        known = len(self._ends)
        if known < len(self._heights):
            initial = self._ends[-1] if known else 0
            sums = accumulate(self._heights[known:], initial=initial)
            next(sums)
            self._ends.extend(sums)
