"""Widgets that draw once for a whole batch of events."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from .row_strips import DirectRefresh

_gathered: "list[CoalescedRefresh] | None" = None
"""Widgets that have changed in the current block of `settled_together`."""


class CoalescedRefresh(DirectRefresh):
    """A widget that calls `changed` for each change; `settle` runs once, after the events of the batch."""

    _unsettled = False

    def changed(self) -> None:
        """Schedule one call of `settle`."""
        if self._unsettled:
            return
        self._unsettled = True
        if _gathered is not None and self.is_running:
            _gathered.append(self)
        else:
            self.call_later(self.settle_once)

    def settle(self) -> None:
        """Draw the changes."""
        self.refresh()

    def settle_once(self) -> None:
        """Draw the changes since the last call."""
        self._unsettled = False
        self.settle()


@contextmanager
def settled_together(call: Callable[[Callable[[], None]], object]) -> Generator[None]:
    """Settle the widgets that change in the block at its end, without a message for each; `call` contains failures."""
    global _gathered
    outer, gathered = _gathered, list[CoalescedRefresh]()
    _gathered = gathered
    try:
        yield
    finally:
        _gathered = outer
    for widget in gathered:
        call(widget.settle_once)
