"""Parts that hear many events and draw once: a batch of them costs one look at the screen, however long it is."""

from textual.widget import Widget


class CoalescedRefresh(Widget):
    """Call `changed` whenever something to be drawn changed; `settle` follows once, behind the events of the batch."""

    _unsettled = False

    def changed(self) -> None:
        """Something is to be drawn anew."""
        if not self._unsettled:
            self._unsettled = True
            self.call_later(self._settle_once)

    def settle(self) -> None:
        """Draws what changed."""
        self.refresh()

    def _settle_once(self) -> None:
        self._unsettled = False
        self.settle()
