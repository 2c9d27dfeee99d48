"""Records of a call, one for each subject, the kind of its tool, and words for changes in a trial.

Text is kept as it arrived, and sanitised when it is drawn.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal
from weakref import WeakValueDictionary

from tui_agent.protocol.amounts import count_text
from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.events import ApprovalResolved, FileChanged, PermissionDecided, ToolStatus
from tui_agent.protocol.messages import JsonObject
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import Preview
from tui_agent.protocol.trial import REPOSITORY, Place, ProposedChanges

ToolKind = Literal["read", "change", "run", "agent", "other"]
"""A tool reads, changes files, runs commands, starts a sub-agent, or does something else."""

TOOL_KINDS: tuple[ToolKind, ...] = ("read", "change", "run", "agent", "other")

_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("read", "grep", "glob", "ls", "lookup", "fetch", "web_search"), "read"),
    **dict.fromkeys(("write", "edit"), "change"),
    "bash": "run",
    "agent": "agent",
}


def tool_kind(name: str) -> ToolKind:
    """Return the kind of a tool; `other` for one that is not ours."""
    return _KINDS.get(name, "other")


CallKind = Literal[
    "waiting", "running", "background", "needs_you", "done", "failed", "denied", "skipped", "cancelled", "unknown"
]
"""Kinds of calls that the panel counts and filters."""

_ENDS: dict[CallKind, tuple[ToolStatus, ...]] = {
    "done": ("ok", "overridden"),
    "failed": ("error", "timeout", "invalid", "not_found", "output_limit"),
    "denied": ("denied_policy", "denied_user", "denied_hook", "denied_guardrail", "withheld"),
    "skipped": ("skipped_steering", "skipped_hook", "skipped_user"),
    "cancelled": ("cancelled",),
    "unknown": ("interrupted",),
}
END_KINDS: dict[ToolStatus, CallKind] = {status: kind for kind, statuses in _ENDS.items() for status in statuses}
"""Kind of a finished call."""


@dataclass(slots=True)
class CallArguments:
    """Arguments of a call."""

    effective: JsonObject = field(default_factory=dict[str, object])
    """Arguments of the model until the call starts, then those it runs with."""
    asked: JsonObject | None = None
    """Arguments of the model, if others were run."""


@dataclass(slots=True)
class CallTiming:
    """Times of a call. Moments are monotonic seconds."""

    queued_at: float = 0.0
    asked_at: float | None = None
    """Moment of the newest question about the call."""
    started_at: float | None = None
    latency_ms: float = 0.0
    queued_ms: float = 0.0
    approval_ms: float = 0.0
    """Milliseconds spent waiting for the user."""
    timeout_s: float | None = None
    attempt: int = 1


@dataclass(slots=True)
class LiveOutput:
    """Output of a running call. What its result contains is removed when it ends."""

    text: str = ""
    """Newest output, at most `LIVE_LIMIT` characters."""
    is_cut: bool = False
    """True if earlier output was dropped."""
    bytes_total: int = 0
    partial: str = ""
    """Newest partial result."""
    progress: str = ""


@dataclass(slots=True)
class CallOutcome:
    """Result of a finished call."""

    result: str = ""
    details: JsonObject | None = None
    size_bytes: int = 0
    persisted_path: str | None = None
    """File with the whole output."""
    error_kind: str | None = None
    traceback: str | None = None
    metrics: tuple[tuple[str, float | str | bool], ...] = ()
    took_over: bool = False
    """True if the result is that of the same call in an interrupted response, so that the tool ran once."""
    job: str = ""
    """Id of the background command that the call became, while that runs."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that the call changed."""

    path: str
    """Path relative to the working directory if that is known, else absolute."""
    diff: Diff = NO_DIFF
    """Empty if there is none."""
    added: int = 0
    """Number of lines."""
    removed: int = 0
    fact: str = ""
    """Its change beside the lines: a new or deleted file, or another mode."""
    sizes: tuple[int, ...] = ()
    """Bytes before and after, as far as it existed; empty if its lines say enough."""

    @classmethod
    def of(cls, event: FileChanged) -> "FileChange":
        """Return the change in an event."""
        before, after = event.before, event.after
        fact = "" if event.change == "modified" else event.change
        if before is not None and after is not None and before.mode != after.mode:
            fact = f"mode {before.mode:04o} → {after.mode:04o}"
        same = before is not None and after is not None and before.digest == after.digest != ""
        sizes = () if event.diff or same else tuple(state.size for state in (before, after) if state is not None)
        return cls(event.path, event.diff, event.added, event.removed, fact, sizes)


@dataclass(slots=True)
class CallTrial:
    """Trial of a command: its place, what it changed there, and what became of that."""

    place: Place = "outside"
    proposed: ProposedChanges | None = None
    kept: tuple[str, ...] = ()
    kept_count: int = 0
    by_policy: bool = False
    """True if a rule or the mode decided what is kept."""
    discarded: tuple[str, ...] = ()
    discarded_count: int = 0
    reason: str = ""
    """Reason why changes were discarded."""

    @property
    def is_settled(self) -> bool:
        """True if changes were kept or discarded."""
        return bool(self.kept or self.kept_count or self.discarded or self.discarded_count)


@dataclass(slots=True)
class CallChanges:
    """Files that a call changed."""

    preview: Preview | None = None
    """Proposed change."""
    files: list[FileChange] = field(default_factory=list[FileChange])
    """Changed files, at most `CHANGES_LIMIT`."""
    count: int = 0
    """Number of all changed files."""
    trial: CallTrial = field(default_factory=CallTrial)


@dataclass(frozen=True, slots=True)
class HookRun:
    """One run of a hook for the call."""

    event: str
    name: str
    action: str
    """Its answer; `failed` or `timed out` without one, `asked` while it runs."""
    reason: str = ""
    ms: float = 0.0


_decisions = WeakValueDictionary[tuple[object, ...], PermissionDecided]()


def kept_decision(event: PermissionDecided) -> PermissionDecided:
    """Return a decision without its call: equal ones are kept once."""
    key = (event.decision, event.source, event.mode, event.rule, event.reason, event.parts)
    kept = _decisions.get(key)
    if kept is None:
        kept = _decisions[key] = event.model_copy(update={"call_id": ""})
    return kept


@dataclass(slots=True)
class CallApproval:
    """Decisions about a call."""

    decision: PermissionDecided | None = None
    """Decision of the policy; its `call_id` is empty."""
    request: ApprovalRequest | None = None
    """Approval request, also after it is answered."""
    resolution: ApprovalResolved | None = None
    """Answer to the request."""
    hooks: tuple[HookRun, ...] = ()


WORDS_LIMIT = 400
"""Most characters kept of one message of a sub-agent."""
MESSAGES_LIMIT = 50
"""Most messages of a sub-agent that are kept."""


@dataclass(slots=True)
class Subagent:
    """Sub-agent that a call started."""

    label: str | None = None
    tokens: int = 0
    """Tokens that it has used so far."""
    asks: int = 0
    """Number of its calls that wait for the user, those of its own sub-agents included."""
    said: tuple[tuple[int, str], ...] = ()
    """Its newest messages, at most `MESSAGES_LIMIT`: number of its calls before each, and the end of its text."""

    @property
    def words(self) -> str:
        """End of its newest message, at most `WORDS_LIMIT` characters."""
        return self.said[-1][1] if self.said else ""

    def saying(self, calls: int, text: str) -> "Subagent":
        """Return the agent with one more message, which follows so many calls."""
        return replace(self, said=(*self.said, (calls, text[-WORDS_LIMIT:]))[-MESSAGES_LIMIT:])


def lines_text(added: int, removed: int) -> str:
    """Return numbers of changed lines, such as `+12 −9`; empty if there are none."""
    return " ".join(filter(None, (f"+{added}" if added else "", f"−{removed}" if removed else "")))


def open_count(changes: ProposedChanges) -> int:
    """Return the number of changed files that can be kept."""
    return changes.count - sum(file.sort == "refused" for file in changes.files)


def changed_text(changes: ProposedChanges) -> str:
    """Return the extent of changes, such as `3 files +12 −9`, for a title; empty if none can be kept."""
    files = [file for file in changes.files if file.sort != "refused"]
    counts = lines_text(sum(file.added for file in files), sum(file.removed for file in files))
    text = _words((count_text(open_count(changes), "file"), counts)) if open_count(changes) else ""
    return " · ".join(filter(None, (text, "repository" if changes.repository else "")))


def waiting_text(changes: ProposedChanges) -> str:
    """Return what waits for an answer, such as `2 files wait`."""
    count = open_count(changes)
    if not count:
        return "the repository waits" if changes.repository else "changes wait"
    return f"{count_text(count, 'file')} {'waits' if count == 1 else 'wait'}"


def question_text(request: ApprovalRequest | None) -> str:
    """Return what waits for the user with a call, such as `2 files wait`; `needs you` if it is not changes."""
    return waiting_text(request.changes) if request is not None and request.changes is not None else "needs you"


def settled_text(changes: CallChanges) -> str:
    """Return what became of changes, such as `kept 1 of 3 files` or `discarded 3 files`; empty before that."""
    trial = changes.trial
    if not trial.is_settled:
        return ""
    total = trial.kept_count + trial.discarded_count
    if not (trial.kept or trial.kept_count):
        return f"discarded {count_text(total, 'file') if total else repository_text(trial)}"
    if trial.discarded_count or not total:
        files = f"{trial.kept_count} of {count_text(total, 'file')}" if total else ""
    else:
        counts = lines_text(sum(file.added for file in changes.files), sum(file.removed for file in changes.files))
        files = _words((count_text(total, "file"), counts))
    repository = repository_text(trial) if REPOSITORY in trial.kept else ""
    return f"kept {', '.join(filter(None, (files, repository)))}"


def repository_text(trial: CallTrial) -> str:
    """Return the changes of the repository in a few words."""
    changes = trial.proposed.repository if trial.proposed is not None else ()
    return changes[0] if len(changes) == 1 else "the repository's changes"


def _words(parts: Iterable[str]) -> str:
    return " ".join(filter(None, parts))
