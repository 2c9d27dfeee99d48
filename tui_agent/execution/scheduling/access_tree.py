"""Tree that finds the earlier calls whose paths a call's paths meet, in time that does not depend on their number.

A write meets an access of the same path, of a path above it (a search covers everything below; a directory is created
or listed) and of a path below it. A newer write replaces the older accesses that it meets: a call that meets them meets
that write, too.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

from tui_agent.protocol.tool import Accesses

E = TypeVar("E")


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
    """Accesses by path; `E` represents a call."""

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
    """Return True if a write of one meets an access of the other, or a directory that one keeps anything but a
    directory that the other keeps; `AccessTree` implements this definition."""
    return _changes_meet(one, other) or _changes_meet(other, one)


def _changes_meet(changer: Accesses, other: Accesses) -> bool:
    touched = other.reads | other.writes | other.searches
    return _any_related(changer.writes, touched | other.keeps) or _any_related(changer.keeps, touched)


def _any_related(some: Iterable[Path], others: Iterable[Path]) -> bool:
    return any(_related(_parts(str(one)), _parts(str(other))) for one in some for other in others)


def _related(one: list[str], other: list[str]) -> bool:
    """Return True if two paths are the same or one is above the other."""
    # Writing `a/b` beside `a` has no sequential equivalent.
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
