"""What goes on, in one place: the fold behind the title bar and the status line."""

from dataclasses import dataclass, field, fields
from typing import ClassVar

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentCreated,
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ContextUsage,
    PermissionModeChanged,
    RunEnded,
    RunStarted,
    SessionLoaded,
    Status,
    StatusChanged,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolStarted,
    UsageUpdated,
)
from tui_agent.protocol.messages import FrozenModel, Usage
from tui_agent.protocol.permissions import PermissionMode
from tui_agent.protocol.reports import AgentRunReport, RunReason

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (
        *(AgentCreated, RunStarted, RunEnded, SessionLoaded, StatusChanged, StepStarted, StepRetry, ContextUsage),
        *(ToolStarted, ToolEnded, ApprovalRequested, ApprovalResolved, PermissionModeChanged, UsageUpdated),
    )
)
"""The events that may change the status."""


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that executes now."""

    name: str
    since: float
    """Monotonic seconds."""


@dataclass(slots=True)
class SessionStatus:
    """Status, model, mode, tokens and what runs, as far as the events told. Changed by `apply` and `become` only;
    the mode by the chat, too, as long as there is no agent that tells it."""

    HANDLED_EVENTS: ClassVar[frozenset[type[FrozenModel]]] = HANDLED_EVENTS

    status: Status = "idle"
    detail: str = ""
    since: float = 0.0
    """When the status became what it is; monotonic seconds."""
    model: str = ""
    mode: PermissionMode = PermissionMode.ASK
    step: int | None = None
    tokens: int = 0
    """Tokens in the model's window."""
    window: int = 0
    usage: Usage = field(default_factory=Usage)
    """Tokens of the whole session."""
    cost: float | None = None
    running: dict[str, RunningCall] = field(default_factory=dict[str, RunningCall])
    """Calls that execute now, by id, oldest first."""
    asking: dict[str, str] = field(default_factory=dict[str, str])
    """Questions that wait for a person: request id to call id."""
    retry_at: float | None = None
    """When the model is asked again; monotonic seconds."""
    retry_text: str = ""
    ended: RunReason | None = None
    """How the last run ended; None while one goes on."""
    report: AgentRunReport | None = None
    """What the last run that ended came to."""

    @property
    def busy(self) -> bool:
        """Whether a run goes on."""
        return self.status != "idle"

    def become(self, other: "SessionStatus") -> None:
        """Shows what another one showed, which is not used any more."""
        for name in (one.name for one in fields(self)):
            setattr(self, name, getattr(other, name))

    def apply(self, envelope: Envelope) -> bool:
        """Takes one event; False where it changed nothing shown here."""
        event = envelope.event
        match event:
            case ToolStarted(call_id=call_id, name=name):
                self.running[call_id] = RunningCall(name, envelope.mono)
            case ToolEnded(call_id=call_id):
                return self.running.pop(call_id, None) is not None
            case ApprovalRequested(request_id=request_id, call_id=call_id):
                self.asking[request_id] = call_id
            case ApprovalResolved(request_id=request_id):
                return self.asking.pop(request_id, None) is not None
            case PermissionModeChanged(new=mode):
                self.mode = mode
            case UsageUpdated(total=total, cost=cost):
                self.usage, self.cost = total, cost
            case _:
                return envelope.origin.depth == 0 and self._apply_own(event, envelope)
        return True

    def _apply_own(self, event: AgentEvent, envelope: Envelope) -> bool:
        """Events that count only where the root agent tells them."""
        match event:
            case StatusChanged(status=status, detail=detail):
                self._become(status, detail, envelope)
            case StepStarted(index=index):
                self.step, self.retry_at = index, None
            case StepRetry(attempt=attempt, max=most, wait_s=wait):
                self.retry_at, self.retry_text = envelope.mono + wait, f"{attempt}/{most}"
            case ContextUsage(tokens=tokens, window=window):
                self.tokens, self.window = tokens, window
            case AgentCreated(model=model, mode=mode):
                self.model, self.mode = model, mode
            case RunStarted(model=model, mode=mode):
                self.model, self.mode, self.ended, self.step = model, mode, None, None
                self._become("thinking", "", envelope)
            case RunEnded(reason=reason, report=report):
                self.ended, self.report = reason, report or self.report
                self._become_idle(envelope)
            case SessionLoaded():
                self._become_idle(envelope)
            case _:
                return False
        return True

    def _become(self, status: Status, detail: str, envelope: Envelope) -> None:
        if status != self.status:
            self.since = envelope.mono
        self.status, self.detail = status, detail

    def _become_idle(self, envelope: Envelope) -> None:
        """Nothing runs any more, whatever was or was not told of it (P83)."""
        self.running.clear()
        self.asking.clear()
        self.retry_at = None
        self._become("idle", "", envelope)
