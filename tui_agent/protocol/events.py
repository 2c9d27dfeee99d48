"""Every event there is. This page is the specification of what can happen.

An event is a fact that was told: frozen, complete, serialisable, and it needs no answer. The bus puts each into an
`Envelope` that says where and when. Type names and fields are frozen by a test; readers ignore what they do not know.
The sequences in which events come are drawn in `docs/events.md`.
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
"""Version of the envelope; readers of an older version still read a newer file's known events."""

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
"""How a call ended; `interrupted` means that its outcome is not known."""

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
"""What the agent does now, derived from the other events."""

BlockedOn = Literal["permission", "approval", "slot", "group", "hook"]
"""What a call waits for; `permission` is kept for policies that take time: judging by rules waits for nothing."""


# --- agent, run, turn, step -------------------------------------------------------------------------------------------


class AgentCreated(FrozenModel):
    """An agent exists and has published its layers (S4-33)."""

    type: Literal["agent.created"] = "agent.created"
    model: str
    tools: tuple[str, ...]
    mode: PermissionMode


class AgentDestroyed(FrozenModel):
    """An agent is gone."""

    type: Literal["agent.destroyed"] = "agent.destroyed"
    reason: str


class RunStarted(FrozenModel):
    """One user input begins to be handled."""

    type: Literal["run.started"] = "run.started"
    input: str
    trigger: Literal["prompt", "continue", "resume", "follow_up", "subagent", "schedule", "command"]
    """`command`: the run is one call that the person made; the model is not asked. `follow_up` and `schedule` are kept
    for runs of their own; by now a follow-up is a turn of the run it waited in."""
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
    """Dollars; None where the price is not known."""
    steps: int = 0
    tool_calls: int = 0
    total_ms: float = 0.0
    model_ms: float = 0.0
    tool_ms: float = 0.0
    approval_ms: float = 0.0
    """Time spent waiting for the user."""
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
    """The model's answer is complete, or there will be none; its calls may still run until `turn.ended` (S4-40)."""

    type: Literal["step.ended"] = "step.ended"
    index: int
    kind: Literal["initial", "tool_followup"]
    llm_ms: float
    finish_reason: str
    usage: Usage
    """Everything the step took, answers that were thrown away included."""
    tool_ms: float = 0.0
    """Milliseconds of execution of its answer's calls that were over by then: of those that ran while the model still
    talked. The run's report has the time of all of them."""


class StepRetry(FrozenModel):
    """A request to the model failed; it is sent again after a wait."""

    type: Literal["step.retry"] = "step.retry"
    attempt: int
    """Number of the attempt that comes after the wait, from 2."""
    max: int
    wait_s: float
    error_kind: str
    status: int | None = None
    discarded: bool = False
    """Whether a part of an answer was thrown away; `message.discarded` names it."""
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
    """An input filter had something to say."""

    type: Literal["input.warned"] = "input.warned"
    filter: str
    text: str
    source: InputSource


class InputRejected(FrozenModel):
    """An input filter refused the input."""

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
    """Place in its queue, from 0."""
    message: UserMessage | None = None


class SteeringDelivered(FrozenModel):
    """A waiting message became part of the conversation."""

    type: Literal["steering.delivered"] = "steering.delivered"
    message_id: str
    kind: UserKind
    text: str
    boundary: str
    """Where it landed, such as `after step 3`."""


class SteeringRequeued(FrozenModel):
    """A message that was taken could not be delivered and waits again, in front."""

    type: Literal["steering.requeued"] = "steering.requeued"
    message_id: str
    kind: UserKind
    text: str
    reason: str


class SteeringDropped(FrozenModel):
    """The user recalled a waiting message."""

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
    """The call a tool result answers."""


class MessageDelta(FrozenModel):
    """More of a message; neighbours are merged by concatenation."""

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
    """A begun message is thrown away; nothing of it stays in the conversation."""

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
    """Place in its message, from 0."""
    group: int | None = None
    """Wave it belongs to, where the strategy has waves."""
    safe: bool = False
    will_ask: bool | None = None
    """Whether a person will be asked, as far as that is known: with streaming dispatch of calls that change nothing,
    and where there is no policy. None: the call is judged when it is its turn, because what is decided now would have
    to be decided again after the hooks, and by the rules, the mode and the files of that moment."""
    summary: str = ""
    """One line by the tool itself."""


class ToolBlockedOn(FrozenModel):
    """A call waits."""

    type: Literal["tool.blocked_on"] = "tool.blocked_on"
    call_id: str
    what: BlockedOn
    on: tuple[str, ...] = ()
    """Ids of the calls it waits for."""


class ToolStarted(FrozenModel):
    """A call really executes."""

    type: Literal["tool.started"] = "tool.started"
    call_id: str
    name: str
    args: JsonObject
    """Arguments in effect, after hooks and edits."""
    read_only: bool = False
    timeout_s: float | None = None
    attempt: int = 1
    """Number of the attempt at the answer in which the call stands, from 1; `step.retry` tells the others."""
    tool_kind: str = ""
    """The tool's class, for debugging."""
    summary: str = ""
    preview: Preview | None = None
    adopted_from: str | None = None
    """A call of a thrown away answer whose execution this call took over: the tool ran, or runs, only once."""
    mark: str = ""
    """Mark of every process that the call starts; empty where its tool starts none."""


class ToolUpdated(FrozenModel):
    """A partial result; the last one counts."""

    type: Literal["tool.update"] = "tool.update"
    call_id: str
    partial: ToolResult
    n: int
    """Number of this update of its call, from 1."""


class ToolProgress(FrozenModel):
    """A line of progress; the last one counts."""

    type: Literal["tool.progress"] = "tool.progress"
    call_id: str
    text: str
    fraction: float | None = None


class ToolOutput(FrozenModel):
    """Output as it comes; neighbours are merged by concatenation."""

    type: Literal["tool.output"] = "tool.output"
    call_id: str
    stream: Literal["stdout", "stderr"]
    chunk: str
    bytes_total: int
    """All bytes of this stream so far: as the tool counts them, or else those that were published."""


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
    """A call is over; exactly once for each queued call, whatever path led here."""

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
    """Milliseconds between queued and started or ended, without approval."""
    approval_ms: float = 0.0
    size_bytes: int = 0
    """Size of the whole result, before it was fitted."""
    truncated: bool = False
    persisted_path: str | None = None
    """File that holds the whole result, where it was too long."""
    child_run_id: str | None = None
    terminate: bool = False
    metrics: dict[str, Metric] = Field(default_factory=dict)
    error_kind: str | None = None
    traceback: str | None = None


class ToolBatchStarted(FrozenModel):
    """The calls of one message are taken in hand."""

    type: Literal["tool.batch_started"] = "tool.batch_started"
    batch_id: str
    strategy: str
    call_ids: tuple[str, ...] = ()
    """Calls known by then; more may be queued while the model streams."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The same by wave; empty under `auto`, where each call waits for those alone that it conflicts with."""


class ToolBatchEnded(FrozenModel):
    """Every call of the batch has its one result."""

    type: Literal["tool.batch_ended"] = "tool.batch_ended"
    batch_id: str
    strategy: str
    call_ids: tuple[str, ...]
    total_ms: float
    busy_ms: float
    """Sum of the calls' execution times; more than `total_ms` where they overlapped."""
    steering: int = 0
    """Number of steering messages found at its boundaries."""


# --- hooks, permissions, approvals, guardrails ------------------------------------------------------------------------


class HookStarted(FrozenModel):
    """A hook is asked. Hooks on updates run too often for this event: only their failures are published."""

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
    """A hook raised or did not answer in time."""

    type: Literal["hook.failed"] = "hook.failed"
    event: str
    name: str
    call_id: str | None = None
    error: str
    timed_out: bool = False
    fail_open: bool = False
    """True if the call continues all the same."""


class PermissionDecided(FrozenModel):
    """A call was judged (audit)."""

    type: Literal["permission.decided"] = "permission.decided"
    call_id: str
    decision: Verdict
    source: DecisionSource
    mode: PermissionMode
    rule: str | None = None
    reason: str = ""
    parts: tuple[DecisionPart, ...] = ()


class PermissionModeChanged(FrozenModel):
    """Another mode is in force."""

    type: Literal["permission.mode_changed"] = "permission.mode_changed"
    old: PermissionMode
    new: PermissionMode
    by: str


class ApprovalRequested(ApprovalRequest):
    """The user is asked; resolved exactly once, before the call ends. The event is the request itself."""

    type: Literal["approval.requested"] = "approval.requested"


class ApprovalResolved(FrozenModel):
    """The question is answered, by whomever; any dialog about it closes."""

    type: Literal["approval.resolved"] = "approval.resolved"
    request_id: str
    call_id: str
    decision: Literal["approve", "deny", "skip"]
    scope: GrantScope = "once"
    by: Literal["user", "policy", "resume", "timeout", "cancel", "nobody"]
    note: str = ""
    rule: str | None = None
    """The rule that is to be stored for more than this call; None: none, or it is not known yet what it is."""


class GuardrailTripped(FrozenModel):
    """A guardrail did not pass."""

    type: Literal["guardrail.tripped"] = "guardrail.tripped"
    name: str
    lane: Literal["input", "output", "tool_input", "tool_output"]
    severity: Literal["low", "medium", "high", "critical"]
    reason: str
    halted: bool


class LoopDetected(FrozenModel):
    """The model repeats itself."""

    type: Literal["loop.detected"] = "loop.detected"
    tool: str
    count: int
    action: Literal["nudge", "abort"]


# --- context, usage, sessions -----------------------------------------------------------------------------------------


class ContextUsage(FrozenModel):
    """How full the model's window is; the last one counts."""

    type: Literal["context.usage"] = "context.usage"
    tokens: int
    window: int
    source: Literal["actual", "estimate"]


class CompactionStarted(FrozenModel):
    """The conversation is being shortened."""

    type: Literal["compaction.started"] = "compaction.started"
    trigger: Literal["automatic", "manual"]
    strategy: str
    tokens_before: int


class CompactionEnded(FrozenModel):
    """A compaction ended. The event holds enough to repeat it on a conversation read from a journal."""

    type: Literal["compaction.ended"] = "compaction.ended"
    ok: bool
    tokens_after: int
    removed: int
    """Number of messages that are gone."""
    error: str | None = None
    tokens_before: int = 0
    strategy: str = ""
    """How it came about: `summary` by a model, `digest` without one, `trim` where only results were cut."""
    first_removed: str | None = None
    """Id of the first message of the range that is gone."""
    last_removed: str | None = None
    replacement: UserMessage | None = None
    """What stands in its place."""
    cut: tuple[ToolResultMessage, ...] = ()
    """Results as they are now, under their ids."""


class CompactionUndone(FrozenModel):
    """The last compaction was taken back."""

    type: Literal["compaction.undone"] = "compaction.undone"
    tokens_after: int
    restored: int
    """Number of messages that are there again."""


class UsageUpdated(FrozenModel):
    """Tokens and cost so far."""

    type: Literal["usage.updated"] = "usage.updated"
    delta: Usage
    total: Usage
    cost: float | None = None


class CheckpointSaved(FrozenModel):
    """A snapshot was stored."""

    type: Literal["checkpoint.saved"] = "checkpoint.saved"
    key: str
    pending: tuple[str, ...] = ()


class CheckpointRestored(FrozenModel):
    """A snapshot was taken up again."""

    type: Literal["checkpoint.restored"] = "checkpoint.restored"
    key: str
    pending: tuple[str, ...] = ()


class SessionCreated(FrozenModel):
    """A new session is kept from here on."""

    type: Literal["session.created"] = "session.created"
    id: str
    path: str | None = None
    """The journal; None when the session is not kept."""
    cwd: str = ""
    version: str = ""


class SessionLoaded(FrozenModel):
    """A stored session was resumed."""

    type: Literal["session.loaded"] = "session.loaded"
    id: str
    path: str | None = None
    cwd: str = ""
    version: str = ""
    events: int = 0


class SessionSwitched(FrozenModel):
    """Another session is on the screen."""

    type: Literal["session.switched"] = "session.switched"
    id: str
    path: str | None = None


class SessionForked(FrozenModel):
    """A session was copied up to an event."""

    type: Literal["session.forked"] = "session.forked"
    id: str
    path: str | None = None
    parent: str
    at_seq: int


class SessionRenamed(FrozenModel):
    """A session has another title."""

    type: Literal["session.renamed"] = "session.renamed"
    id: str
    title: str


class SessionRewinding(FrozenModel):
    """Files begin to go back; `session.rewound` ends it. Where none follows, it broke off in the middle."""

    type: Literal["session.rewinding"] = "session.rewinding"
    to_seq: int
    """As in `session.rewound`."""
    text: str
    """What is gone back to, in words."""
    files: tuple[str, ...] = ()
    """The first of the files that are to change."""
    total: int = 0
    """All of them, counted."""
    notice: UserMessage | None = None
    """Text for the model if the rewind broke off; the newest message in that case."""


class SessionRewound(FrozenModel):
    """The user rewound files, the conversation or both to their state right after an earlier event.

    The files changed back were told before, each by a `file.changed`. Nothing is ever taken out of the journal.
    """

    type: Literal["session.rewound"] = "session.rewound"
    to_seq: int
    """Number of the event after which things were as they are again."""
    from_seq: int
    """Number of the last event before the going back began: going back there undoes it."""
    text: str
    """What was gone back to, in words."""
    conversation: bool
    """Whether the conversation is what it was then."""
    removed: int = 0
    """Number of messages that are no longer part of it."""
    call_id: str | None = None
    """The call whose changes alone were taken back."""
    files: tuple[str, ...] = ()
    """Files that were changed back."""
    left: tuple[str, ...] = ()
    """Files that somebody else changed since, and that were left as they are."""
    notice: UserMessage | None = None
    """Text for the model; the newest message from then on."""


class SessionSaved(FrozenModel):
    """The journal is on disk up to here."""

    type: Literal["session.saved"] = "session.saved"
    id: str
    path: str | None = None


class SessionSaveFailed(FrozenModel):
    """The journal could not be written; the conversation continues, and unsaved events stay in memory."""

    type: Literal["session.save_failed"] = "session.save_failed"
    id: str
    path: str | None = None
    error: str


class SessionRepaired(FrozenModel):
    """A damaged journal or an unfinished run was mended on load."""

    type: Literal["session.repaired"] = "session.repaired"
    id: str
    path: str | None = None
    what: str


# --- sub-agents, background work, servers, domain ---------------------------------------------------------------------


class SubagentStarted(FrozenModel):
    """A call started an agent of its own."""

    type: Literal["subagent.started"] = "subagent.started"
    child_run_id: str
    call_id: str
    agent: str
    task: str


class SubagentEnded(FrozenModel):
    """That agent is done."""

    type: Literal["subagent.ended"] = "subagent.ended"
    child_run_id: str
    call_id: str
    agent: str
    status: str
    text: str = ""
    usage: Usage = Usage()


class BackgroundStarted(FrozenModel):
    """Work started that continues beside the conversation."""

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
    """Background work is over."""

    type: Literal["background.ended"] = "background.ended"
    task_id: str
    kind: str
    status: str
    code: int | None = None


class McpStatus(FrozenModel):
    """A tool server changed its state."""

    type: Literal["mcp.status"] = "mcp.status"
    server: str
    state: Literal["connecting", "ready", "degraded", "failed", "closed"]
    error: str | None = None
    tools: tuple[str, ...] = ()


class TodoItem(FrozenModel):
    """One line of the model's plan."""

    text: str
    status: Literal["pending", "in_progress", "done"]


class TodoUpdated(FrozenModel):
    """The model's list of what is to do; replaces the one before."""

    type: Literal["todo.updated"] = "todo.updated"
    items: tuple[TodoItem, ...]


class PlanProposed(FrozenModel):
    """The model proposes what to do."""

    type: Literal["plan.proposed"] = "plan.proposed"
    plan_id: str
    text: str


class PlanResolved(FrozenModel):
    """A proposed plan was taken or not."""

    type: Literal["plan.resolved"] = "plan.resolved"
    plan_id: str
    accepted: bool
    note: str = ""


class QuestionAsked(FrozenModel):
    """The model asks the user something."""

    type: Literal["question.asked"] = "question.asked"
    question_id: str
    text: str
    options: tuple[str, ...] = ()


class QuestionAnswered(FrozenModel):
    """The user answered."""

    type: Literal["question.answered"] = "question.answered"
    question_id: str
    text: str


class FileState(FrozenModel):
    """What a file was at one moment. The session keeps its content under the digest, unless it says otherwise."""

    digest: str
    """Hash of the content, for a symbolic link of where it leads; empty where it was too large to be read."""
    size: int
    """Bytes."""
    mode: int
    """Permission bits."""
    is_link: bool = False
    kept: bool = True
    """Whether the content can be had again."""


class FileChanged(FrozenModel):
    """A tool, or an undo of the user, changed a file."""

    type: Literal["file.changed"] = "file.changed"
    path: str
    change: Literal["created", "modified", "deleted"]
    call_id: str | None = None
    """The call that did it; None for an undo or a rewind of the user."""
    diff: str = ""
    known: bool = False
    """Whether `before` and `after` say what the file was; then None means that there was none."""
    before: FileState | None = None
    after: FileState | None = None
    added: int = 0
    """Lines."""
    removed: int = 0


# --- notices, status --------------------------------------------------------------------------------------------------


class Warned(FrozenModel):
    """Something is not as it should be; the work continues."""

    type: Literal["warning"] = "warning"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Failed(FrozenModel):
    """Something went wrong; the text says what happened, what was kept and what to do."""

    type: Literal["error"] = "error"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Noticed(FrozenModel):
    """Something worth knowing."""

    type: Literal["notice"] = "notice"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class StatusChanged(FrozenModel):
    """What the agent does now."""

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
"""Everything that can be told, discriminated by `type`."""
