"""Rows of the tool panel: which calls it shows, in which order, and each as text. Pure; the widget draws them."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from tui_agent.protocol.amounts import seconds_text
from tui_agent.protocol.events import ToolStatus
from tui_agent.ui.state.call_ledger import CallFilter, CallLedger
from tui_agent.ui.state.call_records import END_KINDS, tool_kind
from tui_agent.ui.state.call_view_state import CallViewState, LedgerCall
from tui_agent.ui.text.line import Run
from tui_agent.ui.text.sanitiser import one_line

from .call_rows import fitted_summary, sign_of

# --- a call in one row, with its state in a column of its own ---------------------------------------------------------

STATE_ROOM = 9
"""Cells of the states at the right end of all rows."""
_GAP = 2
"""Least cells between the summary and the state."""

_ENDED: dict[ToolStatus, str] = {
    "overridden": "replaced",
    "timeout": "timed out",
    "invalid": "bad input",
    "not_found": "no tool",
    "output_limit": "cut off",
    "withheld": "withheld",
}
"""States of ended calls that their kind does not say. Who denied or skipped one is on its page."""


@dataclass(frozen=True, slots=True)
class RowContext:
    """Context of a row beside its call."""

    width: int
    now: float
    """Monotonic seconds."""
    frame: int = 0
    """Number of the spinner's frame."""
    tenths: bool = True
    """True if clocks show tenths of a second."""
    digits: int = 1
    """Digits of the highest number, so that all rows align."""
    find: Callable[[str], LedgerCall | None] = lambda _: None
    """Finds another call by id."""
    expanded: bool = False
    """True if the calls of its sub-agent are shown."""


def row_of(call: LedgerCall, context: RowContext) -> tuple[Run, ...]:
    """Return a call in one row: sign, number, tool, summary, and right-aligned in its own column the state."""
    view = call.view
    sign, style = sign_of(view, context.frame)
    # Deeper indents would leave no room for the summary.
    indent = "  " * min(view.origin.depth, 4)
    marker = " " if not call.children else "▾" if context.expanded else "▸"
    head = f"{indent}{marker}{sign} "
    # Of two digits at least, so that the rows do not move when the tenth call comes.
    number = f"{f'#{call.number}':<{max(2, context.digits) + 1}} "
    name = f"{one_line(view.name, 16):<5} "
    state, state_style = _state(view, context)
    room = max(0, context.width - cell_len(head) - cell_len(number) - cell_len(name) - STATE_ROOM - _GAP - 1)
    summary = _fitted(_named_summary(view), room)
    return (
        (head, style),
        (number, "number"),
        (name, f"tool-{tool_kind(view.name)}"),
        (summary, "summary"),
        (" " * (room - cell_len(summary) + _GAP), ""),
        (f"{state:>{STATE_ROOM}}", state_style),
    )


def done_row(number: int, *, expanded: bool) -> tuple[Run, ...]:
    """Return the row that stands for all calls that ended well, and shows or hides them."""
    return (("▾" if expanded else "▸", "number"), ("✔ ", "ok"), (f"{number:,} done", "amount"))


def _state(view: CallViewState, context: RowContext) -> tuple[str, str]:
    """Return the state in words and its style; for a call that runs or ended well its seconds."""
    if view.outcome.job:
        return view.outcome.job, "amount"
    # The command itself has ended well.
    if view.is_discarded:
        return "discarded", "amount"
    if view.status is not None:
        seconds = seconds_text(view.timing.latency_ms / 1000) if view.timing.started_at is not None else ""
        kind = END_KINDS[view.status]
        word = _ENDED.get(view.status) or (seconds if kind == "done" else kind)
        return word, "failed" if sign_of(view)[1] == "failed" else "amount"
    match view.phase:
        case "running" if view.agent_asks:
            return "needs you", "asking"
        case "running":
            return seconds_text(view.elapsed_ms(context.now) / 1000, tenths=context.tenths), "running"
        case "asking":
            return "needs you", "asking"
        case _:
            found = [call for call in map(context.find, view.waits_on) if call is not None and not call.view.ended]
            found.sort(key=lambda call: call.view.phase != "asking")
            return f"after #{found[0].number}" if found else "queued", "waiting"


def _named_summary(view: CallViewState) -> str:
    """Return the summary of a call, and before it the name of its sub-agent if the tool's name does not say it."""
    label = view.subagent.label or ""
    name = label.rpartition("-")[0] or label  # The last part of an agent's id only tells agents of one name apart.
    return f"{one_line(name, 20)} · {view.summary}" if name not in ("", view.name) else view.summary


def _fitted(summary: str, width: int) -> str:
    """Return the summary cut to the width: of a long path the end, of a path with counts only the path."""
    path, bracket, rest = summary.rpartition(" (")
    return fitted_summary(path if bracket and rest.endswith(")") and " " not in path else summary, width)


# --- all rows ---------------------------------------------------------------------------------------------------------

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
    """One row for each call that passes the filter; without a filter, one for all that ended well, until it expands."""

    def __init__(self, ledger: CallLedger) -> None:
        self.ledger = ledger
        """All calls. After another one is set, `rebuild` must be called."""
        self.chosen: CallFilter = "all"
        """Current filter; set by `rebuild`."""
        self.expanded: set[int] = set()
        """Calls whose sub-agent's calls are shown, and `DONE` while the calls that ended well are."""
        self._shown: list[int] = []
        # Each event asks if a call is shown, and the list may have thousands.
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
            if DONE in self.expanded:
                tops: Sequence[int] = range(len(calls))
            else:
                tops = sorted(
                    set[int]().union(*(found for kind, found in self.ledger.places.items() if kind != "done"))
                )
            for place in tops:
                if calls[place].parent is None:
                    self._shown += self._with_descendants(place)
        self._known = set(self._shown)

    def toggle(self, call: LedgerCall | None) -> bool:
        """Show or hide the calls of a call's sub-agent, or without a call those that ended well.

        Return False if there are none. `rebuild` must be called then.
        """
        if self.chosen != "all" or (call is not None and not call.children):
            return False
        self.expanded.symmetric_difference_update((DONE if call is None else call.place,))
        return True

    def reveal(self, call: LedgerCall) -> None:
        """Expand what hides a call. `rebuild` must be called then."""
        while call.parent is not None:
            self.expanded.add(call.parent)
            call = self.ledger.calls[call.parent]
        if call.kind == "done":
            self.expanded.add(DONE)

    def _is_shown(self, place: int) -> bool:
        """Return True if a call has a row of its own."""
        call = self.ledger.calls[place]
        while call.parent is not None:
            if call.parent not in self.expanded:
                return False
            call = self.ledger.calls[call.parent]
        return call.kind != "done" or DONE in self.expanded

    def _with_descendants(self, place: int) -> Iterator[int]:
        """Yield a call and the calls below it that are shown."""
        yield place
        if place in self.expanded:
            for child in self.ledger.calls[place].children:
                yield from self._with_descendants(child)

    def _move(self, place: int, *, is_shown: bool, was_shown: bool) -> None:
        """Add or remove rows after a change of one call."""
        first = int(DONE in self._known)
        if first != bool(self.ledger.places["done"]) or self.expanded - {DONE}:
            self.rebuild("all")
        elif is_shown:
            self._shown.insert(bisect_left(self._shown, place, lo=first), place)
            self._known.add(place)
        elif was_shown:
            del self._shown[bisect_left(self._shown, place, lo=first)]
            self._known.discard(place)

    def _index(self, place: int) -> int | None:
        """Return the row of a place; None if it has none. Slow only while sub-agents are expanded."""
        if place not in self._known:
            return None
        # Calls of an expanded sub-agent are below it, so that the places no longer ascend.
        return self._shown.index(place) if self.expanded - {DONE} else bisect_left(self._shown, place)

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
        """Return the text of one row."""
        call = self.call(row)
        if call is None:
            return done_row(len(self.ledger.places["done"]), expanded=DONE in self.expanded)
        return row_of(call, replace(context, expanded=call.place in self.expanded))
