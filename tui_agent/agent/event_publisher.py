"""Publisher of an agent's events, the fold of its status from them, and the clock of its waits for approval.

The status depends on the events alone; the status bar, the terminal's title and the headless stream all read the same
`status.changed`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tui_agent.protocol.bus import EventBus
from tui_agent.protocol.envelope import Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    CompactionEnded,
    CompactionStarted,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    Noticed,
    QuestionAnswered,
    QuestionAsked,
    RequestBuilt,
    RunEnded,
    RunStarted,
    Status,
    StatusChanged,
    StepRetry,
    StepStarted,
    ToolEnded,
    ToolQueued,
)
from tui_agent.protocol.messages import AssistantMessage

from .stop_tokens import ABORT_REQUESTED, STOP_REQUESTED

AFTER_STEP = "after this step"
"""Detail of the status while a stopped run completes its step."""


@dataclass(frozen=True, slots=True)
class StatusState:
    """The facts that determine the status."""

    running: bool = False
    streaming: bool = False
    """True while the model's answer streams in, not only its reasoning."""
    stopping: bool = False
    finishes_step: bool = False
    """True if the run completes its step before it stops."""
    compacting: bool = False
    retrying: str = ""
    """The attempt and the wait before it; empty while there is no retry."""
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """Tool names of the calls that have not ended, by call id."""
    approvals: frozenset[str] = frozenset()
    questions: frozenset[str] = frozenset()


def fold_status(state: StatusState, event: AgentEvent) -> StatusState:
    """Return the state after one more event; the same object if the event does not change it."""
    match event:
        case MessageDelta(kind=kind):
            return state if state.streaming or kind == "thinking" else replace(state, streaming=True, retrying="")
        case ToolQueued(call_id=call_id, name=name):
            return replace(state, calls={**state.calls, call_id: name})
        case ToolEnded(call_id=call_id):
            return replace(state, calls={other: name for other, name in state.calls.items() if other != call_id})
        case MessageEnded(message=AssistantMessage()) | MessageDiscarded():
            return replace(state, streaming=False) if state.streaming else state
        case StepStarted() | RequestBuilt():
            return replace(state, streaming=False, retrying="") if state.streaming or state.retrying else state
        case StepRetry(attempt=attempt, max=most, wait_s=wait):
            return replace(state, streaming=False, retrying=f"{attempt}/{most} in {wait:g} s")
        case ApprovalRequested(request_id=request_id):
            return replace(state, approvals=state.approvals | {request_id})
        case ApprovalResolved(request_id=request_id):
            return replace(state, approvals=state.approvals - {request_id})
        case QuestionAsked(question_id=question_id):
            return replace(state, questions=state.questions | {question_id})
        case QuestionAnswered(question_id=question_id):
            return replace(state, questions=state.questions - {question_id})
        # Also outside a run, where the user compacts by hand.
        case CompactionStarted() | CompactionEnded():
            return replace(state, compacting=isinstance(event, CompactionStarted))
        case Noticed(code=code) if code in (STOP_REQUESTED, ABORT_REQUESTED):
            return replace(state, stopping=state.running, finishes_step=code == STOP_REQUESTED)
        case RunStarted():
            # From scratch: what an earlier run left unfinished is over.
            return StatusState(running=True)
        case RunEnded():
            return StatusState()
        case _:
            return state


def status_of(state: StatusState) -> StatusChanged:
    """Return the status with a detail such as the running tools. A status that needs the user comes first."""
    status, detail = _name(state)
    return StatusChanged(status=status, detail=detail)


def _name(state: StatusState) -> tuple[Status, str]:
    several = len(state.approvals) > 1
    ladder: tuple[tuple[object, Status, str], ...] = (
        (state.compacting and not state.running, "compacting", ""),
        (not state.running, "idle", ""),
        (state.stopping, "stopping", AFTER_STEP if state.finishes_step else ""),
        (state.approvals, "waiting_approval", f"{len(state.approvals)} to decide" if several else ""),
        (state.questions, "waiting_user", ""),
        (state.compacting, "compacting", ""),
        (state.retrying, "retrying", state.retrying),
        (state.streaming, "streaming", ""),
        (state.calls, "running_tools", _tools(state)),
    )
    for holds, status, detail in ladder:
        if holds:
            return status, detail
    return "thinking", ""


def _tools(state: StatusState) -> str:
    names = list(state.calls.values())
    return names[0] if len(names) == 1 else f"{len(names)} tools"


class ApprovalWaitClock:
    """Sums the time in which at least one approval request of an agent or its sub-agents was open."""

    def __init__(self, above: "ApprovalWaitClock | None" = None, *, now: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            above: the clock of the parent agent, which counts these waits, too; None: there is no parent.
            now: returns the seconds of a clock that never goes back, of any origin.
        """
        self._above = above
        self._now = now
        self._open = 0
        self._since = 0.0
        self._total = 0.0

    @property
    def ms(self) -> float:
        """Milliseconds so far."""
        return (self._total + (self._now() - self._since if self._open else 0.0)) * 1000

    def note(self, event: AgentEvent) -> None:
        """Start or stop the clock if the event opens or resolves a request for approval."""
        if isinstance(event, ApprovalRequested):
            self._begin()
        elif isinstance(event, ApprovalResolved):
            self._end()

    def _begin(self) -> None:
        # Overlapping questions keep the user waiting only once.
        if not self._open:
            self._since = self._now()
        self._open += 1
        if self._above is not None:
            self._above._begin()

    def _end(self) -> None:
        self._open -= 1
        if not self._open:
            self._total += self._now() - self._since
        if self._above is not None:
            self._above._end()


class EventPublisher:
    """The only publisher of an agent and its calls, so that every event updates the status."""

    def __init__(self, bus: EventBus, origin: Origin, waits: ApprovalWaitClock | None = None) -> None:
        self.bus = bus
        self.origin = origin
        """The current run and step of the agent; part of each event."""
        self.waits = waits or ApprovalWaitClock()
        """The time spent waiting for the user."""
        self._state = StatusState()
        self._status = status_of(self._state)

    def move(self, *, run_id: str | None, turn: int | None = None, step: int | None = None) -> None:
        """Set run, turn and step of the following events; None: they belong to none."""
        self.origin = replace(self.origin, run_id=run_id, turn=turn, step=step)

    def publish(self, event: AgentEvent) -> None:
        """Publish an event, then the status if it changed.

        `run.ended` is the last event of its run: the status comes before it, and events published in response to it
        belong to no run.
        """
        self.waits.note(event)
        origin, before = self.origin, self._state
        self._state = fold_status(before, event)
        # A program that reads the stream stops at this event, so the last status has to be before it.
        if isinstance(event, RunEnded):
            self._publish_status(origin)
            self.move(run_id=None)
            self.bus.publish(event, origin)
            return
        self.bus.publish(event, origin)
        # Identity is enough: the fold returns the same object if nothing changed.
        if self._state is not before:
            self._publish_status(origin)

    def _publish_status(self, origin: Origin) -> None:
        status = status_of(self._state)
        if status != self._status:
            self._status = status
            self.bus.publish(status, origin)
