"""Conflict order of `Auto`: a call waits only for the earlier calls that it conflicts with.

Calls queue in call order and are registered once their arguments are final; registration determines which calls a call
waits for. No call is registered past a barrier (a call that conflicts with everything) before the barrier is done, so
that paths are resolved after whatever it did to them. The observable result equals running the calls one by one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

from tui_agent.execution.options import Grouping
from tui_agent.execution.pipeline.call_state import CallState
from tui_agent.protocol.tool import Accesses

E = TypeVar("E")

_NEWLY_BLOCKED = 4
"""Largest number of calls in the queue that learn at once that another call now blocks them, so that a message of many
commands does not make each end of one cost as many events as there are calls."""


def conflict(one: CallState, other: CallState) -> bool:
    """Return True if two calls must keep their order; `ConflictOrder` implements this definition."""
    if one.alone or other.alone:
        return True
    if one.safe and other.safe:
        return False
    first, second = one.accesses(), other.accesses()
    return first is None or second is None or meet(first, second)


@dataclass(slots=True, eq=False)
class OrderEntry:
    """Entry of one call in the order."""

    call: CallState
    settled: bool = False
    """True once its arguments are final."""
    registered: bool = False
    """True once it is known which calls it waits for."""
    done: bool = False
    waits_for: "set[OrderEntry]" = field(default_factory=set["OrderEntry"])
    awaited_by: "list[OrderEntry]" = field(default_factory=list["OrderEntry"])
    reported: "list[OrderEntry]" = field(default_factory=list["OrderEntry"])
    """The calls that it was last reported to wait for."""
    moved: asyncio.Event | None = None

    @property
    def is_free(self) -> bool:
        """True if the call may run now."""
        return self.registered and not self.waits_for


class ConflictOrder:
    """Order in which calls may run, independent of permits, permissions and time."""

    def __init__(self, grouping: Grouping = "conflicts") -> None:
        self._grouping = grouping
        self._line: deque[OrderEntry] = deque()
        """Calls not yet registered, in call order."""
        self._parked: deque[OrderEntry] = deque()
        """Calls that `safe_first` holds back until every safe call is known."""
        self._closed = False
        self._barrier: OrderEntry | None = None
        self._open: list[OrderEntry] = []
        """Calls registered since the last barrier."""
        self._unresolved: list[OrderEntry] = []
        """Safe ones among them whose paths have not been needed."""
        self._unknown: list[OrderEntry] = []
        """Safe ones among them whose paths are unknown."""
        self._unsafe: list[OrderEntry] = []
        self._tree: AccessTree[OrderEntry] = AccessTree()

    def add(self, call: CallState) -> OrderEntry:
        """Add a call at the end of the queue."""
        entry = OrderEntry(call)
        self._line.append(entry)
        return entry

    def settle(self, entry: OrderEntry) -> None:
        """Mark the arguments of a call as final."""
        if not entry.settled:
            entry.settled = True
            self._advance()

    def close(self) -> None:
        """Declare that no further call will be added."""
        self._closed = True
        self._advance()

    def blockers(self, entry: OrderEntry) -> tuple[int, ...]:
        """Return the positions of the calls that a call waits for, as far as they are known, in order."""
        return tuple(other.call.index for other in self._blocking(entry))

    async def wait(self, entry: OrderEntry, report: Callable[[tuple[int, ...]], None]) -> None:
        """Wait until the call may run. `report` receives what `blockers` returns, and again once those are over."""
        while not entry.is_free:
            if all(other.done for other in entry.reported):
                entry.reported = self._blocking(entry)
                report(tuple(other.call.index for other in entry.reported))
            entry.moved = asyncio.Event()
            await entry.moved.wait()

    def change(self, entry: OrderEntry) -> None:
        """Order a call anew, because its arguments changed after they were settled and before it ran.

        It waits for earlier calls it now conflicts with and for later ones that run already; the others wait for it.
        """
        if not entry.registered:
            return
        for other in self._open:
            if other is entry or other.done or not conflict(entry.call, other.call):
                continue
            comes_first = other.call.index < entry.call.index or other.call.has_turn
            self._let_wait(entry if comes_first else other, [other if comes_first else entry])
        if entry.call.alone or (not entry.call.safe and self._accesses_that_count(entry.call) is None):
            self._barrier = self._barrier or entry
        else:
            self._enter(entry)

    def leave(self, entry: OrderEntry) -> None:
        """Remove a call that is over. If it leaves before its turn, the calls that wait for it inherit its waits."""
        if entry.done:
            return
        entry.done = True
        for other in entry.awaited_by:
            other.waits_for.discard(entry)
            self._let_wait(other, self._before(other, entry.waits_for))
            _wake(other)
        if entry is self._barrier:
            self._barrier = None
            self._begin_segment()
        self._advance()
        for other in islice(chain(self._line, self._parked), _NEWLY_BLOCKED):
            _wake(other)

    def _blocking(self, entry: OrderEntry) -> list[OrderEntry]:
        if entry.registered:
            found = list(entry.waits_for)
        elif self._barrier is not None:
            found = [self._barrier]
        elif entry in self._parked:
            found = [other for other in (*self._line, *self._open) if not other.done]
        else:
            found = [other for other in self._line if not other.done and other.call.index < entry.call.index]
        return sorted(found, key=lambda other: other.call.index)

    def _advance(self) -> None:
        """Register every call that can be registered."""
        while (entry := self._next()) is not None:
            self._register(entry)
            _wake(entry)

    def _next(self) -> OrderEntry | None:
        if self._barrier is not None:
            return None
        while self._line and (self._line[0].settled or self._line[0].done):
            entry = self._line.popleft()
            if entry.done:
                continue
            if self._grouping == "safe_first" and not entry.call.safe:
                self._parked.append(entry)
                continue
            return entry
        while self._closed and not self._line and self._parked:
            entry = self._parked.popleft()
            if not entry.done:
                return entry
        return None

    def _register(self, entry: OrderEntry) -> None:
        entry.registered = True
        call = entry.call
        accesses = self._accesses_that_count(call)
        if call.safe and not call.alone:
            self._let_wait(entry, self._unsafe_met_by(entry) if self._unsafe else ())
            self._unresolved.append(entry)
        elif accesses is None:
            self._let_wait(entry, self._open)
            self._barrier = entry
        else:
            self._resolve_safe_calls()
            self._let_wait(entry, [*self._unknown, *self._tree.met_by(accesses)])
            self._unsafe.append(entry)
            self._tree.add(entry, accesses, waits=True)
        self._open.append(entry)

    def _accesses_that_count(self, call: CallState) -> Accesses | None:
        """Return the paths of an unsafe call; None if the call must be a barrier. Called once, because it is costly."""
        if call.alone or call.safe or self._grouping != "conflicts":
            return None
        return call.accesses()

    def _unsafe_met_by(self, entry: OrderEntry) -> Iterable[OrderEntry]:
        accesses = entry.call.accesses()
        met = self._unsafe if accesses is None else self._tree.met_by(accesses)
        return [other for other in met if not other.call.safe]

    def _resolve_safe_calls(self) -> None:
        """Add the paths of the safe calls to the tree, now that an unsafe call needs them."""
        for entry in self._unresolved:
            if not entry.done:
                self._enter(entry)
        self._unresolved = []

    def _enter(self, entry: OrderEntry) -> None:
        accesses = entry.call.accesses()
        if accesses is None:
            self._unknown.append(entry)
        else:
            self._tree.add(entry, accesses, waits=False)

    def _let_wait(self, entry: OrderEntry, others: Iterable[OrderEntry]) -> None:
        for other in others:
            if other is entry or other in entry.waits_for:
                continue
            if other.done:
                # Calls before it may be left if it was denied or skipped; they are met only through it.
                self._let_wait(entry, self._before(entry, other.waits_for))
            else:
                entry.waits_for.add(other)
                other.awaited_by.append(entry)

    def _before(self, entry: OrderEntry, others: Iterable[OrderEntry]) -> list[OrderEntry]:
        """Return the calls among `others` that a call conflicts with."""
        every = self._grouping != "conflicts"
        return [other for other in others if every or conflict(entry.call, other.call)]

    def _begin_segment(self) -> None:
        """Forget all calls before a barrier, except those that still run because their arguments were changed."""
        self._open = [entry for entry in self._open if not entry.done]
        self._unresolved = [entry for entry in self._open if entry.call.safe]
        self._unknown, self._unsafe = [], [entry for entry in self._open if not entry.call.safe]
        self._tree.clear()
        for entry in self._unsafe:
            self._enter(entry)


def _wake(entry: OrderEntry) -> None:
    if entry.moved is not None and (entry.is_free or all(other.done for other in entry.reported)):
        entry.moved.set()


class _Node(Generic[E]):
    __slots__ = ("below", "keepers", "readers", "writers")

    def __init__(self) -> None:
        self.below: dict[str, _Node[E]] = {}
        self.keepers: list[E] = []
        self.readers: list[E] = []
        self.writers: list[E] = []

    def owners(self, kinds: str) -> Iterator[E]:
        yield from self.writers
        if "k" in kinds:
            yield from self.keepers
        if "r" in kinds:
            yield from self.readers

    def subtree(self) -> "Iterator[_Node[E]]":
        yield self
        for node in self.below.values():
            yield from node.subtree()


class AccessTree(Generic[E]):
    """Accesses by path; finds the calls that others meet in time that does not depend on their number.

    A write meets an access of the same path, of a path above it (a search covers everything below; a directory is
    created or listed) and of a path below it. A newer write replaces the older accesses that it meets: a call that
    meets them meets that write, too. `E` represents a call.
    """

    def __init__(self) -> None:
        self._root: _Node[E] = _Node()

    def met_by(self, accesses: Accesses) -> Iterator[E]:
        """Yield the calls whose accesses meet these; a call may occur more than once."""
        for path in accesses.writes:
            yield from self._met(_parts(str(path)), "kr")
        for path in accesses.keeps:
            yield from self._met(_parts(str(path)), "r")
        for path in accesses.reads | accesses.searches:
            yield from self._met(_parts(str(path)), "k")

    def add(self, owner: E, accesses: Accesses, *, waits: bool) -> None:
        """Add a call's accesses.

        Args:
            owner: the call.
            accesses: its paths.
            waits: True if the call waits for every call that it meets; only then its writes replace their accesses.
        """
        for path in accesses.reads | accesses.searches:
            self._node(_parts(str(path))).readers.append(owner)
        for path in accesses.keeps:
            self._node(_parts(str(path))).keepers.append(owner)
        for path in accesses.writes:
            node = self._node(_parts(str(path)))
            if waits:
                node.below.clear()
                node.readers, node.keepers, node.writers = [], [], [owner]
            else:
                node.writers.append(owner)

    def clear(self) -> None:
        """Remove all accesses."""
        self._root = _Node()

    def _met(self, parts: list[str], kinds: str) -> Iterator[E]:
        """Yield the calls at a path, above and below that write or, by `kinds`, keep (`k`) or read (`r`)."""
        node = self._root
        for part in parts:
            yield from node.owners(kinds)
            inner = node.below.get(part)
            if inner is None:
                return
            node = inner
        for inner in node.subtree():
            yield from inner.owners(kinds)

    def _node(self, parts: list[str]) -> _Node[E]:
        node = self._root
        for part in parts:
            node = node.below.setdefault(part, _Node())
        return node


def meet(one: Accesses, other: Accesses) -> bool:
    """Return True if one call changes what the other accesses: the same path, or one above or below it.

    Writes and kept directories are changes; two calls that only keep may run together. `AccessTree` implements this
    definition.
    """
    return _changes_meet(one, other) or _changes_meet(other, one)


def _changes_meet(changer: Accesses, other: Accesses) -> bool:
    touched = other.reads | other.writes | other.searches
    return _any_related(changer.writes, touched | other.keeps) or _any_related(changer.keeps, touched)


def _any_related(some: Iterable[Path], others: Iterable[Path]) -> bool:
    return any(_related(_parts(str(one)), _parts(str(other))) for one in some for other in others)


def _related(one: list[str], other: list[str]) -> bool:
    """Return True if two paths are the same or one is above the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
