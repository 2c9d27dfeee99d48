"""The model's plan, the files that the session has changed, and the findings of its newest review: small folds."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    FileChanged,
    RunEnded,
    RunStarted,
    SessionCreated,
    SessionLoaded,
    SessionRewound,
    SessionSwitched,
    TodoItem,
    TodoUpdated,
    ToolEnded,
)
from tui_agent.protocol.messages import FrozenModel

if TYPE_CHECKING:
    # The first screen must not wait for what only a review needs.
    from tui_agent.protocol.facts.page_facts import Finding

PLAN_EVENTS: frozenset[type[FrozenModel]] = frozenset((TodoUpdated, SessionRewound, SessionSwitched))
"""Events that may change the plan."""


class Plan:
    """The plan of the root agent. Changed by `apply` only."""

    def __init__(self) -> None:
        self.items: tuple[TodoItem, ...] = ()
        self._history: list[tuple[int, tuple[TodoItem, ...]]] = []

    @property
    def done(self) -> int:
        """Number of finished items."""
        return sum(item.status == "done" for item in self.items)

    @property
    def is_open(self) -> bool:
        """True if an item is not finished."""
        return self.done < len(self.items)

    @property
    def count_text(self) -> str:
        """Progress, such as `2 of 5 done`."""
        return f"{self.done} of {len(self.items)} done"

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        if envelope.origin.depth:
            return False
        match envelope.event:
            case TodoUpdated(items=items):
                self.items = items
            case SessionRewound(conversation=True, to_seq=to_seq):
                place = bisect_right(self._history, to_seq, key=lambda entry: entry[0])
                self.items = self._history[place - 1][1] if place else ()
            case SessionSwitched():
                self.items = ()
                self._history.clear()
            case _:
                return False
        # A rewind is an entry, too, so that its own undo finds the plan before it.
        self._history.append((envelope.seq, self.items))
        return True


FILE_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (FileChanged, SessionCreated, SessionLoaded, SessionRewound, SessionSwitched)
)
"""Events that may change the list."""


@dataclass(frozen=True, slots=True)
class FileTotals:
    """Changes of one file, all together."""

    added: int = 0
    removed: int = 0
    changes: int = 0
    """Number of changes; 0 if the file is as it was before the session."""


@dataclass(frozen=True, slots=True)
class _Change:
    seq: int
    call_id: str | None
    by: FileTotals
    after: FileTotals


class ChangedFiles:
    """Changed files by path, the one that changed last at the end. Changed by `apply` only."""

    def __init__(self) -> None:
        self.files: dict[str, FileTotals] = {}
        """Totals by path; paths below the working directory are relative."""
        self._root = ""
        self._history: dict[str, list[_Change]] = {}

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event, seq = envelope.event, envelope.seq
        match event:
            case FileChanged():
                path = event.path.removeprefix(f"{self._root}/") if self._root else event.path
                by = FileTotals(event.added, event.removed, 1)
                self._set(path, seq, event.call_id, by, _sum(self.files.get(path, FileTotals()), by))
            case SessionRewound(files=files) if files:
                for path in files:
                    self._set(path, seq, None, FileTotals(), self._totals_after(path, event))
            case SessionCreated(cwd=root) | SessionLoaded(cwd=root):
                self._root = root.rstrip("/")
                return False
            case SessionSwitched():
                self.files.clear()
                self._history.clear()
            case _:
                return False
        return True

    def calls_of(self, path: str) -> tuple[str, ...]:
        """Return the ids of the calls that changed a file, oldest first, each once."""
        ids = (change.call_id for change in self._history.get(path, ()))
        return tuple(dict.fromkeys(call_id for call_id in ids if call_id is not None))

    def _totals_after(self, path: str, event: SessionRewound) -> FileTotals:
        """Return the totals of a file that a rewind, or the undo of one call, has restored."""
        history = self._history.get(path, [])
        # Undoing one call keeps what others changed after it.
        seq = event.to_seq if event.call_id is None else event.from_seq
        place = bisect_right(history, seq, key=lambda change: change.seq)
        totals = history[place - 1].after if place else FileTotals()
        if event.is_undo and event.to_seq:
            by = history[-1].by if len(history) > place else FileTotals()
            fewer = max(0, totals.added - by.removed), max(0, totals.removed - by.added)
            return FileTotals(*fewer, totals.changes) if totals.changes else by
        if event.call_id is None:
            return totals
        undone = [change.by for change in history[:place] if change.call_id == event.call_id]
        return FileTotals(
            max(0, totals.added - sum(by.added for by in undone)),
            max(0, totals.removed - sum(by.removed for by in undone)),
            max(0, totals.changes - len(undone)),
        )

    def _set(self, path: str, seq: int, call_id: str | None, by: FileTotals, after: FileTotals) -> None:
        self._history.setdefault(path, []).append(_Change(seq, call_id, by, after))
        # Removed first, because a key that is set again keeps its place.
        self.files.pop(path, None)
        if after.changes:
            self.files[path] = after


def _sum(one: FileTotals, other: FileTotals) -> FileTotals:
    return FileTotals(one.added + other.added, one.removed + other.removed, one.changes + other.changes)


_REPORT_TOOL = "report_findings"

FINDING_EVENTS: frozenset[type[FrozenModel]] = frozenset((ToolEnded, RunStarted, RunEnded, SessionSwitched))
"""Events that may change the findings."""


class ReviewFindings:
    """The findings of the last run that reported some, the worst first. Changed by `apply` only."""

    def __init__(self) -> None:
        self.items: tuple[Finding, ...] | None = None
        """The findings; None if no review has ended."""
        self._of_run: tuple[Finding, ...] | None = None

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return True if a run has ended that reported findings."""
        match envelope.event:
            case ToolEnded(name=name) as event if name == _REPORT_TOOL:
                # Loaded with the first review, because most sessions have none.
                from tui_agent.protocol.facts.page_facts import findings_of, in_order

                if (found := findings_of(event)) is not None:
                    self._of_run = (*(self._of_run or ()), *found)
                    self.items = in_order(self._of_run)
            case RunStarted() if not envelope.origin.depth:
                self._of_run = None
            case RunEnded() if not envelope.origin.depth:
                has_reported, self._of_run = self._of_run is not None, None
                return has_reported
            case SessionSwitched():
                self.items = self._of_run = None
            case _:
                pass
        return False
