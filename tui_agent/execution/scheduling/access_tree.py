"""Finds the earlier calls that a call's paths meet, in time that depends on the paths and not on the calls.

A write meets an access of the same path, of a path above it (a search covers everything below; a directory is made or
listed) and of a path below it. Older accesses that a newer write makes needless to look at are forgotten: whoever meets
them meets that write, too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from tui_agent.execution.untrusted_calls import call_or_default
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.tool import Accesses, Tool

E = TypeVar("E")


def accesses_of(tool: Tool, arguments: JsonObject) -> Accesses | None:
    """What a tool says of a call's paths; None where it does not know, fails, or names what are no paths (C3)."""
    told = call_or_default(tool.accesses, arguments, otherwise=None, kind=Accesses)
    return told if told is not None and all(map(_are_paths, (told.reads, told.writes, told.searches))) else None


def _are_paths(named: Any) -> bool:
    return isinstance(named, frozenset | set) and all(isinstance(path, Path) for path in cast(set[object], named))


class _Node(Generic[E]):
    __slots__ = ("below", "readers", "writers")

    def __init__(self) -> None:
        self.below: dict[str, _Node[E]] = {}
        self.readers: list[E] = []
        self.writers: list[E] = []

    def owners(self, *, only_writers: bool) -> Iterator[E]:
        yield from self.writers
        if not only_writers:
            yield from self.readers

    def subtree(self) -> "Iterator[_Node[E]]":
        yield self
        for node in self.below.values():
            yield from node.subtree()


class AccessTree(Generic[E]):
    """Accesses by path; `E` is whatever stands for a call."""

    def __init__(self) -> None:
        self._root: _Node[E] = _Node()

    def met_by(self, accesses: Accesses) -> Iterator[E]:
        """Everyone whose accesses meet these; some may come twice."""
        for path in accesses.writes:
            yield from self._met(_parts(str(path)), only_writers=False)
        for path in accesses.reads | accesses.searches:
            yield from self._met(_parts(str(path)), only_writers=True)

    def add(self, owner: E, accesses: Accesses, *, waits: bool) -> None:
        """Adds a call's accesses.

        Args:
            owner: the call.
            accesses: its paths.
            waits: whether the call waits for everyone it meets; only then its writes stand for theirs.
        """
        for path in accesses.reads | accesses.searches:
            self._node(_parts(str(path))).readers.append(owner)
        for path in accesses.writes:
            node = self._node(_parts(str(path)))
            if waits:
                node.below.clear()
                node.readers, node.writers = [], [owner]
            else:
                node.writers.append(owner)

    def clear(self) -> None:
        """Forgets everything."""
        self._root = _Node()

    def _met(self, parts: list[str], *, only_writers: bool) -> Iterator[E]:
        node = self._root
        for part in parts:
            yield from node.owners(only_writers=only_writers)
            inner = node.below.get(part)
            if inner is None:
                return
            node = inner
        for inner in node.subtree():
            yield from inner.owners(only_writers=only_writers)

    def _node(self, parts: list[str]) -> _Node[E]:
        node = self._root
        for part in parts:
            node = node.below.setdefault(part, _Node())
        return node


def meet(one: Accesses, other: Accesses) -> bool:
    """Whether a write of one meets an access of the other; the definition that `AccessTree` must agree with."""
    return _writes_meet(one, other) or _writes_meet(other, one)


def _writes_meet(writer: Accesses, other: Accesses) -> bool:
    touched = other.reads | other.writes | other.searches
    return any(_related(_parts(str(write)), _parts(str(path))) for write in writer.writes for path in touched)


def _related(one: list[str], other: list[str]) -> bool:
    """Whether two paths are the same or one is above the other."""
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
