"""Hands events to the widgets and folds that handle them."""

from collections.abc import Container, Iterable

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import AgentEvent
from tui_agent.ui.base.error_boundary import ErrorBoundary, EventView


class EventDispatcher:
    """Hands each event to the views that handle its type; a view that fails keeps it from no other view."""

    def __init__(self, views: Iterable[EventView], faults: ErrorBoundary) -> None:
        self.views = tuple(views)
        """Every view, in the order in which they receive an event."""
        self._faults = faults
        self._handlers: dict[type[AgentEvent], tuple[EventView, ...]] = {}

    def apply(self, envelope: Envelope) -> None:
        """Hand over one event."""
        kind = type(envelope.event)
        handlers = self._handlers.get(kind)
        if handlers is None:
            handlers = self._handlers[kind] = tuple(view for view in self.views if kind in _handled_events(view, kind))
        self._faults.hand_over(envelope, handlers)


def _handled_events(view: EventView, kind: type[AgentEvent]) -> Container[type[AgentEvent]]:
    """Return the event types a view handles; one that declares none receives every event."""
    return getattr(view, "HANDLED_EVENTS", (kind,))
