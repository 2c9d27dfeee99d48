"""Calls that change files at the same time, so that each reports its own changes and not those of the others."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from .atomic_write import is_temporary_of

Writes: TypeAlias = Collection[Path] | None
"""Resolved paths that a call changes, each with everything below it; None if they are unknown."""


@dataclass(slots=True, eq=False)
class ChangingCall:
    """One call while it changes files."""

    writes: Writes
    others: list[Writes] = field(default_factory=list[Writes])
    """Paths of the calls that ran at some time while this one did."""

    def may_have_changed(self, path: Path) -> bool:
        """Return True if a change of a file may be this call's.

        Each change is at least one call's: one that no call names is that of every call, or of those whose paths are
        unknown.
        """
        if self.writes is not None and _covers(self.writes, path):
            return True
        others = tuple(self.others)  # A copy, because this runs in a thread while other calls begin.
        if any(other is not None and _covers(other, path) for other in others):
            return False
        return self.writes is None or None not in others


class ChangingCalls:
    """The calls of one workspace that change files now."""

    def __init__(self) -> None:
        self._running: list[ChangingCall] = []

    @contextmanager
    def entered(self, writes: Writes) -> Generator[ChangingCall]:
        """Count a call among them. Enter before its first look at the files and leave after the last."""
        call = ChangingCall(writes, [other.writes for other in self._running])
        for other in self._running:
            other.others.append(writes)
        self._running.append(call)
        try:
            yield call
        finally:
            self._running.remove(call)


def _covers(writes: Collection[Path], path: Path) -> bool:
    return any(path.is_relative_to(write) or is_temporary_of(path, write) for write in writes)
