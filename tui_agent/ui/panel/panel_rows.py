"""Layout of the tool panel: its calls and their rows. Pure; the widget draws it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tui_agent.ui.state.call_ledger import CallFilter, CallLedger, LedgerCall
from tui_agent.ui.text.height_index import HeightIndex
from tui_agent.ui.text.styled_lines import Run

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
        self._shown: list[int] = []
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
            self.rebuild(self.chosen, self.width)
            return RowsChange(moved=True)
        moved = False
        for place in changed:
            height = self._height_of(place)
            if place == len(self._shown):
                self._shown.append(place)
                self._heights.append(height)
                moved = True
            else:
                moved = self._heights.set(place, height) or moved
        return RowsChange(moved, () if moved else tuple(changed))

    def rebuild(self, chosen: CallFilter, width: int) -> None:
        """Lay out everything for a filter and a width."""
        self.chosen, self.width = chosen, max(1, width)
        self._shown = self.ledger.shown(chosen)
        self._heights = HeightIndex(self._height_of(place) for place in self._shown)

    def call(self, index: int) -> LedgerCall:
        """Return the call of a block."""
        return self.ledger.calls[self._shown[index]]

    def index_of(self, call: LedgerCall | None) -> int | None:
        """Return the block of a call; None if the filter hides it."""
        place = call.place if call is not None else None
        return self._shown.index(place) if place in self._shown else None

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

    def runs(self, row: int, context: RowContext) -> tuple[Run, ...]:
        """Return the text of one row."""
        index = self.find(row)
        if index is None:
            return ()
        call = self.call(index)
        line = row - self.row_within(index)
        if line < 0:
            return step_row(call.view, context.width)
        if line == 0:
            return row_of(call, context)
        tail = tail_rows(call.view, context.width)
        return tail[line - 1] if line <= len(tail) else ()

    def _height_of(self, place: int) -> int:
        return self._opens(place) + 1 + len(tail_rows(self.ledger.calls[place].view, self.width))

    def _opens(self, place: int) -> bool:
        """Return True if there is a line above this call."""
        return place > 0 and self.chosen == "all" and self.ledger.calls[place].opens_step
