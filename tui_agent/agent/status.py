"""The status of the agent, folded from its events alone.

The status bar, the terminal's title and the headless stream all read the same `status.changed`.
"""

from dataclasses import dataclass, field, replace

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

STOP_REQUESTED = "stop_requested"
"""Code of the notice that the run will end after this step."""

ABORT_REQUESTED = "abort_requested"
"""Code of the notice that the run ends now."""

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
        case CompactionStarted() | CompactionEnded():
            return replace(state, compacting=isinstance(event, CompactionStarted))
        case Noticed(code=code) if code in (STOP_REQUESTED, ABORT_REQUESTED):
            return replace(state, stopping=state.running, finishes_step=code == STOP_REQUESTED)
        case RunStarted():
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
