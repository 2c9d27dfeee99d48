"""Widgets that draw once for a whole batch of events."""

from textual.widget import Widget


class CoalescedRefresh(Widget):
    """A widget that calls `changed` for each change; `settle` runs once, after the events of the batch."""

    _unsettled = False

    def changed(self) -> None:
        """Schedule one call of `settle`."""
        if not self._unsettled:
            self._unsettled = True
            self.call_later(self._settle_once)

    def settle(self) -> None:
        """Draw the changes."""
        self.refresh()

    def _settle_once(self) -> None:
        self._unsettled = False
        self.settle()
