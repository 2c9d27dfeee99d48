"""All events: the specification of what an agent publishes.

An event is a published fact: frozen, complete, serialisable, without an answer. The bus wraps each into an `Envelope`
with its origin, number and time. A test freezes type names and fields; readers ignore unknown ones. `docs/events.md`
shows the sequences of events.
"""

from typing import Annotated, Literal

from pydantic import Field

from .messages import (
    FrozenModel,
    JsonObject,
    Message,
    StopReason,
    ToolResultMessage,
    Usage,
    UserBlock,
    UserKind,
    UserMessage,
)
from .permissions import ApprovalRequest, DecisionPart, DecisionSource, GrantScope, PermissionMode, Verdict
from .reports import AgentRunReport, Metric, RunReason
from .tool import Preview, StartedProcess, ToolResult

SCHEMA_VERSION = 1
"""Version of the envelope. Older readers still read the events they know from a newer file."""

ToolStatus = Literal[
    "ok",
    "error",
    "timeout",
    "invalid",
    "not_found",
    "denied_policy",
    "denied_user",
    "denied_hook",
    "denied_guardrail",
    "skipped_steering",
    "skipped_hook",
    "skipped_user",
    "overridden",
    "cancelled",
    "interrupted",
    "withheld",
    "output_limit",
]
"""Outcome of a call; `interrupted` means that its outcome is unknown."""

Status = Literal[
    "idle",
    "thinking",
    "streaming",
    "running_tools",
    "waiting_approval",
    "waiting_user",
    "compacting",
    "retrying",
    "stopping",
]
"""Current activity of the agent, derived from the other events."""

BlockedOn = Literal["permission", "approval", "slot", "group", "hook"]
"""Reason why a call waits; `permission` is reserved for slow policies and never used by the built-in one."""


# --- agent, run, turn, step -------------------------------------------------------------------------------------------


class AgentCreated(FrozenModel):
    """An agent was created and has set its layers (S4-33)."""

    type: Literal["agent.created"] = "agent.created"
    model: str
    tools: tuple[str, ...]
    mode: PermissionMode


class AgentDestroyed(FrozenModel):
    """An agent was destroyed."""

    type: Literal["agent.destroyed"] = "agent.destroyed"
    reason: str


class RunStarted(FrozenModel):
    """The handling of one user input begins."""

    type: Literal["run.started"] = "run.started"
    input: str
    trigger: Literal["prompt", "continue", "resume", "follow_up", "subagent", "schedule", "command"]
    """`command`: the run is one call by the user, without a request to the model. `follow_up` and `schedule` are
    reserved:
    a follow-up is a turn of the current run, not a run."""
    model: str
    mode: PermissionMode


class RunEnded(FrozenModel):
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


class TurnStarted(FrozenModel):
    """One assistant message and its tools begin."""

    type: Literal["turn.started"] = "turn.started"
    index: int
    trigger: str = ""


class TurnEnded(FrozenModel):
    """One assistant message and its tools are done."""

    type: Literal["turn.ended"] = "turn.ended"
    index: int
    message_id: str | None = None
    result_ids: tuple[str, ...] = ()
    usage: Usage = Usage()


class StepStarted(FrozenModel):
    """A request to the model is about to be sent."""

    type: Literal["step.started"] = "step.started"
    index: int
    kind: Literal["initial", "tool_followup"]


class StepEnded(FrozenModel):
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


class StepRetry(FrozenModel):
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


class RequestBuilt(FrozenModel):
    """A request is ready to be sent (debug)."""

    type: Literal["request.built"] = "request.built"
    message_count: int
    est_tokens: int
    tools: int


# --- input, steering --------------------------------------------------------------------------------------------------

InputSource = Literal["prompt", "steering", "follow_up"]


class InputWarned(FrozenModel):
    """An input filter issued a warning."""

    type: Literal["input.warned"] = "input.warned"
    filter: str
    text: str
    source: InputSource


class InputRejected(FrozenModel):
    """An input filter rejected the input."""

    type: Literal["input.rejected"] = "input.rejected"
    filter: str
    reason: str
    source: InputSource


class SteeringQueued(FrozenModel):
    """A message waits to be delivered."""

    type: Literal["steering.queued"] = "steering.queued"
    message_id: str
    kind: UserKind
    text: str
    position: int
    """Position in its queue, from 0."""
    message: UserMessage | None = None


class SteeringDelivered(FrozenModel):
    """A queued message became part of the conversation."""

    type: Literal["steering.delivered"] = "steering.delivered"
    message_id: str
    kind: UserKind
    text: str
    boundary: str
    """Point of delivery, such as `after step 3`."""


class SteeringRequeued(FrozenModel):
    """A message could not be delivered and is back at the front of its queue."""

    type: Literal["steering.requeued"] = "steering.requeued"
    message_id: str
    kind: UserKind
    text: str
    reason: str


class SteeringDropped(FrozenModel):
    """The user recalled a queued message."""

    type: Literal["steering.dropped"] = "steering.dropped"
    message_id: str
    kind: UserKind
    text: str
    reason: str


# --- messages ---------------------------------------------------------------------------------------------------------


class MessageStarted(FrozenModel):
    """A message begins."""

    type: Literal["message.started"] = "message.started"
    message_id: str
    role: Literal["user", "assistant", "tool_result"]
    call_id: str | None = None
    """Call of a tool result."""


class MessageDelta(FrozenModel):
    """The next part of a message; neighbours are merged by concatenation."""

    type: Literal["message.delta"] = "message.delta"
    message_id: str
    kind: Literal["text", "thinking", "toolcall"]
    delta: str
    call_id: str | None = None


class MessageEnded(FrozenModel):
    """A message is complete and part of the conversation."""

    type: Literal["message.ended"] = "message.ended"
    message_id: str
    message: Message
    stop_reason: StopReason | None = None
    usage: Usage | None = None


class MessageDiscarded(FrozenModel):
    """A partial message was discarded; nothing of it stays in the conversation."""

    type: Literal["message.discarded"] = "message.discarded"
    message_id: str
    reason: str


# --- tools ------------------------------------------------------------------------------------------------------------


class ToolQueued(FrozenModel):
    """A call was received; published for every call, in call order."""

    type: Literal["tool.queued"] = "tool.queued"
    call_id: str
    name: str
    args_raw: JsonObject
    index: int
    """Index in its message, from 0."""
    group: int | None = None
    """Wave of the call, if the strategy has waves."""
    safe: bool = False
    will_ask: bool | None = None
    """True if the call will need approval, False if not; None if unknown. It is known without a policy, and for
    read-only
    calls that are dispatched while the model streams. Other calls are checked when their turn comes, after the hooks
    and with the rules, mode and files of that moment."""
    summary: str = ""
    """Summary by the tool, in one line."""


class ToolBlockedOn(FrozenModel):
    """A call waits."""

    type: Literal["tool.blocked_on"] = "tool.blocked_on"
    call_id: str
    what: BlockedOn
    on: tuple[str, ...] = ()
    """Ids of the calls it waits for."""


class ToolStarted(FrozenModel):
    """A call starts to execute."""

    type: Literal["tool.started"] = "tool.started"
    call_id: str
    name: str
    args: JsonObject
    """Arguments in effect, after hooks and edits."""
    read_only: bool = False
    timeout_s: float | None = None
    attempt: int = 1
    """Number of the request that returned the call, from 1; see `step.retry`."""
    tool_kind: str = ""
    """The tool's class, for debugging."""
    summary: str = ""
    preview: Preview | None = None
    adopted_from: str | None = None
    """Call of a discarded answer whose execution this call continues: the tool runs only once."""
    mark: str = ""
    """Mark of every process that the call starts; empty if its tool starts none."""


class ToolUpdated(FrozenModel):
    """A partial result; replaces the one before."""

    type: Literal["tool.update"] = "tool.update"
    call_id: str
    partial: ToolResult
    n: int
    """Number of this update of its call, from 1."""


class ToolProgress(FrozenModel):
    """A line of progress; replaces the one before."""

    type: Literal["tool.progress"] = "tool.progress"
    call_id: str
    text: str
    fraction: float | None = None


class ToolOutput(FrozenModel):
    """A piece of output; neighbours are merged by concatenation."""

    type: Literal["tool.output"] = "tool.output"
    call_id: str
    stream: Literal["stdout", "stderr"]
    chunk: str
    bytes_total: int
    """Bytes of this stream so far: as counted by the tool, else those published."""


class ToolData(FrozenModel):
    """Typed data of a running call."""

    type: Literal["tool.data"] = "tool.data"
    call_id: str
    kind: str
    data: JsonObject


class ProcessStarted(StartedProcess):
    """A call started a program. The program ends with the call, unless tui-agent is killed first."""

    type: Literal["process.started"] = "process.started"
    call_id: str


class ToolEnded(FrozenModel):
    """A call ended; exactly once for each queued call."""

    type: Literal["tool.ended"] = "tool.ended"
    call_id: str
    name: str
    index: int
    status: ToolStatus
    is_error: bool
    content: tuple[UserBlock, ...]
    details: JsonObject | None = None
    latency_ms: float = 0.0
    """Milliseconds of execution."""
    queued_ms: float = 0.0
    """Milliseconds from queued to started (or ended), without the wait for approval."""
    approval_ms: float = 0.0
    size_bytes: int = 0
    """Size of the whole result in bytes, before truncation."""
    truncated: bool = False
    persisted_path: str | None = None
    """File with the whole result, if it was truncated."""
    child_run_id: str | None = None
    terminate: bool = False
    metrics: dict[str, Metric] = Field(default_factory=dict)
    error_kind: str | None = None
    traceback: str | None = None


class ToolBatchStarted(FrozenModel):
    """Processing of the calls of one message begins."""

    type: Literal["tool.batch_started"] = "tool.batch_started"
    batch_id: str
    strategy: str
    call_ids: tuple[str, ...] = ()
    """Calls known at this time; more may be queued while the model streams."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The calls by wave; empty under `auto`, where each call waits only for those it conflicts with."""


class ToolBatchEnded(FrozenModel):
    """Every call of the batch has its result."""

    type: Literal["tool.batch_ended"] = "tool.batch_ended"
    batch_id: str
    strategy: str
    call_ids: tuple[str, ...]
    total_ms: float
    busy_ms: float
    """Sum of the calls' execution times; more than `total_ms` if they overlapped."""
    steering: int = 0
    """Number of steering messages that arrived during the batch."""


# --- hooks, permissions, approvals, guardrails ------------------------------------------------------------------------


class HookStarted(FrozenModel):
    """A hook is called. Hooks on updates run too often for this event: only their failures are published."""

    type: Literal["hook.started"] = "hook.started"
    event: str
    name: str
    call_id: str | None = None


class HookEnded(FrozenModel):
    """A hook answered."""

    type: Literal["hook.ended"] = "hook.ended"
    event: str
    name: str
    call_id: str | None = None
    action: Literal["allow", "deny", "skip", "modify", "override"]
    reason: str = ""
    ms: float = 0.0


class HookFailed(FrozenModel):
    """A hook raised or timed out."""

    type: Literal["hook.failed"] = "hook.failed"
    event: str
    name: str
    call_id: str | None = None
    error: str
    timed_out: bool = False
    fail_open: bool = False
    """True if the call continues despite the failure."""


class PermissionDecided(FrozenModel):
    """The policy decided about a call (audit)."""

    type: Literal["permission.decided"] = "permission.decided"
    call_id: str
    decision: Verdict
    source: DecisionSource
    mode: PermissionMode
    rule: str | None = None
    reason: str = ""
    parts: tuple[DecisionPart, ...] = ()


class PermissionModeChanged(FrozenModel):
    """The permission mode changed."""

    type: Literal["permission.mode_changed"] = "permission.mode_changed"
    old: PermissionMode
    new: PermissionMode
    by: str


class ApprovalRequested(ApprovalRequest):
    """The user is asked; resolved exactly once, before the call ends. The event is the request itself."""

    type: Literal["approval.requested"] = "approval.requested"


class ApprovalResolved(FrozenModel):
    """The request for approval is resolved; dialogs about it close."""

    type: Literal["approval.resolved"] = "approval.resolved"
    request_id: str
    call_id: str
    decision: Literal["approve", "deny", "skip"]
    scope: GrantScope = "once"
    by: Literal["user", "policy", "resume", "timeout", "cancel", "nobody"]
    note: str = ""
    rule: str | None = None
    """Rule to store beyond this call; None if there is none or it is not known yet."""


class GuardrailTripped(FrozenModel):
    """A guardrail tripped."""

    type: Literal["guardrail.tripped"] = "guardrail.tripped"
    name: str
    lane: Literal["input", "output", "tool_input", "tool_output"]
    severity: Literal["low", "medium", "high", "critical"]
    reason: str
    halted: bool


class LoopDetected(FrozenModel):
    """The model repeats the same call."""

    type: Literal["loop.detected"] = "loop.detected"
    tool: str
    count: int
    action: Literal["nudge", "abort"]


# --- context, usage, sessions -----------------------------------------------------------------------------------------


class ContextUsage(FrozenModel):
    """Fill of the model's window; replaces the one before."""

    type: Literal["context.usage"] = "context.usage"
    tokens: int
    window: int
    source: Literal["actual", "estimate"]


class CompactionStarted(FrozenModel):
    """A compaction of the conversation begins."""

    type: Literal["compaction.started"] = "compaction.started"
    trigger: Literal["automatic", "manual"]
    strategy: str
    tokens_before: int


class CompactionEnded(FrozenModel):
    """A compaction ended. The event contains enough to repeat it on a conversation read from a journal."""

    type: Literal["compaction.ended"] = "compaction.ended"
    ok: bool
    tokens_after: int
    removed: int
    """Number of messages removed."""
    error: str | None = None
    tokens_before: int = 0
    strategy: str = ""
    """`summary`: written by a model; `digest`: made without one; `trim`: only results were truncated."""
    first_removed: str | None = None
    """Id of the first message removed."""
    last_removed: str | None = None
    replacement: UserMessage | None = None
    """Message in place of the removed ones."""
    cut: tuple[ToolResultMessage, ...] = ()
    """Truncated results, with unchanged ids."""


class CompactionUndone(FrozenModel):
    """The last compaction was undone."""

    type: Literal["compaction.undone"] = "compaction.undone"
    tokens_after: int
    restored: int
    """Number of messages restored."""


class UsageUpdated(FrozenModel):
    """Tokens and cost so far."""

    type: Literal["usage.updated"] = "usage.updated"
    delta: Usage
    total: Usage
    cost: float | None = None


class CheckpointSaved(FrozenModel):
    """A snapshot was saved."""

    type: Literal["checkpoint.saved"] = "checkpoint.saved"
    key: str
    pending: tuple[str, ...] = ()


class CheckpointRestored(FrozenModel):
    """A run continues from a saved snapshot."""

    type: Literal["checkpoint.restored"] = "checkpoint.restored"
    key: str
    pending: tuple[str, ...] = ()


class SessionCreated(FrozenModel):
    """A new session began."""

    type: Literal["session.created"] = "session.created"
    id: str
    path: str | None = None
    """Path of the journal; None if the session is not saved."""
    cwd: str = ""
    version: str = ""


class SessionLoaded(FrozenModel):
    """A saved session was resumed."""

    type: Literal["session.loaded"] = "session.loaded"
    id: str
    path: str | None = None
    cwd: str = ""
    version: str = ""
    events: int = 0


class SessionSwitched(FrozenModel):
    """The screen switched to another session."""

    type: Literal["session.switched"] = "session.switched"
    id: str
    path: str | None = None


class SessionForked(FrozenModel):
    """A session was forked: copied up to an event."""

    type: Literal["session.forked"] = "session.forked"
    id: str
    path: str | None = None
    parent: str
    at_seq: int


class SessionRenamed(FrozenModel):
    """The title of a session changed."""

    type: Literal["session.renamed"] = "session.renamed"
    id: str
    title: str


class SessionRewinding(FrozenModel):
    """A rewind of files begins. It ends with `session.rewound`; without that event, it was interrupted."""

    type: Literal["session.rewinding"] = "session.rewinding"
    to_seq: int
    """As in `session.rewound`."""
    text: str
    """Description of the moment to rewind to."""
    files: tuple[str, ...] = ()
    """Files to change; only the first if they are many."""
    total: int = 0
    """Number of files to change."""
    notice: UserMessage | None = None
    """Message for the model if the rewind was interrupted; appended to the conversation in that case."""


class SessionRewound(FrozenModel):
    """The user rewound files, the conversation or both to their state right after an earlier event.

    A `file.changed` for each restored file precedes this event. Nothing is ever removed from the journal.
    """

    type: Literal["session.rewound"] = "session.rewound"
    to_seq: int
    """Number of the event whose state is restored."""
    from_seq: int
    """Number of the last event before the rewind; rewinding to it undoes this rewind."""
    text: str
    """Description of the moment rewound to."""
    conversation: bool
    """True if the conversation was rewound."""
    removed: int = 0
    """Number of messages removed from the conversation."""
    call_id: str | None = None
    """Call whose changes were undone; None for a rewind to a moment."""
    files: tuple[str, ...] = ()
    """Restored files."""
    left: tuple[str, ...] = ()
    """Files that were not restored, because something else changed them since."""
    notice: UserMessage | None = None
    """Message for the model, appended to the conversation."""


class SessionSaved(FrozenModel):
    """The journal is saved up to this event."""

    type: Literal["session.saved"] = "session.saved"
    id: str
    path: str | None = None


class SessionSaveFailed(FrozenModel):
    """The journal could not be written. The conversation continues, and unsaved events stay in memory."""

    type: Literal["session.save_failed"] = "session.save_failed"
    id: str
    path: str | None = None
    error: str


class SessionRepaired(FrozenModel):
    """A damaged journal or an unfinished run was repaired on load."""

    type: Literal["session.repaired"] = "session.repaired"
    id: str
    path: str | None = None
    what: str


# --- sub-agents, background work, servers, domain ---------------------------------------------------------------------


class SubagentStarted(FrozenModel):
    """A call started a sub-agent."""

    type: Literal["subagent.started"] = "subagent.started"
    child_run_id: str
    call_id: str
    agent: str
    task: str


class SubagentEnded(FrozenModel):
    """A sub-agent ended."""

    type: Literal["subagent.ended"] = "subagent.ended"
    child_run_id: str
    call_id: str
    agent: str
    status: str
    text: str = ""
    usage: Usage = Usage()


class BackgroundStarted(FrozenModel):
    """Background work started."""

    type: Literal["background.started"] = "background.started"
    task_id: str
    kind: str
    command: str = ""


class BackgroundOutput(FrozenModel):
    """Output of background work."""

    type: Literal["background.output"] = "background.output"
    task_id: str
    kind: str
    chunk: str


class BackgroundEnded(FrozenModel):
    """Background work ended."""

    type: Literal["background.ended"] = "background.ended"
    task_id: str
    kind: str
    status: str
    code: int | None = None


class McpStatus(FrozenModel):
    """The state of a tool server changed."""

    type: Literal["mcp.status"] = "mcp.status"
    server: str
    state: Literal["connecting", "ready", "degraded", "failed", "closed"]
    error: str | None = None
    tools: tuple[str, ...] = ()


class TodoItem(FrozenModel):
    """One item of the model's plan."""

    text: str
    status: Literal["pending", "in_progress", "done"]


class TodoUpdated(FrozenModel):
    """The model's list of tasks; replaces the one before."""

    type: Literal["todo.updated"] = "todo.updated"
    items: tuple[TodoItem, ...]


class PlanProposed(FrozenModel):
    """The model proposes a plan."""

    type: Literal["plan.proposed"] = "plan.proposed"
    plan_id: str
    text: str


class PlanResolved(FrozenModel):
    """The user accepted or rejected a plan."""

    type: Literal["plan.resolved"] = "plan.resolved"
    plan_id: str
    accepted: bool
    note: str = ""


class QuestionAsked(FrozenModel):
    """The model asks the user a question."""

    type: Literal["question.asked"] = "question.asked"
    question_id: str
    text: str
    options: tuple[str, ...] = ()


class QuestionAnswered(FrozenModel):
    """The user answered a question."""

    type: Literal["question.answered"] = "question.answered"
    question_id: str
    text: str


class FileState(FrozenModel):
    """A file at one moment. The session saves its content under the digest if `kept` is True."""

    digest: str
    """Hash of the content (of the target for a symbolic link); empty if the file was too large to read."""
    size: int
    """Size in bytes."""
    mode: int
    """Permission bits."""
    is_link: bool = False
    kept: bool = True
    """True if the content was saved."""


class FileChanged(FrozenModel):
    """A tool, an undo or a rewind changed a file."""

    type: Literal["file.changed"] = "file.changed"
    path: str
    change: Literal["created", "modified", "deleted"]
    call_id: str | None = None
    """Call that changed the file; None for an undo or a rewind."""
    diff: str = ""
    known: bool = False
    """True if `before` and `after` are known; None then means that the file did not exist."""
    before: FileState | None = None
    after: FileState | None = None
    added: int = 0
    """Number of lines added."""
    removed: int = 0
    """Number of lines removed."""


# --- notices, status --------------------------------------------------------------------------------------------------


class Warned(FrozenModel):
    """A problem that does not stop the work."""

    type: Literal["warning"] = "warning"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Failed(FrozenModel):
    """An error; the text says what happened, what was kept and what to do."""

    type: Literal["error"] = "error"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Noticed(FrozenModel):
    """Information for the user."""

    type: Literal["notice"] = "notice"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class StatusChanged(FrozenModel):
    """The agent's activity changed."""

    type: Literal["status.changed"] = "status.changed"
    status: Status
    detail: str = ""


AgentEvent = Annotated[
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
    | ToolQueued
    | ToolBlockedOn
    | ToolStarted
    | ToolUpdated
    | ToolProgress
    | ToolOutput
    | ToolData
    | ProcessStarted
    | ToolEnded
    | ToolBatchStarted
    | ToolBatchEnded
    | HookStarted
    | HookEnded
    | HookFailed
    | PermissionDecided
    | PermissionModeChanged
    | ApprovalRequested
    | ApprovalResolved
    | GuardrailTripped
    | LoopDetected
    | ContextUsage
    | CompactionStarted
    | CompactionEnded
    | CompactionUndone
    | UsageUpdated
    | CheckpointSaved
    | CheckpointRestored
    | SessionCreated
    | SessionLoaded
    | SessionSwitched
    | SessionForked
    | SessionRenamed
    | SessionRewinding
    | SessionRewound
    | SessionSaved
    | SessionSaveFailed
    | SessionRepaired
    | SubagentStarted
    | SubagentEnded
    | BackgroundStarted
    | BackgroundOutput
    | BackgroundEnded
    | McpStatus
    | TodoUpdated
    | PlanProposed
    | PlanResolved
    | QuestionAsked
    | QuestionAnswered
    | FileChanged
    | Warned
    | Failed
    | Noticed
    | StatusChanged,
    Field(discriminator="type"),
]
"""Any event, discriminated by `type`."""
