"""State of one tool call: the fold of its events, for its row in the panel and for its detail page.

The panel applies every event that `call_of` assigns to the call; nothing else changes the state. Text is kept as it
arrived, and sanitised when it is drawn.
"""

from dataclasses import dataclass, field
from typing import Literal

from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BlockedOn,
    FileChanged,
    HookEnded,
    HookFailed,
    HookStarted,
    PermissionDecided,
    RunEnded,
    SubagentEnded,
    SubagentStarted,
    ToolBlockedOn,
    ToolData,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolStatus,
    ToolUpdated,
)
from tui_agent.protocol.messages import ImageBlock, JsonObject, UserBlock
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.ui.text.amounts import bytes_text

CallPhase = Literal["queued", "waiting", "asking", "running", "ended"]
"""State of a call: received, blocked, waiting for the user, executing, finished."""

LIVE_LIMIT = 64 * 1024
"""Most characters of output kept while a call runs; earlier output is in its result or its file."""
RESULT_LIMIT = 128 * 1024
"""Most characters kept of a result, half from its head and half from its tail."""
DATA_LIMIT = 50
"""Most pieces of typed data kept for a call."""
CHANGES_LIMIT = 500
"""Most changed files kept for a call; others are only counted."""

_TailEvent = ToolOutput | ToolProgress | ToolUpdated | ToolData


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of a hook for the call."""

    event: str
    name: str
    action: str
    """Its answer; `failed` or `timed out` without one, `asked` while it runs."""
    reason: str = ""
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the call changed."""

    path: str
    """Path relative to the working directory if that is known, else absolute."""
    change: str
    diff: str = ""
    """Unified diff; empty if there is none."""
    added: int = 0
    """Number of lines."""
    removed: int = 0
    what: str = ""
    """Facts beside the numbers: a new or deleted file, a mode, a size if the file has no lines."""

    @property
    def words(self) -> str:
        """File with its counts, such as `a.py +2 −1`."""
        counts = f" +{self.added} −{self.removed}" if self.added or self.removed else ""
        return f"{self.path}{counts}{f' {self.what}' if self.what else ''}"

    @classmethod
    def of(cls, event: FileChanged, root: str = "") -> "FileChange":
        """Return the change in an event; `root` is the working directory."""
        path = event.path.removeprefix(f"{root.rstrip('/')}/") if root else event.path
        return cls(path, event.change, event.diff, event.added, event.removed, _what_of(event))


@dataclass(slots=True)
class CallViewState:
    """State of one call, mutable. Changed by `apply` only."""

    call_id: str
    origin: Origin = field(default_factory=Origin)
    name: str = ""
    index: int = 0
    """Position in its message, from 0."""
    group: int | None = None
    summary: str = ""
    """One-line summary by the tool."""
    args: JsonObject = field(default_factory=dict[str, object])
    """Arguments of the model until the call starts, then the effective ones."""
    args_asked: JsonObject | None = None
    """Arguments of the model, if others were run."""

    phase: CallPhase = "queued"
    status: ToolStatus | None = None
    """Result status; None until the call ends."""
    safe: bool = False
    read_only: bool = False
    waits_for: BlockedOn | None = None
    waits_on: tuple[str, ...] = ()
    """Ids of the calls it waits for."""
    progress: str = ""
    fraction: float | None = None

    queued_at: float = 0.0
    """Monotonic seconds."""
    started_at: float | None = None
    ended_at: float | None = None
    latency_ms: float = 0.0
    queued_ms: float = 0.0
    approval_ms: float = 0.0
    timeout_s: float | None = None
    attempt: int = 1
    took_over: bool = False
    """True if it took over the result of the same call in an interrupted response, so that the tool ran once."""

    output: str = ""
    """Newest output, at most `LIVE_LIMIT` characters; empty once the result contains it."""
    output_bytes: int = 0
    output_cut: bool = False
    """True if earlier output was dropped."""
    partial: str = ""
    """Newest partial result."""
    data: tuple[tuple[str, JsonObject], ...] = ()
    result: str = ""
    is_error: bool = False
    details: JsonObject | None = None
    size_bytes: int = 0
    truncated: bool = False
    persisted_path: str | None = None
    error_kind: str | None = None
    traceback: str | None = None
    metrics: tuple[tuple[str, float | str | bool], ...] = ()

    preview: Preview | None = None
    changes: list[FileChange] = field(default_factory=list[FileChange])
    """Changed files, at most `CHANGES_LIMIT`."""
    changed_files: int = 0
    """Number of all changed files."""
    is_compared: bool = False
    """True if its changes were found by comparing the workspace; its summary does not name them then."""
    decision: PermissionDecided | None = None
    request: ApprovalRequest | None = None
    """Approval request, also after it is answered."""
    resolution: ApprovalResolved | None = None
    hooks: tuple[HookRun, ...] = ()
    agent: str | None = None
    """Label of the sub-agent that it started."""
    child_run_id: str | None = None

    @property
    def ended(self) -> bool:
        """True if the call is finished."""
        return self.phase == "ended"

    @property
    def diff(self) -> str:
        """Unified diffs of its changes, else of the proposed ones; empty if there are none."""
        done = "\n".join(change.diff.rstrip("\n") for change in self.changes if change.diff)
        if done:
            return done
        reported = (self.details or {}).get("diff")
        if isinstance(reported, str) and reported:
            return reported
        return self.preview.text if self.preview is not None and self.preview.kind == "diff" else ""

    def elapsed_ms(self, now: float) -> float:
        """Return the milliseconds of execution; `now` in monotonic seconds is used only while the call runs."""
        if self.phase == "running" and self.started_at is not None:
            return max(0.0, (now - self.started_at) * 1000)
        return self.latency_ms

    def waited_ms(self, now: float) -> float:
        """Return the milliseconds from receipt to execution; `now` in monotonic seconds."""
        if self.phase in ("queued", "waiting", "asking"):
            return max(0.0, (now - self.queued_at) * 1000)
        return self.queued_ms + self.approval_ms

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event of this call, or the end of its run; return False if it changed nothing."""
        event = envelope.event
        match event:
            case ToolQueued():
                self._queued(event, envelope)
            case ToolStarted():
                self._started(event, envelope)
            case ToolEnded():
                self._ended(event, envelope)
            case ToolBlockedOn(what=what, on=on):
                return self._blocked(what, on)
            case ToolOutput() | ToolProgress() | ToolUpdated() | ToolData():
                return self._apply_progress(event)
            case RunEnded():
                return self._abandoned(envelope)
            case _:
                return self._apply_decision(event)
        return True

    # --- its life -----------------------------------------------------------------------------------------------------

    def _queued(self, event: ToolQueued, envelope: Envelope) -> None:
        self.origin = envelope.origin
        self.name, self.index, self.group, self.safe = event.name, event.index, event.group, event.safe
        self.args, self.summary = event.args_raw, event.summary
        self.queued_at = envelope.mono

    def _blocked(self, what: BlockedOn, on: tuple[str, ...]) -> bool:
        if self.phase in ("running", "ended"):
            return False
        self.waits_for, self.waits_on = what, on
        self.phase = "asking" if what == "approval" else "waiting"
        return True

    def _started(self, event: ToolStarted, envelope: Envelope) -> None:
        if event.args != self.args:
            self.args_asked = self.args
        self.args = event.args
        self.name = event.name
        self.summary = event.summary or self.summary
        self.preview = event.preview or self.preview
        self.read_only, self.timeout_s, self.attempt = event.read_only, event.timeout_s, event.attempt
        self.took_over = event.adopted_from is not None
        self.phase, self.waits_for, self.waits_on = "running", None, ()
        self.started_at = envelope.mono

    def _apply_progress(self, event: _TailEvent) -> bool:
        """Apply partial output of a running call; ignore it after the call has ended."""
        if self.ended:
            return False
        match event:
            case ToolOutput():
                self.output_cut = self.output_cut or len(self.output) + len(event.chunk) > LIVE_LIMIT
                self.output = (self.output + event.chunk[-LIVE_LIMIT:])[-LIVE_LIMIT:]
                self.output_bytes = max(self.output_bytes, event.bytes_total)
            case ToolProgress():
                self.progress, self.fraction = event.text, event.fraction
            case ToolUpdated():
                self.partial = event.partial.text[-LIVE_LIMIT:]
            case ToolData():
                self.data = (*self.data, (event.kind, event.data))[-DATA_LIMIT:]
        return True

    def _ended(self, event: ToolEnded, envelope: Envelope) -> None:
        self.name = event.name
        self.phase, self.status, self.is_error = "ended", event.status, event.is_error
        self.waits_for, self.waits_on, self.progress, self.fraction = None, (), "", None
        self.latency_ms, self.queued_ms, self.approval_ms = event.latency_ms, event.queued_ms, event.approval_ms
        self.result = fitted(text_of(event.content))
        self.details, self.size_bytes, self.truncated = event.details, event.size_bytes, event.truncated
        self.is_compared = "files_changed" in (event.details or {})
        self.persisted_path, self.child_run_id = event.persisted_path, event.child_run_id or self.child_run_id
        self.error_kind, self.traceback = event.error_kind, event.traceback
        self.metrics = tuple((name, metric.value) for name, metric in event.metrics.items())
        self.ended_at = envelope.mono
        self.partial = ""
        if event.status == "ok":
            self.output = ""

    def _abandoned(self, envelope: Envelope) -> bool:
        """End the call with its run, even if no event reported its end."""
        if self.ended:
            return False
        self.phase, self.status, self.is_error = "ended", "interrupted", True
        self.waits_for, self.waits_on, self.ended_at = None, (), envelope.mono
        if self.started_at is not None:
            self.latency_ms = max(0.0, (envelope.mono - self.started_at) * 1000)
        return True

    # --- who decided --------------------------------------------------------------------------------------------------

    def _apply_decision(self, event: AgentEvent) -> bool:
        match event:
            case PermissionDecided():
                self.decision = event
            case ApprovalRequested():
                self._asked(event)
            case ApprovalResolved():
                self.resolution = event
                if self.phase == "asking":
                    self.phase, self.waits_for = "queued", None
            case HookStarted(event=name, name=hook):
                self.hooks = (*self.hooks, HookRun(name, hook, "asked"))
            case HookEnded():
                self._hook_answered(HookRun(event.event, event.name, event.action, event.reason, event.ms))
            case HookFailed():
                action = "timed out" if event.timed_out else "failed"
                self._hook_answered(HookRun(event.event, event.name, action, event.error))
            case FileChanged():
                self.changed_files += 1
                if len(self.changes) < CHANGES_LIMIT:
                    self.changes.append(FileChange.of(event))
            case SubagentStarted():
                self.agent, self.child_run_id = event.agent, event.child_run_id
            case SubagentEnded():
                self.progress = event.status
            case _:
                return False
        return True

    def _asked(self, request: ApprovalRequest) -> None:
        self.request, self.resolution = request, None
        self.preview = request.preview or self.preview
        self.summary = self.summary or request.summary
        if self.phase not in ("running", "ended"):
            self.phase, self.waits_for = "asking", "approval"

    def _hook_answered(self, run: HookRun) -> None:
        """Replace the hook's question by its answer."""
        for place, asked in enumerate(self.hooks):
            if asked.action == "asked" and (asked.event, asked.name) == (run.event, run.name):
                self.hooks = (*self.hooks[:place], run, *self.hooks[place + 1 :])
                return
        self.hooks = (*self.hooks, run)


def call_of(event: AgentEvent) -> str | None:
    """Return the id of the call that an event belongs to; None if it belongs to none."""
    match event:
        case (
            ToolQueued(call_id=call_id)
            | ToolBlockedOn(call_id=call_id)
            | ToolStarted(call_id=call_id)
            | ToolUpdated(call_id=call_id)
            | ToolProgress(call_id=call_id)
            | ToolOutput(call_id=call_id)
            | ToolData(call_id=call_id)
            | ToolEnded(call_id=call_id)
            | HookStarted(call_id=call_id)
            | HookEnded(call_id=call_id)
            | HookFailed(call_id=call_id)
            | PermissionDecided(call_id=call_id)
            | ApprovalRequested(call_id=call_id)
            | ApprovalResolved(call_id=call_id)
            | SubagentStarted(call_id=call_id)
            | SubagentEnded(call_id=call_id)
            | FileChanged(call_id=call_id)
        ):
            return call_id
        case _:
            return None


def text_of(content: tuple[UserBlock, ...]) -> str:
    """Return the blocks of a result as text; an image is named by its type and size."""
    return "\n".join(_image_words(block) if isinstance(block, ImageBlock) else block.text for block in content)


def fitted(text: str, limit: int = RESULT_LIMIT) -> str:
    """Return head and tail of a text longer than `limit` characters, with the number of omitted ones between them."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit // 2) :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters not kept here …\n{tail}"


def _what_of(event: FileChanged) -> str:
    """Return what happened to a file beside added and removed lines."""
    before, after = event.before, event.after
    fact = "" if event.change == "modified" else event.change
    if before is not None and after is not None and before.mode != after.mode:
        fact = f"mode {before.mode:04o} → {after.mode:04o}"
    same = before is not None and after is not None and before.digest == after.digest != ""
    if event.diff or same:
        return fact
    sizes = [bytes_text(state.size) for state in (before, after) if state is not None]
    return ", ".join(filter(None, (fact, " → ".join(sizes))))


def _image_words(block: ImageBlock) -> str:
    return f"[image {block.media_type}, {len(block.data) * 3 // 4:,} bytes]"
