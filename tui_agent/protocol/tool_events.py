"""Events of tool calls, and of the hooks, permissions, approvals and guardrails that decide about them."""

from typing import Literal

from pydantic import Field

from .messages import JsonObject, TrustedModel, UserBlock
from .permissions import ApprovalRequest, DecisionPart, DecisionSource, GrantScope, PermissionMode, Verdict
from .reports import Metric
from .tool import Preview, StartedProcess, ToolResult
from .trial import Place, ProposedChanges

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

BlockedOn = Literal["permission", "approval", "slot", "group", "hook"]
"""Reason why a call waits; `permission` is reserved for slow policies and never used by the built-in one."""


# --- tools ------------------------------------------------------------------------------------------------------------


class ToolQueued(TrustedModel):
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


class ToolBlockedOn(TrustedModel):
    """A call waits."""

    type: Literal["tool.blocked_on"] = "tool.blocked_on"
    call_id: str
    what: BlockedOn
    on: tuple[str, ...] = ()
    """Ids of the calls it waits for; another event follows if others are left once these are over."""


class ToolStarted(TrustedModel):
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
    place: Place = "outside"
    """Place in which it runs."""


class ToolUpdated(TrustedModel):
    """A partial result; replaces the one before."""

    type: Literal["tool.update"] = "tool.update"
    call_id: str
    partial: ToolResult
    n: int
    """Number of this update of its call, from 1."""


class ToolProgress(TrustedModel):
    """A line of progress; replaces the one before."""

    type: Literal["tool.progress"] = "tool.progress"
    call_id: str
    text: str
    fraction: float | None = None


class ToolOutput(TrustedModel):
    """A piece of output; neighbours are merged by concatenation."""

    type: Literal["tool.output"] = "tool.output"
    call_id: str
    stream: Literal["stdout", "stderr"]
    chunk: str
    bytes_total: int
    """Bytes of this stream so far: as counted by the tool, else those published."""


class ToolData(TrustedModel):
    """Typed data of a running call."""

    type: Literal["tool.data"] = "tool.data"
    call_id: str
    kind: str
    data: JsonObject


class ProcessStarted(StartedProcess):
    """A call started a program. The program ends with the call, unless tui-agent is killed first."""

    type: Literal["process.started"] = "process.started"
    call_id: str


class ToolEnded(TrustedModel):
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


class ToolBatchStarted(TrustedModel):
    """Processing of the calls of one message begins."""

    type: Literal["tool.batch_started"] = "tool.batch_started"
    batch_id: str
    strategy: str
    call_ids: tuple[str, ...] = ()
    """Calls known at this time; more may be queued while the model streams."""
    groups: tuple[tuple[str, ...], ...] = ()
    """The calls by wave; empty under `auto`, where each call waits only for those it conflicts with."""


class ToolBatchEnded(TrustedModel):
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


class HookStarted(TrustedModel):
    """A hook is called. Hooks on updates run too often for this event: only their failures are published."""

    type: Literal["hook.started"] = "hook.started"
    event: str
    name: str
    call_id: str | None = None


class HookEnded(TrustedModel):
    """A hook answered. Those of hook files have this event also if they failed or timed out, with the reason.

    Then the warning `hook_failed` says whether the failure denies the call.
    """

    type: Literal["hook.ended"] = "hook.ended"
    event: str
    name: str
    call_id: str | None = None
    action: Literal["allow", "deny", "skip", "modify", "override"]
    reason: str = ""
    ms: float = 0.0


class HookFailed(TrustedModel):
    """A hook of this process or of `[[hooks]]` raised or timed out, or any hook was cancelled while it ran."""

    type: Literal["hook.failed"] = "hook.failed"
    event: str
    name: str
    call_id: str | None = None
    error: str
    timed_out: bool = False
    fail_open: bool = False
    """True if the call continues despite the failure."""


class PermissionDecided(TrustedModel):
    """The policy decided about a call (audit)."""

    type: Literal["permission.decided"] = "permission.decided"
    call_id: str
    decision: Verdict
    source: DecisionSource
    mode: PermissionMode
    rule: str | None = None
    reason: str = ""
    parts: tuple[DecisionPart, ...] = ()


class PermissionModeChanged(TrustedModel):
    """The permission mode changed."""

    type: Literal["permission.mode_changed"] = "permission.mode_changed"
    old: PermissionMode
    new: PermissionMode
    by: str


class ApprovalRequested(ApprovalRequest):
    """The user is asked; resolved exactly once, before the call ends. The event is the request itself."""

    type: Literal["approval.requested"] = "approval.requested"


class ApprovalResolved(TrustedModel):
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
    answers: JsonObject | None = None
    """Values with which the user answered a form of a tool server, without those of secret fields."""
    via: str = ""
    """Name of the `[[notify]]` that the answer came through, or `another tui-agent`; empty for an answer here."""


class ChangesProposed(TrustedModel):
    """A command has run in a trial and changed something; kept or discarded next, always before the call ends."""

    type: Literal["changes.proposed"] = "changes.proposed"
    call_id: str
    changes: ProposedChanges


class ChangesKept(TrustedModel):
    """Changes of a command are in the workspace now; a `file.changed` follows for each file."""

    type: Literal["changes.kept"] = "changes.kept"
    call_id: str
    layer: str
    paths: tuple[str, ...]
    """Kept paths, as in `KeepSelection.paths`; at most `MOST_FILES`."""
    count: int
    """Number of kept files."""
    by: Literal["user", "policy"] = "user"
    rule: str | None = None


class ChangesDiscarded(TrustedModel):
    """Changes of a command were removed with its layer; the workspace has none of them."""

    type: Literal["changes.discarded"] = "changes.discarded"
    call_id: str
    layer: str
    paths: tuple[str, ...]
    count: int
    reason: str = ""
    """Reason in words: the user's note, the mode, `no one can answer here`, `denied by a rule`."""


class GuardrailTripped(TrustedModel):
    """A guardrail tripped."""

    type: Literal["guardrail.tripped"] = "guardrail.tripped"
    name: str
    lane: Literal["input", "output", "tool_input", "tool_output"]
    severity: Literal["low", "medium", "high", "critical"]
    reason: str
    halted: bool


class LoopDetected(TrustedModel):
    """The model repeats the same call."""

    type: Literal["loop.detected"] = "loop.detected"
    tool: str
    count: int
    action: Literal["nudge", "abort"]


CallEvent = (
    ToolQueued
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
    | ChangesProposed
    | ChangesKept
    | ChangesDiscarded
    | GuardrailTripped
    | LoopDetected
)
