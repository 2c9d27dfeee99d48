"""Events of agents, runs, turns, steps, user input and messages."""

from typing import Literal

from .messages import Message, StopReason, TrustedModel, Usage, UserKind, UserMessage
from .permissions import PermissionMode
from .reports import AgentRunReport, RunReason

# --- agent, run, turn, step -------------------------------------------------------------------------------------------


class AgentCreated(TrustedModel):
    """An agent was created and has set its layers (S4-33)."""

    type: Literal["agent.created"] = "agent.created"
    model: str
    tools: tuple[str, ...]
    mode: PermissionMode


class AgentDestroyed(TrustedModel):
    """An agent was destroyed."""

    type: Literal["agent.destroyed"] = "agent.destroyed"
    reason: str


class RunStarted(TrustedModel):
    """The handling of one user input begins."""

    type: Literal["run.started"] = "run.started"
    input: str
    trigger: Literal["prompt", "continue", "resume", "follow_up", "subagent", "schedule", "command"]
    """`command`: the run is one call by the user, without a request to the model. `follow_up` and `schedule` are
    reserved:
    a follow-up is a turn of the current run, not a run."""
    model: str
    mode: PermissionMode


class RunEnded(TrustedModel):
    """The run is over; the last event of its run id, exactly once."""

    type: Literal["run.ended"] = "run.ended"
    reason: RunReason
    final_text: str = ""
    error: str | None = None
    usage: Usage = Usage()
    cost: float | None = None
    """US dollars; None if the price is unknown."""
    steps: int = 0
    tool_calls: int = 0
    total_ms: float = 0.0
    model_ms: float = 0.0
    tool_ms: float = 0.0
    approval_ms: float = 0.0
    """Milliseconds spent waiting for the user."""
    report: AgentRunReport | None = None


class TurnStarted(TrustedModel):
    """One assistant message and its tools begin."""

    type: Literal["turn.started"] = "turn.started"
    index: int
    trigger: str = ""


class TurnEnded(TrustedModel):
    """One assistant message and its tools are done."""

    type: Literal["turn.ended"] = "turn.ended"
    index: int
    message_id: str | None = None
    result_ids: tuple[str, ...] = ()
    usage: Usage = Usage()


class StepStarted(TrustedModel):
    """A request to the model is about to be sent."""

    type: Literal["step.started"] = "step.started"
    index: int
    kind: Literal["initial", "tool_followup"]


class StepEnded(TrustedModel):
    """The model's answer is complete or failed; its calls may still run until `turn.ended` (S4-40)."""

    type: Literal["step.ended"] = "step.ended"
    index: int
    kind: Literal["initial", "tool_followup"]
    llm_ms: float
    finish_reason: str
    usage: Usage
    """Usage of the whole step, discarded answers included."""
    tool_ms: float = 0.0
    """Milliseconds of execution of the calls that ended while the model was still streaming. The run's report has the
    time
    of all calls."""


class StepRetry(TrustedModel):
    """A request to the model failed; it is sent again after a wait."""

    type: Literal["step.retry"] = "step.retry"
    attempt: int
    """Number of the attempt after the wait, from 2."""
    max: int
    wait_s: float
    error_kind: str
    status: int | None = None
    discarded: bool = False
    """True if a partial answer was discarded; `message.discarded` names it."""
    text: str = ""
    """The failure, without advice; see `retry_text`."""


class RequestBuilt(TrustedModel):
    """A request is ready to be sent (debug)."""

    type: Literal["request.built"] = "request.built"
    message_count: int
    est_tokens: int
    tools: int


# --- input, steering --------------------------------------------------------------------------------------------------

InputSource = Literal["prompt", "steering", "follow_up"]


class InputWarned(TrustedModel):
    """An input filter issued a warning."""

    type: Literal["input.warned"] = "input.warned"
    filter: str
    text: str
    source: InputSource


class InputRejected(TrustedModel):
    """An input filter rejected the input."""

    type: Literal["input.rejected"] = "input.rejected"
    filter: str
    reason: str
    source: InputSource


HELD_REASON = "the user edits it"
"""Reason of `steering.dropped` for a message that is out of the queue until the user sends it again."""


class SteeringQueued(TrustedModel):
    """A message waits to be delivered, or changed its place, kind or text while it waited."""

    type: Literal["steering.queued"] = "steering.queued"
    message_id: str
    kind: UserKind
    text: str
    position: int
    """Position in its queue, from 0."""
    message: UserMessage | None = None


class SteeringDelivered(TrustedModel):
    """A queued message became part of the conversation."""

    type: Literal["steering.delivered"] = "steering.delivered"
    message_id: str
    kind: UserKind
    text: str
    boundary: str
    """Point of delivery, such as `after step 3`."""


class SteeringRequeued(TrustedModel):
    """A message could not be delivered and is back at the front of its queue."""

    type: Literal["steering.requeued"] = "steering.requeued"
    message_id: str
    kind: UserKind
    text: str
    reason: str


class SteeringDropped(TrustedModel):
    """The user recalled a queued message, or is editing it (`HELD_REASON`)."""

    type: Literal["steering.dropped"] = "steering.dropped"
    message_id: str
    kind: UserKind
    text: str
    reason: str


# --- messages ---------------------------------------------------------------------------------------------------------


class MessageStarted(TrustedModel):
    """A message begins."""

    type: Literal["message.started"] = "message.started"
    message_id: str
    role: Literal["user", "assistant", "tool_result"]
    call_id: str | None = None
    """Call of a tool result."""


class MessageDelta(TrustedModel):
    """The next part of a message; neighbours are merged by concatenation."""

    type: Literal["message.delta"] = "message.delta"
    message_id: str
    kind: Literal["text", "thinking", "toolcall"]
    delta: str
    call_id: str | None = None


class MessageEnded(TrustedModel):
    """A message is complete and part of the conversation."""

    type: Literal["message.ended"] = "message.ended"
    message_id: str
    message: Message
    stop_reason: StopReason | None = None
    usage: Usage | None = None


class MessageDiscarded(TrustedModel):
    """A partial message was discarded; nothing of it stays in the conversation."""

    type: Literal["message.discarded"] = "message.discarded"
    message_id: str
    reason: str


RunEvent = (
    AgentCreated
    | AgentDestroyed
    | RunStarted
    | RunEnded
    | TurnStarted
    | TurnEnded
    | StepStarted
    | StepEnded
    | StepRetry
    | RequestBuilt
    | InputWarned
    | InputRejected
    | SteeringQueued
    | SteeringDelivered
    | SteeringRequeued
    | SteeringDropped
    | MessageStarted
    | MessageDelta
    | MessageEnded
    | MessageDiscarded
)
