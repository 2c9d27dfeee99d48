"""The state of the screen: one fold over events for live, resumed and replayed sessions."""

from collections.abc import Mapping
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    Failed,
    MessageDelta,
    MessageEnded,
    MessageStarted,
    Noticed,
    RunStarted,
    SessionRewound,
    Warned,
)
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.ui.base.error_boundary import ErrorBoundary
from tui_agent.ui.state import (
    approval_folds,
    call_ledger,
    plan_and_files,
    queued_messages,
    run_times,
    session_status,
)
from tui_agent.ui.transcript import transcript_builder
from tui_agent.ui.transcript.transcript_layout import Transcript


@dataclass(slots=True)
class Changes:
    """Folds that one event has changed."""

    calls: tuple[int, ...] = ()
    """Indexes of changed and new calls in the ledger."""
    transcript: bool = False
    plan: bool = False
    files: bool = False
    times: bool = False
    status: bool = False
    waiting: bool = False
    approvals: bool = False
    reviewed: bool = False
    """True if a run has ended that reported findings."""
    begun: bool = False
    """True if the event is the first one that shows something."""


class ScreenState:
    """Everything that the parts of the screen draw, without the screen. Changed by `apply`.

    The user's answers to approval requests, and messages and a mode that the agent does not know yet, change it before
    an event reports them.
    """

    def __init__(
        self,
        faults: ErrorBoundary,
        *,
        model: str = "",
        mode: PermissionMode = PermissionMode.ASK,
        calls_before: int = 0,
        numbers: Mapping[str, int] | None = None,
        shows_pictures: bool = True,
    ) -> None:
        """Start empty, after `calls_before` calls; `numbers` are those of the ones that are resumed, by call id."""
        self.ledger = call_ledger.CallLedger(calls_before, numbers or {})
        """All calls, for each part that shows calls."""
        self.transcript = transcript_builder.TranscriptFold(
            Transcript(),
            self.ledger.find,
            at=lambda place: self.ledger.calls[place],
            shows_pictures=shows_pictures,
        )
        """The conversation."""
        self.times = run_times.RunTimes()
        """Times of the newest run."""
        self.plan = plan_and_files.Plan()
        """The model's plan."""
        self.files = plan_and_files.ChangedFiles()
        """Files that the session has changed."""
        self.findings = plan_and_files.ReviewFindings()
        """Findings of the newest review."""
        self.status = session_status.SessionStatus(model=model, mode=mode)
        """Status, model, mode and tokens."""
        self.waiting = queued_messages.WaitingMessages()
        """Queued messages."""
        self.approvals = approval_folds.PendingApprovals()
        """Open approval requests."""
        self.rule_hits = approval_folds.RuleHits()
        """Calls by the rule that decided them."""
        self.attention = approval_folds.Attention()
        """Questions to the user and the time they waited."""
        self.inputs: list[str] = []
        """Inputs of the user, oldest first."""
        self.begun = False
        """True if there is something to show instead of the welcome."""
        self._faults = faults

    def apply(self, envelope: Envelope) -> Changes:
        """Apply one event to the folds that handle it; one that fails keeps it from no other."""
        event, call, changes = envelope.event, self._faults.call, Changes()
        kind = type(event)
        # By type first: most events are deltas of the answer, which only the conversation draws.
        if kind in call_ledger.HANDLED_EVENTS:
            changes.calls = call(self.ledger.apply, envelope) or ()
        if kind in transcript_builder.HANDLED_EVENTS:
            changes.transcript = call(self.transcript.apply, envelope) or False
        # An event of one call changes the rows of those that wait for it, and of the sub-agent that made it.
        for place in changes.calls:
            at: int | None = place
            while at is not None:
                changed = self.ledger.calls[at]
                self.transcript.redraw(changed.view.call_id)
                changes.transcript = changes.transcript or at != place
                at = changed.parent
        if kind in plan_and_files.PLAN_EVENTS:
            changes.plan = call(self.plan.apply, envelope) or False
        if kind in plan_and_files.FILE_EVENTS:
            changes.files = call(self.files.apply, envelope) or False
        if kind in plan_and_files.FINDING_EVENTS:
            changes.reviewed = call(self.findings.apply, envelope) or False
        if kind in run_times.HANDLED_EVENTS:
            changes.times = call(self.times.apply, envelope) or False
        if kind in session_status.HANDLED_EVENTS:
            changes.status = call(self.status.apply, envelope) or False
        # A fold for each delta would cost more than the only thing that the status needs of it: its time.
        elif kind is MessageDelta and envelope.origin.depth == 0:
            self.status.progress.heard_at = envelope.mono
        if kind in queued_messages.HANDLED_EVENTS:
            changes.waiting = call(self.waiting.apply, envelope) or False
        if kind in approval_folds.APPROVAL_EVENTS:
            changes.approvals = call(self.approvals.apply, envelope) or False
        if kind in approval_folds.RULE_EVENTS:
            call(self.rule_hits.apply, envelope)
        if kind in approval_folds.ATTENTION_EVENTS:
            call(self.attention.apply, envelope)
        if not self.begun and _hides_welcome(event):
            self.begun = changes.begun = True
        if kind in _INPUT_EVENTS and (text := _user_input_of(event)) is not None:
            self.inputs.append(text)
        return changes


def _hides_welcome(event: AgentEvent) -> bool:
    """True if the event shows something, so that the welcome gives way."""
    if isinstance(event, Noticed):
        return event.code not in session_status.STATUS_NOTICES
    return isinstance(event, RunStarted | MessageStarted | MessageEnded | Failed | Warned | SessionRewound)


_INPUT_EVENTS: frozenset[type[AgentEvent]] = frozenset((MessageEnded, RunStarted))


def _user_input_of(event: AgentEvent) -> str | None:
    """Return what the user typed and sent; None if the event reports no input."""
    match event:
        case MessageEnded(message=UserMessage(is_from_user=True, text=text)):
            return text
        case RunStarted(trigger="command", input=command):
            return command
        case _:
            return None
