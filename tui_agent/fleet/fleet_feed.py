"""News for the viewers of a fleet: changed rows, notices, and the events of the units that they watch."""

import asyncio
from collections.abc import Generator, Iterable
from contextlib import contextmanager

MOST_LINES = 2_000
"""Events that wait for a viewer; then deltas are left out, and the viewer reads missed facts from the journal."""


class FeedSubscription:
    """News that one viewer was not told yet."""

    def __init__(self, *, is_viewer: bool = True) -> None:
        self.is_viewer = is_viewer
        self.changed: set[str] = set()
        """Units whose rows changed."""
        self.notices: list[str] = []
        self.lines: dict[str, list[bytes]] = {}
        """Waiting events of each watched unit."""
        self.missed: set[str] = set()
        """Watched units with more events than can wait."""
        self.awake = asyncio.Event()
        """Set if something waits."""

    def watch(self, unit_id: str) -> None:
        """Take the events of a unit, too."""
        self.lines.setdefault(unit_id, [])

    def unwatch(self, unit_id: str) -> None:
        """Take them no longer."""
        self.lines.pop(unit_id, None)
        self.missed.discard(unit_id)


class FleetFeed:
    """Tells all viewers. It never waits for one."""

    def __init__(self) -> None:
        self._subscriptions: set[FeedSubscription] = set()

    @property
    def viewers(self) -> int:
        """Number of viewers."""
        return sum(subscription.is_viewer for subscription in self._subscriptions)

    @contextmanager
    def subscribed(self, *, is_viewer: bool = True) -> Generator[FeedSubscription]:
        """Add a viewer while the context is open; or, without `is_viewer`, a part of the driver."""
        subscription = FeedSubscription(is_viewer=is_viewer)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def change(self, unit_id: str) -> None:
        """Tell that a row changed."""
        for subscription in self._subscriptions:
            subscription.changed.add(unit_id)
            subscription.awake.set()

    def notice(self, text: str) -> None:
        """Tell a notice."""
        for subscription in self._subscriptions:
            subscription.notices.append(text)
            subscription.awake.set()

    def tell_events(self, unit_id: str, lines: Iterable[bytes]) -> None:
        """Pass on events to those who watch the unit."""
        for subscription in self._subscriptions:
            waiting = subscription.lines.get(unit_id)
            if waiting is None:
                continue
            waiting += lines
            if len(waiting) > MOST_LINES:
                waiting.clear()
                subscription.missed.add(unit_id)
            subscription.awake.set()
