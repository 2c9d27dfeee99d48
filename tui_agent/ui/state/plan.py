"""The model's plan: the fold behind the pinned plan and its row in the conversation."""

from bisect import bisect_right

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionRewound, SessionSwitched, TodoItem, TodoUpdated
from tui_agent.protocol.messages import FrozenModel

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset((TodoUpdated, SessionRewound, SessionSwitched))
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
        self._history.append((envelope.seq, self.items))
        return True
