"""Heights of stacked blocks, and the block at a row: makes a long transcript cheap."""

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

SPAN = 256
"""Heights of a full group; one with twice as many is split."""


class HeightIndex:
    """A list of heights in groups. A change costs as much as its group and the number of groups.

    Places and rows count from 0. `remove`, `height` and `set` need a place that exists.
    """

    __slots__ = ("_count", "_ends", "_firsts", "_groups", "_known", "_sums", "_tops")

    def __init__(self, heights: Iterable[int] = ()) -> None:
        everything = list(heights)
        self._count = len(everything)
        self._groups = [everything[place : place + SPAN] for place in range(0, len(everything), SPAN)]
        self._sums = [sum(group) for group in self._groups]
        self._ends: list[list[int]] = [[] for _ in self._groups]
        """Sums within each group up to each height, as far as they are known."""
        self._firsts: list[int] = [0] * len(self._groups)
        """Place of the first height of each group."""
        self._tops: list[int] = [0] * len(self._groups)
        """First row of each group."""
        self._known = 0
        """Number of groups whose place and row are known."""

    def __len__(self) -> int:
        return self._count

    @property
    def total(self) -> int:
        """Sum of all heights."""
        self._settle()
        return self._tops[-1] + self._sums[-1] if self._groups else 0

    def append(self, height: int) -> None:
        """Append a height."""
        if not self._groups or len(self._groups[-1]) >= SPAN:
            self._add_group(len(self._groups), [])
        self._groups[-1].append(height)
        self._sums[-1] += height
        self._count += 1

    def insert(self, place: int, height: int) -> None:
        """Insert a height before the one at `place`; append it if there is none."""
        if place >= self._count:
            self.append(height)
            return
        number, within = self._locate(place)
        group = self._groups[number]
        group.insert(within, height)
        self._count += 1
        self._changed(number, within, height)
        # Not at `SPAN`: each insertion into a full group would split it.
        if len(group) >= 2 * SPAN:
            self._add_group(number + 1, group[SPAN:])
            del group[SPAN:]
            del self._ends[number][SPAN:]
            self._sums[number] -= self._sums[number + 1]

    def remove(self, place: int) -> None:
        """Remove a height."""
        number, within = self._locate(place)
        group = self._groups[number]
        height = group.pop(within)
        self._count -= 1
        self._changed(number, within, -height)
        if not group:
            self._drop_groups(number, number + 1)

    def cut(self, length: int) -> None:
        """Keep the first `length` heights; all if there are fewer."""
        if length >= self._count:
            return
        number, within = self._locate(length)
        self._changed(number, within, -sum(self._groups[number][within:]))
        del self._groups[number][within:]
        self._drop_groups(number + (within > 0), len(self._groups))
        self._count = length

    def height(self, place: int) -> int:
        """Return a height."""
        number, within = self._locate(place)
        return self._groups[number][within]

    def set(self, place: int, height: int) -> bool:
        """Change a height; return False if it is the same."""
        number, within = self._locate(place)
        before = self._groups[number][within]
        if before == height:
            return False
        self._groups[number][within] = height
        self._changed(number, within, height - before)
        return True

    def start(self, place: int) -> int:
        """Return the first row of a block; for the length as `place`, the row after all."""
        if place >= self._count:
            return self.total
        number, within = self._locate(place)
        return self._tops[number] + (self._ends_of(number)[within - 1] if within else 0)

    def find(self, row: int) -> int:
        """Return the block at a row, never one without height; the length if the row is below all."""
        if not self._groups:
            return 0
        self._settle()
        row = max(0, row)
        number = bisect_right(self._tops, row) - 1
        return self._firsts[number] + bisect_right(self._ends_of(number), row - self._tops[number])

    # --- groups -------------------------------------------------------------------------------------------------------

    def _locate(self, place: int) -> tuple[int, int]:
        """Return the group of a place, and the place within it."""
        self._settle()
        number = bisect_right(self._firsts, place) - 1
        return number, place - self._firsts[number]

    def _ends_of(self, number: int) -> list[int]:
        """Return the sums within a group, completed."""
        # Completed on demand: text that streams changes its last height with every flush.
        ends, group = self._ends[number], self._groups[number]
        if (known := len(ends)) < len(group):
            sums = accumulate(group[known:], initial=ends[-1] if known else 0)
            next(sums)
            ends.extend(sums)
        return ends

    def _changed(self, number: int, within: int, added: int) -> None:
        """Forget what depends on a height."""
        self._sums[number] += added
        del self._ends[number][within:]
        self._known = min(self._known, number + 1)

    def _add_group(self, number: int, heights: list[int]) -> None:
        self._groups.insert(number, heights)
        self._sums.insert(number, sum(heights))
        self._ends.insert(number, [])
        self._firsts.insert(number, 0)
        self._tops.insert(number, 0)
        self._known = min(self._known, number)

    def _drop_groups(self, first: int, last: int) -> None:
        for column in (self._groups, self._sums, self._ends, self._firsts, self._tops):
            del column[first:last]
        self._known = min(self._known, first)

    def _settle(self) -> None:
        """Complete places and rows of the groups."""
        for number in range(self._known, len(self._groups)):
            if number:
                self._firsts[number] = self._firsts[number - 1] + len(self._groups[number - 1])
                self._tops[number] = self._tops[number - 1] + self._sums[number - 1]
            else:
                self._firsts[0] = self._tops[0] = 0
        self._known = len(self._groups)
