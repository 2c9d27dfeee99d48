"""Heights of stacked blocks, and the block at a row: makes a long transcript cheap."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class HeightIndex:
    """A list of heights. After a change, the next query by row adds up the heights below it once."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """Sum of all heights."""
        self._settle()
        return self._ends[-1] if self._ends else 0

    def append(self, height: int) -> None:
        """Append a height."""
        self._heights.append(height)

    def insert(self, place: int, height: int) -> None:
        """Insert a height before the one at `place`."""
        self._heights.insert(place, height)
        del self._ends[place:]

    def remove(self, place: int) -> None:
        """Remove a height."""
        del self._heights[place]
        del self._ends[place:]

    def cut(self, length: int) -> None:
        """Keep the first `length` heights."""
        del self._heights[length:]
        del self._ends[length:]

    def height(self, place: int) -> int:
        """Return a height."""
        return self._heights[place]

    def set(self, place: int, height: int) -> bool:
        """Change a height; return False if it is the same."""
        if self._heights[place] == height:
            return False
        self._heights[place] = height
        del self._ends[place:]
        return True

    def start(self, place: int) -> int:
        """Return the first row of a block; for the length as `place`, the row after all."""
        self._settle()
        return self._ends[place - 1] if place else 0

    def find(self, row: int) -> int:
        """Return the block at a row, never one without height; the length if the row is below all."""
        self._settle()
        return bisect_right(self._ends, max(0, row))

    def _settle(self) -> None:
        """Complete the sums."""
        known = len(self._ends)
        if known < len(self._heights):
            initial = self._ends[-1] if known else 0
            sums = accumulate(self._heights[known:], initial=initial)
            next(sums)
            self._ends.extend(sums)
