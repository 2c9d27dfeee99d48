"""A part of the screen that fails costs nobody their run: it is told once, written down, and the rest goes on.

The screen is one of several listeners of a run. A fault in drawing says nothing about the run, and a person who sees
the app end in the middle of one loses more than a panel that is wrong.
"""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from tui_agent.protocol.envelope import Envelope

Drawn = TypeVar("Drawn")

_LOG = logging.getLogger(__name__)


class EventView(Protocol):
    """A part of the screen that the engine feeds."""

    def apply(self, envelope: Envelope, /) -> object:
        """Takes one event."""
        ...


def call_or_fallback(do: Callable[[], Drawn], instead: Callable[[Exception], Drawn]) -> Drawn:
    """What `do` gives; where it fails, what `instead` makes of the fault."""
    try:
        return do()
    except Exception as fault:
        return instead(fault)


class ErrorBoundary:
    """What becomes of exceptions in parts of the screen."""

    def __init__(self, tell: Callable[[str], object], log_file: Path | None) -> None:
        """Contains faults from now on.

        Args:
            tell: shows a text to the person.
            log_file: where log records go; None: a fault is raised, which ends the app, as whoever tests it wants.
        """
        self._tell = tell
        self._log_file = log_file
        self._reported: set[tuple[str, type[Exception]]] = set()

    def hand_over(self, envelope: Envelope, parts: Iterable[EventView]) -> None:
        """Gives an event to each part; one that fails keeps it from no other."""
        for part in parts:
            try:
                part.apply(envelope)
            except Exception as fault:
                self.contain(part, fault)

    def contain(self, part: object, error: Exception) -> None:
        """Takes the fault of one part; the same kind of fault in the same part is told and written down once.

        Raises:
            Exception: the fault itself, where there is no log.
        """
        if self._log_file is None:
            raise error
        name, kind = type(part).__name__, type(error)
        if (name, kind) in self._reported:
            return
        self._reported.add((name, kind))
        _LOG.error("%s could not show something", name, exc_info=error)
        self._tell(
            f"Part of the screen failed ({name}, {kind.__name__}) and may show something wrong. "
            f"The run goes on and the session is kept. Details: {self._log_file}"
        )

    def exit_message(self, error: Exception) -> str | None:
        """What to say when the app has to end because of a fault; None: leave it to whoever tests the app."""
        if self._log_file is None:
            return None
        _LOG.critical("the screen had to end", exc_info=error)
        return (
            f"tui-agent: the screen failed ({type(error).__name__}) and had to close. The session is kept: "
            f"tui-agent --continue goes on with it. Details: {self._log_file}"
        )
