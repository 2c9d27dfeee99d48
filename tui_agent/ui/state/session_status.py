"""The session's status: the fold behind the frame of the composer and the status line."""

from dataclasses import dataclass, field

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentCreated,
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    CompactionEnded,
    CompactionStarted,
    ContextUsage,
    Noticed,
    PermissionModeChanged,
    RunEnded,
    RunStarted,
    SessionLoaded,
    SessionSaved,
    SessionSaveFailed,
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
from tui_agent.protocol.trial import Place

from .call_records import waiting_text

HANDLED_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (
        *(AgentCreated, RunStarted, RunEnded, SessionLoaded, StatusChanged, StepStarted, StepRetry, ContextUsage),
        *(ToolStarted, ToolEnded, ApprovalRequested, ApprovalResolved, PermissionModeChanged, UsageUpdated),
        *(CompactionStarted, CompactionEnded, Noticed, BackgroundStarted, BackgroundEnded),
        *(SessionSaved, SessionSaveFailed),
    )
)
"""Events that may change the status."""
STATUS_NOTICES = frozenset(("settings_checked", "settings_read", "settings_later", "model_chosen"))
"""Codes of notices that the status line shows for some seconds, and the conversation does not."""


@dataclass(frozen=True, slots=True)
class RunningCall:
    """A call that is running."""

    name: str
    since: float
    """Monotonic seconds."""
    read_only: bool = False
    """True if it changes no files."""
    place: Place = "outside"


@dataclass(frozen=True, slots=True)
class StatusNotice:
    """A short message in the status line."""

    text: str = ""
    at: float = 0.0
    """Monotonic seconds."""


@dataclass(slots=True)
class RunProgress:
    """Times of the newest run, and what the calls of the session have left: changed files, running commands."""

    began_at: float | None = None
    """Monotonic seconds."""
    ended_at: float | None = None
    """Monotonic seconds; None during the run."""
    heard_at: float = 0.0
    """Last sign of the model, or start of the present status; monotonic seconds."""
    writes: int = 0
    """Number of ended calls that may have changed files."""
    in_background: set[str] = field(default_factory=set[str])
    """Ids of the commands that run in the background."""
    waiting_changes: dict[str, str] = field(default_factory=dict[str, str])
    """Changes of commands that wait for the user, in words, by request id."""


@dataclass(slots=True)
class SessionStatus:
    """Status, model, mode, tokens and running calls. Changed by `apply`, the mode also by the chat until the agent is
    loaded."""

    status: Status = "idle"
    detail: str = ""
    since: float = 0.0
    """Start of the present status; monotonic seconds."""
    model: str = ""
    mode: PermissionMode = PermissionMode.ASK
    step: int | None = None
    """Index of the present step in its run, from 0; None between runs."""
    tokens: int = 0
    """Tokens in the model's context window."""
    window: int = 0
    usage: Usage = field(default_factory=Usage)
    """Tokens of the whole session."""
    cost: float | None = None
    running: dict[str, RunningCall] = field(default_factory=dict[str, RunningCall])
    """Running calls by id, oldest first."""
    asking: dict[str, str] = field(default_factory=dict[str, str])
    """Open approval requests, oldest first: request id to the id of the sub-agent that asks; empty for the agent."""
    retry_at: float | None = None
    """Monotonic seconds of the next retry of a request; None if none is due."""
    notice: StatusNotice = StatusNotice()
    """Newest short message about a mode or the settings."""
    progress: RunProgress = field(default_factory=RunProgress)
    """Times and effects of the newest run."""
    ended: RunReason | None = None
    """Reason why the last run ended; None during a run."""
    report: AgentRunReport | None = None
    """Report of the last run that ended."""
    unsaved: str = ""
    """Reason why the newest events are not saved; empty if they are, or if the user chose a session without saving."""

    @property
    def busy(self) -> bool:
        """True during a run."""
        return self.status != "idle"

    @property
    def shown(self) -> Status:
        """The status, or `waiting_approval` while a sub-agent or a tool server asks, whatever else runs."""
        return "waiting_approval" if self.asking and self.status != "stopping" else self.status

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event; return False if it changed nothing."""
        event = envelope.event
        match event:
            case ToolStarted(call_id=call_id, name=name, read_only=read_only, place=place):
                self.running[call_id] = RunningCall(name, envelope.mono, read_only, place)
            case ToolEnded(call_id=call_id):
                ended = self.running.pop(call_id, None)
                self.progress.writes += ended is not None and not ended.read_only
                return ended is not None
            case ApprovalRequested(request_id=request_id, changes=changes):
                if changes is not None:
                    self.progress.waiting_changes[request_id] = waiting_text(changes)
                self.asking[request_id] = envelope.origin.agent_id if envelope.origin.depth else ""
            case ApprovalResolved(request_id=request_id):
                self.progress.waiting_changes.pop(request_id, None)
                return self.asking.pop(request_id, None) is not None
            case PermissionModeChanged(old=old, new=mode, by=by):
                self.mode = mode
                # The user has just chosen it, and sees the badge change.
                if by != "user":
                    self._notify(f"mode {old.words} → {mode.words} ({by})", envelope)
            case BackgroundStarted(task_id=task_id):
                self.progress.in_background.add(task_id)
            case BackgroundEnded(task_id=task_id):
                self.progress.in_background.discard(task_id)
            case UsageUpdated(total=total, cost=cost):
                self.usage, self.cost = total, cost
            case SessionSaveFailed(error=reason):
                self.unsaved = reason
            case SessionSaved():
                self.unsaved = ""
            case _:
                return envelope.origin.depth == 0 and self._apply_own(event, envelope)
        return True

    def _apply_own(self, event: AgentEvent, envelope: Envelope) -> bool:
        match event:
            case StatusChanged(status=status, detail=detail):
                self._become(status, detail, envelope)
            case StepStarted(index=index):
                self.step, self.retry_at = index, None
            case CompactionStarted(tokens_before=tokens) | CompactionEnded(tokens_after=tokens):
                self.tokens = tokens
            case Noticed(code=code, text=text, context=context) if code in STATUS_NOTICES:
                if code == "model_chosen":  # The frame of the composer shows it.
                    self.model = str(context.get("model", self.model))
                else:
                    self._notify(text, envelope)
            case StepRetry(wait_s=wait):
                self.retry_at = envelope.mono + wait
            case ContextUsage(tokens=tokens, window=window):
                self.tokens, self.window = tokens, window
            case AgentCreated(model=model, mode=mode):
                self.model, self.mode = model, mode
            case RunStarted(model=model, mode=mode):
                self.model, self.mode, self.ended, self.step = model, mode, None, None
                self.progress.began_at, self.progress.ended_at = envelope.mono, None
                self._become("thinking", "", envelope)
            case RunEnded(reason=reason, report=report):
                # The run of a command that the user typed has no report.
                self.ended, self.report, self.progress.ended_at = reason, report or self.report, envelope.mono
                self._become_idle(envelope)
            case SessionLoaded():
                self._become_idle(envelope)
                # The clock of the process that ran it is not that of this one.
                self.progress = RunProgress(heard_at=envelope.mono, writes=self.progress.writes)
                self.unsaved = ""
                self.notice = StatusNotice()
            case _:
                return False
        return True

    def _notify(self, text: str, envelope: Envelope) -> None:
        self.notice = StatusNotice(text, envelope.mono)

    def _become(self, status: Status, detail: str, envelope: Envelope) -> None:
        self.progress.heard_at = envelope.mono
        # A status that is reported again keeps its clock.
        if status != self.status:
            self.since = envelope.mono
        self.status, self.detail = status, detail

    def _become_idle(self, envelope: Envelope) -> None:
        # A run may end without an event for each call and request that was open.
        self.running.clear()
        self.asking.clear()
        self.progress.waiting_changes.clear()
        self.retry_at = None
        self._become("idle", "", envelope)
