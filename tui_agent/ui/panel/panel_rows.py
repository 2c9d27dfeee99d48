"""Rows of the tool panel: which calls it shows, in which order. Pure; the widget draws them."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tui_agent.ui.state.call_ledger import CallFilter, CallLedger
from tui_agent.ui.state.call_view_state import LedgerCall
from tui_agent.ui.text.line import Run

from .column_row import RowContext, done_row, row_of

DONE = -1
"""Place of the row that stands for the calls that ended well."""


@dataclass(frozen=True, slots=True)
class RowsChange:
    """Effect of changed calls on the rows."""

    moved: bool
    """True if rows were added or removed."""
    rows: tuple[int, ...] = ()
    """Rows that look different, if none moved."""


class PanelRows:
    """One row for each call that passes the filter; without a filter, one for all that ended well, until it unfolds."""

    def __init__(self, ledger: CallLedger) -> None:
        self.ledger = ledger
        """All calls. After another one is set, `rebuild` must be called."""
        self.chosen: CallFilter = "all"
        """Current filter; set by `rebuild`."""
        self.unfolded: set[int] = set()
        """Calls whose sub-agent's calls are shown, and `DONE` while the calls that ended well are."""
        self._shown: list[int] = []
        self._known: set[int] = set()
        """The same places."""

    def __len__(self) -> int:
        return len(self._shown)

    def update(self, changed: Sequence[int]) -> RowsChange:
        """Lay out the calls at these indexes of the ledger, which an event has changed or added."""
        if self.chosen != "all":
            # Any change may let a call pass the filter, or no longer.
            self.rebuild(self.chosen)
            return RowsChange(moved=True)
        moved, rows = False, list[int]()
        for place in changed:
            is_shown, was_shown = self._is_shown(place), place in self._known
            if is_shown != was_shown or bool(self.ledger.places["done"]) != (DONE in self._known):
                self._move(place, is_shown=is_shown, was_shown=was_shown)
                moved = True
            at: int | None = place
            while at is not None:
                # The row of a sub-agent says that one of its calls needs the user.
                if at in self._known and (index := self._index(at)) is not None:
                    rows.append(index)
                at = self.ledger.calls[at].parent
        if DONE in self._known:
            rows.append(0)
        return RowsChange(moved, () if moved else tuple(rows))

    def rebuild(self, chosen: CallFilter) -> None:
        """Lay out everything for a filter."""
        self.chosen, calls = chosen, self.ledger.calls
        if chosen != "all":
            self._shown = self.ledger.shown(chosen)
        else:
            self._shown = [DONE] if self.ledger.places["done"] else []
            if DONE in self.unfolded:
                tops: Sequence[int] = range(len(calls))
            else:
                tops = sorted(
                    set[int]().union(*(found for kind, found in self.ledger.places.items() if kind != "done"))
                )
            for place in tops:
                if calls[place].parent is None:
                    self._shown += self._with_descendants(place)
        self._known = set(self._shown)

    def fold(self, call: LedgerCall | None) -> bool:
        """Show or hide the calls of a call's sub-agent, or without a call those that ended well.

        Return False if there are none. `rebuild` must be called then.
        """
        if self.chosen != "all" or (call is not None and not call.children):
            return False
        self.unfolded.symmetric_difference_update((DONE if call is None else call.place,))
        return True

    def reveal(self, call: LedgerCall) -> None:
        """Unfold what hides a call. `rebuild` must be called then."""
        while call.parent is not None:
            self.unfolded.add(call.parent)
            call = self.ledger.calls[call.parent]
        if call.kind == "done":
            self.unfolded.add(DONE)

    def _is_shown(self, place: int) -> bool:
        """Return True if a call has a row of its own."""
        call = self.ledger.calls[place]
        while call.parent is not None:
            if call.parent not in self.unfolded:
                return False
            call = self.ledger.calls[call.parent]
        return call.kind != "done" or DONE in self.unfolded

    def _with_descendants(self, place: int) -> Iterator[int]:
        """Yield a call and the calls below it that are shown."""
        yield place
        if place in self.unfolded:
            for child in self.ledger.calls[place].children:
                yield from self._with_descendants(child)

    def _move(self, place: int, *, is_shown: bool, was_shown: bool) -> None:
        """Add or remove rows after a change of one call."""
        first = int(DONE in self._known)
        if first != bool(self.ledger.places["done"]) or self.unfolded - {DONE}:
            self.rebuild("all")
        elif is_shown:
            self._shown.insert(bisect_left(self._shown, place, lo=first), place)
            self._known.add(place)
        elif was_shown:
            del self._shown[bisect_left(self._shown, place, lo=first)]
            self._known.discard(place)

    def _index(self, place: int) -> int | None:
        """Return the row of a place; None if it has none. Slow only while sub-agents are unfolded."""
        if place not in self._known:
            return None
        return self._shown.index(place) if self.unfolded - {DONE} else bisect_left(self._shown, place)

    def call(self, row: int) -> LedgerCall | None:
        """Return the call of a row; None for the row of those that ended well."""
        place = self._shown[row]
        return None if place == DONE else self.ledger.calls[place]

    def index_of(self, call: LedgerCall | None) -> int | None:
        """Return the row of a call; None if it has none of its own."""
        return self._index(call.place) if call is not None else None

    def moving(self, first_row: int, last_row: int) -> Iterator[int]:
        """Yield the rows in a range whose clock runs."""
        running = self.ledger.places["running"]
        return (row for row in range(first_row, min(last_row + 1, len(self._shown))) if self._shown[row] in running)

    def runs(self, row: int, context: RowContext) -> tuple[Run, ...]:
        """Return the text of one row; nothing below the last one."""
        if row >= len(self._shown):
            return ()
        call = self.call(row)
        if call is None:
            return done_row(len(self.ledger.places["done"]), unfolded=DONE in self.unfolded)
        return row_of(call, replace(context, unfolded=call.place in self.unfolded))
