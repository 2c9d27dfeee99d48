"""Events of sub-agents, background work, servers and tools' own subjects, notices and the status."""

from typing import Literal

from pydantic import Field

from .diffs import NO_DIFF, Diff
from .messages import FrozenModel, JsonObject, TrustedModel, Usage

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

# --- sub-agents, background work, servers, domain ---------------------------------------------------------------------


class SubagentStarted(TrustedModel):
    """A call started a sub-agent."""

    type: Literal["subagent.started"] = "subagent.started"
    child_run_id: str
    call_id: str
    agent: str
    task: str


class SubagentEnded(TrustedModel):
    """A sub-agent ended."""

    type: Literal["subagent.ended"] = "subagent.ended"
    child_run_id: str
    call_id: str
    agent: str
    status: str
    text: str = ""
    usage: Usage = Usage()


class BackgroundStarted(TrustedModel):
    """Background work started."""

    type: Literal["background.started"] = "background.started"
    task_id: str
    kind: str
    command: str = ""


class BackgroundOutput(TrustedModel):
    """Output of background work."""

    type: Literal["background.output"] = "background.output"
    task_id: str
    kind: str
    chunk: str


ENDED_WITH_SESSION = "ended_with_session"
"""Status of background work that the end of the session ended."""


class BackgroundEnded(TrustedModel):
    """Background work ended. `status` is `exited`, `killed`, `timeout`, `failed`, `ended_with_session`, `detached` or,
    in a resumed session, `unknown`."""

    type: Literal["background.ended"] = "background.ended"
    task_id: str
    kind: str
    status: str
    code: int | None = None


class McpStatus(TrustedModel):
    """The state of a tool server changed."""

    type: Literal["mcp.status"] = "mcp.status"
    server: str
    state: Literal["connecting", "ready", "degraded", "failed", "closed"]
    error: str | None = None
    tools: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """Message that the server's tools are missing, with the reason; empty if they are not."""
        words = {"failed": "does not run", "degraded": "stopped and starts again", "connecting": "is still starting"}
        outcome = words.get(self.state, "") if self.state != "connecting" or self.error else ""
        reason = f": {self.error}" if self.error else ""
        return f"Tool server {self.server} {outcome}{reason}" if outcome else ""


class TodoItem(FrozenModel):
    """One item of the model's plan."""

    text: str
    status: Literal["pending", "in_progress", "done"]


class TodoUpdated(TrustedModel):
    """The model's list of tasks; replaces the one before."""

    type: Literal["todo.updated"] = "todo.updated"
    items: tuple[TodoItem, ...]


class PlanProposed(TrustedModel):
    """The model proposes a plan."""

    type: Literal["plan.proposed"] = "plan.proposed"
    plan_id: str
    text: str


class PlanResolved(TrustedModel):
    """The user accepted or rejected a plan."""

    type: Literal["plan.resolved"] = "plan.resolved"
    plan_id: str
    accepted: bool
    note: str = ""


class QuestionAsked(TrustedModel):
    """The model asks the user a question."""

    type: Literal["question.asked"] = "question.asked"
    question_id: str
    text: str
    options: tuple[str, ...] = ()


class QuestionAnswered(TrustedModel):
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


class FileChanged(TrustedModel):
    """A tool, an undo or a rewind changed a file."""

    type: Literal["file.changed"] = "file.changed"
    path: str
    change: Literal["created", "modified", "deleted"]
    call_id: str | None = None
    """Call that changed the file; None for an undo or a rewind."""
    diff: Diff = NO_DIFF
    """A unified diff; a string in JSON."""
    known: bool = False
    """True if `before` and `after` are known; None then means that the file did not exist."""
    before: FileState | None = None
    after: FileState | None = None
    added: int = 0
    """Number of lines added."""
    removed: int = 0
    """Number of lines removed."""


# --- notices, status --------------------------------------------------------------------------------------------------


class Warned(TrustedModel):
    """A problem that does not stop the work."""

    type: Literal["warning"] = "warning"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Failed(TrustedModel):
    """An error; the text says what happened, what was kept and what to do."""

    type: Literal["error"] = "error"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class Noticed(TrustedModel):
    """Information for the user."""

    type: Literal["notice"] = "notice"
    code: str
    text: str
    context: JsonObject = Field(default_factory=dict)


class StatusChanged(TrustedModel):
    """The agent's activity changed."""

    type: Literal["status.changed"] = "status.changed"
    status: Status
    detail: str = ""


ActivityEvent = (
    SubagentStarted
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
    | StatusChanged
)
