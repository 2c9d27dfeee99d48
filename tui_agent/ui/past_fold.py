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

from . import call_ledger, pending_approvals, run_times, status_view, transcript_fold, waiting_messages
from .drawing_faults import DrawingFaults, ShowsEvents
from .transcript import Transcript


@dataclass(frozen=True, slots=True)
class Glimpse:
    """The end of a session's past."""

    events: Sequence[Envelope]
    calls_before: int
    """Calls before the first of them."""


class PastFold:
    """The folds behind the parts of the screen, with no screen around them. Changed by `take` only."""

    def __init__(self, faults: DrawingFaults, calls_before: int = 0) -> None:
        """Nothing is folded yet.

        Args:
            faults: what becomes of a fold that fails.
            calls_before: calls that came before the first event taken here.
        """
        self.transcript = transcript_fold.TranscriptFold(Transcript())
        self.ledger = call_ledger.CallLedger(calls_before)
        self.times = run_times.RunTimes(calls_before)
        self.view = status_view.StatusView()
        self.waiting = waiting_messages.WaitingMessages()
        self.approvals = pending_approvals.PendingApprovals()
        self.said: list[str] = []
        """What a person said, oldest first."""
        self.begun = False
        """Whether there is anything to be seen."""
        self._faults = faults
        self._folds: tuple[tuple[ShowsEvents, frozenset[type[object]]], ...] = (
            (self.transcript, transcript_fold.HEARS),
            (self.ledger, call_ledger.HEARS),
            (self.times, run_times.HEARS),
            (self.view, status_view.HEARS),
            (self.waiting, waiting_messages.HEARS),
            (self.approvals, pending_approvals.HEARS),
        )
        self._listeners: dict[type[AgentEvent], tuple[ShowsEvents, ...]] = {}

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
        if begins_screen(event):
            self.begun = True
        if (words := said_by_person(event)) is not None:
            self.said.append(words)


def begins_screen(event: AgentEvent) -> bool:
    """Whether there is something to be seen from now on, so that nobody need be welcomed."""
    return isinstance(event, RunStarted | MessageStarted | MessageEnded | Failed | Warned | Noticed)


def said_by_person(event: AgentEvent) -> str | None:
    """What a person typed and sent, where an event tells of that."""
    match event:
        case MessageEnded(message=UserMessage(is_said=True, text=text)):
            return text
        case RunStarted(trigger="command", input=said):
            return said
        case _:
            return None
