"""What a session's past makes of the screen, folded where nobody sees it: it is shown at once when it is whole."""

from collections.abc import Iterable, Sequence
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
from tui_agent.ui.approval import pending_approvals
from tui_agent.ui.base.error_boundary import ErrorBoundary, EventView
from tui_agent.ui.composer import queued_messages
from tui_agent.ui.panel import call_ledger, run_times
from tui_agent.ui.status import session_status
from tui_agent.ui.transcript import transcript_fold
from tui_agent.ui.transcript.transcript_model import Transcript


@dataclass(frozen=True, slots=True)
class HistoryTail:
    """The end of a session's past."""

    events: Sequence[Envelope]
    calls_before: int
    """Calls before the first of them."""


class ScreenState:
    """The folds behind the parts of the screen, with no screen around them. Changed by `take` only."""

    def __init__(self, faults: ErrorBoundary, calls_before: int = 0) -> None:
        """Nothing is folded yet.

        Args:
            faults: what becomes of a fold that fails.
            calls_before: calls that came before the first event taken here.
        """
        self.transcript = transcript_fold.TranscriptFold(Transcript())
        self.ledger = call_ledger.CallLedger(calls_before)
        self.times = run_times.RunTimes(calls_before)
        self.view = session_status.SessionStatus()
        self.waiting = queued_messages.WaitingMessages()
        self.approvals = pending_approvals.PendingApprovals()
        self.said: list[str] = []
        """What a person said, oldest first."""
        self.begun = False
        """Whether there is anything to be seen."""
        self._faults = faults
        self._folds: tuple[tuple[EventView, frozenset[type[object]]], ...] = (
            (self.transcript, transcript_fold.HANDLED_EVENTS),
            (self.ledger, call_ledger.HANDLED_EVENTS),
            (self.times, run_times.HANDLED_EVENTS),
            (self.view, session_status.HANDLED_EVENTS),
            (self.waiting, queued_messages.HANDLED_EVENTS),
            (self.approvals, pending_approvals.HANDLED_EVENTS),
        )
        self._listeners: dict[type[AgentEvent], tuple[EventView, ...]] = {}

    def take(self, envelopes: Iterable[Envelope]) -> None:
        """Takes the next events."""
        for envelope in envelopes:
            kind = type(envelope.event)
            listeners = self._listeners.get(kind)
            if listeners is None:
                listeners = self._listeners[kind] = tuple(fold for fold, hears in self._folds if kind in hears)
            self._faults.hand_over(envelope, listeners)
            self._look_at(envelope.event)

    def _look_at(self, event: AgentEvent) -> None:
        if hides_welcome(event):
            self.begun = True
        if (words := user_input_of(event)) is not None:
            self.said.append(words)


def hides_welcome(event: AgentEvent) -> bool:
    """Whether there is something to be seen from now on, so that nobody need be welcomed."""
    return isinstance(event, RunStarted | MessageStarted | MessageEnded | Failed | Warned | Noticed)


def user_input_of(event: AgentEvent) -> str | None:
    """What a person typed and sent, where an event tells of that."""
    match event:
        case MessageEnded(message=UserMessage(is_from_user=True, text=text)):
            return text
        case RunStarted(trigger="command", input=said):
            return said
        case _:
            return None
