"""The state of the screen as a fold over events, and the router that hands each event to its views.

Of a resumed session the past is folded off-screen first, then shown at once.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    Failed,
    MessageEnded,
    MessageStarted,
    Noticed,
    RunStarted,
    Warned,
)
from tui_agent.protocol.messages import UserMessage
from tui_agent.ui.base.error_boundary import ErrorBoundary, EventView
from tui_agent.ui.state import call_ledger, pending_approvals, queued_messages, run_times, session_status
from tui_agent.ui.transcript import transcript_fold
from tui_agent.ui.transcript.transcript_model import Transcript


@dataclass(frozen=True, slots=True)
class HistoryTail:
    """The last events of a resumed session, shown until all of them are read."""

    events: Sequence[Envelope]
    calls_before: int
    """Calls before the first of these events."""


class EventRouter:
    """Hands each event to the views that handle its type. A view that fails keeps the event from no other."""

    def __init__(self, views: Iterable[tuple[EventView, Container[type[AgentEvent]]]], faults: ErrorBoundary) -> None:
        """
        Args:
            views: each with the events it handles, in the order in which they receive an event.
            faults: contains their failures.
        """
        self._views = tuple(views)
        self._faults = faults
        self._views_by_event: dict[type[AgentEvent], tuple[EventView, ...]] = {}

    def apply(self, envelope: Envelope) -> None:
        """Hand over one event."""
        kind = type(envelope.event)
        views = self._views_by_event.get(kind)
        if views is None:
            views = self._views_by_event[kind] = tuple(view for view, handled in self._views if kind in handled)
        self._faults.hand_over(envelope, views)


class ScreenState:
    """The folds behind the parts of the screen, without the screen. Changed by `apply` only."""

    def __init__(self, faults: ErrorBoundary, calls_before: int = 0) -> None:
        """Start empty.

        Args:
            faults: contains the failures of folds.
            calls_before: calls before the first event.
        """
        self.transcript = transcript_fold.TranscriptFold(Transcript())
        self.ledger = call_ledger.CallLedger(calls_before)
        self.times = run_times.RunTimes(calls_before)
        self.view = session_status.SessionStatus()
        self.waiting = queued_messages.WaitingMessages()
        self.approvals = pending_approvals.PendingApprovals()
        self.inputs: list[str] = []
        """Inputs of the user, oldest first."""
        self.begun = False
        """True if there is something to show instead of the welcome."""
        folds = (
            (self.transcript, transcript_fold.HANDLED_EVENTS),
            (self.ledger, call_ledger.HANDLED_EVENTS),
            (self.times, run_times.HANDLED_EVENTS),
            (self.view, session_status.HANDLED_EVENTS),
            (self.waiting, queued_messages.HANDLED_EVENTS),
            (self.approvals, pending_approvals.HANDLED_EVENTS),
        )
        self._router = EventRouter(folds, faults)

    def apply(self, envelopes: Iterable[Envelope]) -> None:
        """Fold the next events."""
        for envelope in envelopes:
            self._router.apply(envelope)
            self.begun = self.begun or hides_welcome(envelope.event)
            if (text := user_input_of(envelope.event)) is not None:
                self.inputs.append(text)


def hides_welcome(event: AgentEvent) -> bool:
    """True if the event shows something, so that the welcome gives way."""
    return isinstance(event, RunStarted | MessageStarted | MessageEnded | Failed | Warned | Noticed)


def user_input_of(event: AgentEvent) -> str | None:
    """Return what the user typed and sent; None if the event reports no input."""
    match event:
        case MessageEnded(message=UserMessage(is_from_user=True, text=text)):
            return text
        case RunStarted(trigger="command", input=command):
            return command
        case _:
            return None
