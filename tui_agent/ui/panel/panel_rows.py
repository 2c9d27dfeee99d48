"""Layout of the tool panel: its calls and their rows. Pure; the widget draws it."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tui_agent.ui.state.call_ledger import CallFilter, CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.text.height_index import HeightIndex
from tui_agent.ui.text.line import Run

from .call_rows import RowContext, row_of, step_row, tail_rows


@dataclass(frozen=True, slots=True)
class RowsChange:
    """Effect of changed calls on the rows."""

    moved: bool
    """True if rows were added, removed or changed in height."""
    blocks: tuple[int, ...] = ()
    """Indexes of the calls whose rows look different, if nothing moved."""


class PanelRows:
    """Calls that pass the filter, each a block of rows: a line between steps, its own row, its live output."""

    def __init__(self, ledger: CallLedger) -> None:
        self.ledger = ledger
        """All calls. After another one is set, `rebuild` must be called."""
        self.chosen: CallFilter = "all"
        """Current filter; set by `rebuild`."""
        self.width = 1
        """Cells of a row; set by `rebuild`."""
        self.unfolded: set[int] = set()
        """Calls whose sub-agent's calls are shown."""
        self._shown: list[int] = []
        self._tops: list[int] = []
        """Calls that are not below another one."""
        self._known = 0
        """Number of calls of the ledger that are laid out."""
        self._heights = HeightIndex()

    def __len__(self) -> int:
        return len(self._shown)

    @property
    def total(self) -> int:
        """Number of all rows."""
        return self._heights.total

    def update(self, changed: Sequence[int]) -> RowsChange:
        """Lay out the calls at these indexes of the ledger, which an event has changed or added."""
        if self.chosen != "all":
            # Any change may let a call pass the filter, or no longer.
            self.rebuild(self.chosen, self.width)
            return RowsChange(moved=True)
        moved, blocks = False, list[int]()
        for place in changed:
            shown, is_new = self._ancestor_shown(place), place >= self._known
            self._known = max(self._known, place + 1)
            if is_new and shown == place:
                self._insert(place)
                moved = True
            elif (index := self._index(shown)) is not None:
                moved = self._heights.set(index, self._height_of(shown)) or moved
                blocks.append(index)
            # The row of a sub-agent counts its calls.
            parent = self.ledger.calls[shown].parent
            if parent is not None and (above := self._index(parent)) is not None:
                blocks.append(above)
        return RowsChange(moved, () if moved else tuple(blocks))

    def rebuild(self, chosen: CallFilter, width: int) -> None:
        """Lay out everything for a filter and a width."""
        self.chosen, self.width, self._known = chosen, max(1, width), len(self.ledger.calls)
        self._tops = [place for place, call in enumerate(self.ledger.calls) if call.parent is None]
        if chosen != "all":
            self._shown = self.ledger.shown(chosen)
        else:
            self._shown = [place for top in self._tops for place in self._with_descendants(top)]
        self._heights = HeightIndex(self._height_of(place) for place in self._shown)

    def fold(self, call: LedgerCall) -> bool:
        """Show or hide the calls of a call's sub-agent; return False if it has none. `rebuild` must be called then."""
        if not call.children or self.chosen != "all":
            return False
        self.unfolded.symmetric_difference_update((call.place,))
        return True

    def reveal(self, call: LedgerCall) -> None:
        """Unfold the sub-agents above a call."""
        while call.parent is not None:
            self.unfolded.add(call.parent)
            call = self.ledger.calls[call.parent]

    def _with_descendants(self, place: int) -> Iterator[int]:
        """Yield a call and the calls below it that are shown."""
        yield place
        if place in self.unfolded:
            for child in self.ledger.calls[place].children:
                yield from self._with_descendants(child)

    def _ancestor_shown(self, place: int) -> int:
        """Return the call itself, or the folded call above it that hides it."""
        top, call = place, self.ledger.calls[place]
        while call.parent is not None:
            if call.parent not in self.unfolded:
                top = call.parent
            call = self.ledger.calls[call.parent]
        return top

    def _index(self, place: int) -> int | None:
        """Return the block of a call; None if it has none. The cost does not grow with the number of calls."""
        if self.chosen != "all":
            return _found(self._shown, place)
        parent = self.ledger.calls[place].parent
        if parent is None:
            index = _found(self._tops, place)
        elif parent not in self.unfolded or (above := self._index(parent)) is None:
            index = None
        else:
            index = above + 1 + bisect_left(self.ledger.calls[parent].children, place)
        return None if index is None else index + self._unfolded_before(place, parent)

    def _unfolded_before(self, place: int, parent: int | None) -> int:
        """Return the number of calls that are shown below earlier siblings of a call."""
        calls = self.ledger.calls
        return sum(self._below(one) for one in self.unfolded if one < place and calls[one].parent == parent)

    def _below(self, place: int) -> int:
        """Return the number of calls that are shown below an unfolded call."""
        calls = self.ledger.calls
        nested = (one for one in self.unfolded if calls[one].parent == place)
        return len(calls[place].children) + sum(self._below(one) for one in nested)

    def _insert(self, place: int) -> None:
        """Add a new call: at the end, or as the last one of its unfolded parent."""
        if self.ledger.calls[place].parent is None:
            self._tops.append(place)
        index = self._index(place)
        if index is not None:
            self._shown.insert(index, place)
            self._heights.insert(index, self._height_of(place))

    def call(self, index: int) -> LedgerCall:
        """Return the call of a block."""
        return self.ledger.calls[self._shown[index]]

    def index_of(self, call: LedgerCall | None) -> int | None:
        """Return the block of a call; None if the filter or a folded sub-agent hides it."""
        return self._index(call.place) if call is not None else None

    def block(self, index: int) -> tuple[int, int]:
        """Return first row and number of rows of a block."""
        return self._heights.start(index), self._heights.height(index)

    def row_within(self, index: int) -> int:
        """Return the row of the call itself."""
        return self._heights.start(index) + self._opens(self._shown[index])

    def find(self, row: int) -> int | None:
        """Return the block at a row; None below the last one."""
        index = self._heights.find(row)
        return index if index < len(self._shown) else None

    def moving(self, first_row: int, last_row: int) -> Iterator[int]:
        """Yield the rows in a range whose clock runs."""
        moving = self.ledger.places["running"] | self.ledger.places["needs_you"]
        for index in range(self._heights.find(first_row), min(self._heights.find(last_row) + 1, len(self._shown))):
            row = self.row_within(index)
            if self._shown[index] in moving and first_row <= row <= last_row:
                yield row

    def at(self, row: int) -> tuple[int, int] | None:
        """Return the block at a row, and the row within it: 0 is the call's own, -1 the line above; None below all."""
        index = self.find(row)
        return None if index is None else (index, row - self.row_within(index))

    def runs(self, row: int, context: RowContext) -> tuple[Run, ...]:
        """Return the text of one row."""
        if (at := self.at(row)) is None:
            return ()
        call, line = self.call(at[0]), at[1]
        if line < 0:
            return step_row(call.view, context.width)
        if line == 0:
            return row_of(call, replace(context, unfolded=call.place in self.unfolded))
        tail = tail_rows(call.view, context.width)
        return tail[line - 1] if line <= len(tail) else ()

    def _height_of(self, place: int) -> int:
        return self._opens(place) + 1 + len(tail_rows(self.ledger.calls[place].view, self.width))

    def _opens(self, place: int) -> bool:
        """Return True if there is a line above this call."""
        return place > 0 and self.chosen == "all" and self.ledger.calls[place].opens_step


def _found(places: Sequence[int], place: int) -> int | None:
    """Return the index of a place in an ascending list."""
    index = bisect_left(places, place)
    return index if index < len(places) and places[index] == place else None
