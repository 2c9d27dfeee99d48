"""The order of `Auto`: a call waits only for the earlier calls it conflicts with (C2).

Calls stand in line in call order and step forward once their effective arguments are known. Stepping forward, a call
learns whom it must wait for. Nobody steps past a barrier (a call that conflicts with everything) before it is done,
so that paths are resolved after whatever it did to them. The observable result equals running the calls one by one.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from tui_agent.execution.options import Grouping
from tui_agent.protocol.tool import Accesses

from .access_tree import AccessTree, meet


class Ordered(Protocol):
    """What the order must know of a call; read when it is needed, so that arguments may change until then."""

    @property
    def index(self) -> int:
        """Its number in its message."""
        ...

    @property
    def safe(self) -> bool:
        """Whether it may run beside others that are safe."""
        ...

    @property
    def alone(self) -> bool:
        """Whether nothing at all may run beside it (`execution_mode="sequential"`)."""
        ...

    @property
    def has_turn(self) -> bool:
        """Whether it runs, ran, or is about to."""
        ...

    def accesses(self) -> Accesses | None:
        """Its resolved paths; None: unknown. Asked as seldom as possible: it may look at the disk."""
        ...


def conflict(one: Ordered, other: Ordered) -> bool:
    """Whether two calls must keep their order: the definition that `ConflictOrder` agrees with."""
    if one.alone or other.alone:
        return True
    if one.safe and other.safe:
        return False
    first, second = one.accesses(), other.accesses()
    return first is None or second is None or meet(first, second)


@dataclass(slots=True, eq=False)
class OrderEntry:
    """One call's place in the order."""

    call: Ordered
    settled: bool = False
    """Its effective arguments are known."""
    registered: bool = False
    """It stepped forward and knows whom it waits for."""
    done: bool = False
    waits_for: "set[OrderEntry]" = field(default_factory=set["OrderEntry"])
    awaited_by: "list[OrderEntry]" = field(default_factory=list["OrderEntry"])
    moved: asyncio.Event | None = None

    @property
    def is_free(self) -> bool:
        """Whether the call may run now."""
        return self.registered and not self.waits_for


class ConflictOrder:
    """Says when each call may run; knows nothing of permits, permissions or time."""

    def __init__(self, grouping: Grouping = "conflicts") -> None:
        self._grouping = grouping
        self._line: deque[OrderEntry] = deque()
        """Calls that have not stepped forward, in call order."""
        self._parked: deque[OrderEntry] = deque()
        """Calls that `safe_first` keeps until every safe call is known."""
        self._closed = False
        self._barrier: OrderEntry | None = None
        self._open: list[OrderEntry] = []
        """Registered since the last barrier."""
        self._unresolved: list[OrderEntry] = []
        """Safe calls of these whose paths nobody needed so far."""
        self._unknown: list[OrderEntry] = []
        """Safe calls of these that do not say which paths they touch."""
        self._unsafe: list[OrderEntry] = []
        self._tree: AccessTree[OrderEntry] = AccessTree()

    def add(self, call: Ordered) -> OrderEntry:
        """A place at the end of the line."""
        place = OrderEntry(call)
        self._line.append(place)
        return place

    def settle(self, place: OrderEntry) -> None:
        """The call's effective arguments are known."""
        if not place.settled:
            place.settled = True
            self._advance()

    def close(self) -> None:
        """No further call will come."""
        self._closed = True
        self._advance()

    def blockers(self, place: OrderEntry) -> tuple[int, ...]:
        """Numbers of the calls that `place` waits for, as far as they are known by now, in order."""
        if place.registered:
            return tuple(sorted(other.call.index for other in place.waits_for))
        if self._barrier is not None:
            return (self._barrier.call.index,)
        others = [*self._line, *self._open] if place in self._parked else self._line
        ahead = [other.call.index for other in others if not other.done and other is not place]
        return tuple(sorted(index for index in ahead if place in self._parked or index < place.call.index))

    async def wait(self, place: OrderEntry) -> None:
        """Waits until the call may run."""
        while not place.is_free:
            place.moved = asyncio.Event()
            await place.moved.wait()

    def change(self, place: OrderEntry) -> None:
        """The call's arguments were changed after they were settled; it has not begun to run.

        It waits for earlier calls it now conflicts with and for later ones that run already; the others wait for it.
        """
        if not place.registered:
            return
        for other in self._open:
            if other is place or other.done or not conflict(place.call, other.call):
                continue
            comes_first = other.call.index < place.call.index or other.call.has_turn
            _let_wait(place if comes_first else other, [other if comes_first else place])
        if place.call.alone or (not place.call.safe and self._accesses_that_count(place.call) is None):
            self._barrier = self._barrier or place
        else:
            self._enter(place)

    def leave(self, place: OrderEntry) -> None:
        """The call is over, whatever became of it."""
        if place.done:
            return
        place.done = True
        for other in place.awaited_by:
            other.waits_for.discard(place)
            _wake(other)
        if place is self._barrier:
            self._barrier = None
            self._begin_segment()
        self._advance()

    def _advance(self) -> None:
        """Lets everyone step forward who can."""
        while (place := self._next()) is not None:
            self._register(place)
            _wake(place)

    def _next(self) -> OrderEntry | None:
        if self._barrier is not None:
            return None
        while self._line and (self._line[0].settled or self._line[0].done):
            place = self._line.popleft()
            if place.done:
                continue
            if self._grouping == "safe_first" and not place.call.safe:
                self._parked.append(place)
                continue
            return place
        while self._closed and not self._line and self._parked:
            place = self._parked.popleft()
            if not place.done:
                return place
        return None

    def _register(self, place: OrderEntry) -> None:
        place.registered = True
        call = place.call
        accesses = self._accesses_that_count(call)
        if call.safe and not call.alone:
            _let_wait(place, self._unsafe_met_by(place) if self._unsafe else ())
            self._unresolved.append(place)
        elif accesses is None:
            _let_wait(place, self._open)
            self._barrier = place
        else:
            self._resolve_safe_calls()
            _let_wait(place, [*self._unknown, *self._tree.met_by(accesses)])
            self._unsafe.append(place)
            self._tree.add(place, accesses, waits=True)
        self._open.append(place)

    def _accesses_that_count(self, call: Ordered) -> Accesses | None:
        """The paths of a call that need not be a barrier for what it may change; asked once, since it costs."""
        if call.alone or call.safe or self._grouping != "conflicts":
            return None
        return call.accesses()

    def _unsafe_met_by(self, place: OrderEntry) -> Iterable[OrderEntry]:
        accesses = place.call.accesses()
        met = self._unsafe if accesses is None else self._tree.met_by(accesses)
        return [other for other in met if not other.call.safe]

    def _resolve_safe_calls(self) -> None:
        """An unsafe call came: now it counts which paths the safe ones touch."""
        for place in self._unresolved:
            if not place.done:
                self._enter(place)
        self._unresolved = []

    def _enter(self, place: OrderEntry) -> None:
        accesses = place.call.accesses()
        if accesses is None:
            self._unknown.append(place)
        else:
            self._tree.add(place, accesses, waits=False)

    def _begin_segment(self) -> None:
        """After a barrier nothing before it counts, except what still runs because its arguments were changed."""
        self._open = [place for place in self._open if not place.done]
        self._unresolved = [place for place in self._open if place.call.safe]
        self._unknown, self._unsafe = [], [place for place in self._open if not place.call.safe]
        self._tree.clear()
        for place in self._unsafe:
            self._enter(place)


def _let_wait(place: OrderEntry, others: Iterable[OrderEntry]) -> None:
    for other in others:
        if not other.done and other is not place and other not in place.waits_for:
            place.waits_for.add(other)
            other.awaited_by.append(place)


def _wake(place: OrderEntry) -> None:
    if place.moved is not None and place.is_free:
        place.moved.set()
