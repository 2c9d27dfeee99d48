"""State of one tool call: the fold of its events, for every part of the screen that shows the call.

The ledger applies every event that `call_of` assigns to the call; nothing else changes the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, cast

from tui_agent.protocol.amounts import bytes_text
from tui_agent.protocol.diffs import NO_DIFF, Diff
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BlockedOn,
    ChangesDiscarded,
    ChangesKept,
    ChangesProposed,
    FileChanged,
    HookEnded,
    HookFailed,
    HookStarted,
    PermissionDecided,
    RunEnded,
    SessionLoaded,
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
from tui_agent.protocol.messages import DocumentBlock, FrozenModel, ImageBlock, JsonObject, UserBlock
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.protocol.tool import EFFECTS_DATA, TIME_LIMIT_DATA, Preview
from tui_agent.protocol.trial import Place
from tui_agent.ui.text.sanitiser import joined_lines

from .call_records import (
    CallApproval,
    CallArguments,
    CallChanges,
    CallKind,
    CallOutcome,
    CallTiming,
    CallTrial,
    FileChange,
    HookRun,
    LiveOutput,
    Subagent,
    kept_decision,
)

CallPhase = Literal["queued", "waiting", "asking", "running", "ended"]
"""State of a call: received, blocked, waiting for the user, executing, finished."""

PLACE_MARKS: Mapping[Place, str] = {"trial": "trial", "read_only": "read-only"}
"""Words before the summary of a call that runs behind walls."""
LIVE_LIMIT = 64 * 1024
"""Most characters of output kept while a call runs; earlier output is in its result or its file."""
RESULT_LIMIT = 128 * 1024
"""Most characters kept of a result, half from its head and half from its tail."""
CHANGES_LIMIT = 500
"""Most changed files kept for a call; others are only counted."""

_JOB_ENDS: Mapping[str, ToolStatus] = {
    "killed": "cancelled",
    "ended_with_session": "cancelled",
    "timeout": "timeout",
    "failed": "error",
    "unknown": "interrupted",
}
"""Status of a call whose background command ended in one of these ways; otherwise its exit code says it."""
_NO_OUTPUT, _NO_SUBAGENT, _NO_CHANGES = LiveOutput(), Subagent(), CallChanges()
"""Records of calls that have ended without any; never changed."""

_TailEvent = ToolOutput | ToolProgress | ToolUpdated | ToolData


@dataclass(slots=True)
class CallViewState:
    """State of one call, mutable. Changed by `apply` only."""

    call_id: str
    origin: Origin = field(default_factory=Origin)
    name: str = ""
    summary: str = ""
    """One-line summary by the tool."""
    read_only: bool = False

    phase: CallPhase = "queued"
    status: ToolStatus | None = None
    """Result status; None until the call ends."""
    waits_for: BlockedOn | None = None
    waits_on: tuple[str, ...] = ()
    """Ids of the calls it waits for."""

    arguments: CallArguments = field(default_factory=CallArguments)
    timing: CallTiming = field(default_factory=CallTiming)
    live: LiveOutput = field(default_factory=LiveOutput)
    outcome: CallOutcome = field(default_factory=CallOutcome)
    changes: CallChanges = field(default_factory=CallChanges)
    approval: CallApproval = field(default_factory=CallApproval)
    subagent: Subagent = field(default_factory=Subagent)

    @property
    def ended(self) -> bool:
        """True if the call is finished."""
        return self.phase == "ended"

    @property
    def agent_asks(self) -> bool:
        """True while a call of its sub-agent waits for the user."""
        return self.phase == "running" and self.subagent.asks > 0

    @property
    def is_discarded(self) -> bool:
        """True if the call succeeded, and all that it changed in its trial was discarded."""
        trial = self.changes.trial
        is_kept = bool(trial.kept or trial.kept_count)
        return self.status == "ok" and trial.is_settled and not is_kept

    @property
    def marked_summary(self) -> str:
        """The summary, with a mark before it while the call runs in a trial."""
        place = self.changes.trial.place
        if place in PLACE_MARKS and self.phase == "running":
            return f"{PLACE_MARKS[place]}: {self.summary}"
        return self.summary

    @property
    def diff(self) -> Diff:
        """Diffs of its changes, else of the proposed ones; empty if there are none."""
        done = Diff.joined(change.diff for change in self.changes.files)
        if done or self.changes.trial.is_settled:
            return done
        reported = (self.outcome.details or {}).get("diff")
        if isinstance(reported, str) and reported:
            return Diff(reported)
        return self.changes.preview.diff if self.changes.preview is not None else NO_DIFF

    def elapsed_ms(self, now: float) -> float:
        """Return the milliseconds of execution; `now` in monotonic seconds is used only while the call runs."""
        started_at = self.timing.started_at
        if self.phase == "running" and started_at is not None:
            return max(0.0, (now - started_at) * 1000)
        return self.timing.latency_ms

    def waited_ms(self, now: float) -> float:
        """Return the milliseconds from receipt to execution, or of a question after it; `now` in monotonic seconds."""
        if self.phase == "asking" and self.timing.started_at is not None and self.timing.asked_at is not None:
            return max(0.0, (now - self.timing.asked_at) * 1000)
        if self.phase in ("queued", "waiting", "asking"):
            return max(0.0, (now - self.timing.queued_at) * 1000)
        return self.timing.queued_ms + self.timing.approval_ms

    def apply(self, envelope: Envelope) -> bool:
        """Apply one event of this call, or the end of its run or process; return False if it changed nothing."""
        event = envelope.event
        match event:
            case ToolQueued():
                self._queued(event, envelope)
            case ToolStarted():
                self._started(event, envelope)
            case ToolEnded():
                self._ended(event)
            case ToolBlockedOn(what=what, on=on):
                return self._blocked(what, on)
            case ToolOutput() | ToolProgress() | ToolUpdated() | ToolData():
                return self._apply_progress(event)
            case RunEnded() | SessionLoaded():
                return self._abandoned(envelope)
            case ApprovalRequested():
                self._asked(event, envelope)
            case ChangesProposed() | ChangesKept() | ChangesDiscarded():
                self._apply_trial(event)
            case _:
                return self._apply_decision(event)
        return True

    # --- its life -----------------------------------------------------------------------------------------------------

    def _queued(self, event: ToolQueued, envelope: Envelope) -> None:
        self.origin = envelope.origin
        self.name, self.summary = event.name, joined_lines(event.summary)
        self.arguments.effective = event.args_raw
        self.timing.queued_at = envelope.mono

    def _blocked(self, what: BlockedOn, on: tuple[str, ...]) -> bool:
        # A late event must not put a call back into the queue.
        if self.phase in ("running", "ended"):
            return False
        self.waits_for, self.waits_on = what, on
        self.phase = "asking" if what == "approval" else "waiting"
        return True

    def _started(self, event: ToolStarted, envelope: Envelope) -> None:
        arguments, timing = self.arguments, self.timing
        if event.args != arguments.effective:
            # A hook or the user has changed what the model asked for.
            arguments.asked = arguments.effective
        arguments.effective = event.args
        self.name, self.read_only = event.name, event.read_only
        self.summary = joined_lines(event.summary) or self.summary
        self._preview(event.preview)
        if event.place != "outside":
            self.own_changes().trial = CallTrial(event.place)
        self.outcome.took_over = event.adopted_from is not None
        self.phase, self.waits_for, self.waits_on = "running", None, ()
        timing.started_at, timing.timeout_s, timing.attempt = envelope.mono, event.timeout_s, event.attempt

    def _apply_progress(self, event: _TailEvent) -> bool:
        """Apply partial output of a running call; after its end, only what was found out about its effects."""
        if isinstance(event, ToolData) and event.kind == EFFECTS_DATA:
            return self._apply_effects(event.data)
        if self.ended:
            return False
        live = self.live
        match event:
            case ToolOutput():
                live.is_cut = live.is_cut or len(live.text) + len(event.chunk) > LIVE_LIMIT
                # Cut before it is joined, because a chunk may be much longer than what is kept.
                live.text = (live.text + event.chunk[-LIVE_LIMIT:])[-LIVE_LIMIT:]
                live.bytes_total = max(live.bytes_total, event.bytes_total)
            case ToolProgress():
                live.progress = event.text
            case ToolUpdated():
                live.partial = event.partial.text[-LIVE_LIMIT:]
            case ToolData(kind=kind, data={"timeout_s": int() | float() as limit}) if kind == TIME_LIMIT_DATA:
                self.timing.timeout_s = limit
            case ToolData():
                return False
        return True

    def _ended(self, event: ToolEnded) -> None:
        self.name = event.name
        self.phase, self.status = "ended", event.status
        self.waits_for, self.waits_on = None, ()
        timing, live = self.timing, self.live
        timing.latency_ms, timing.queued_ms, timing.approval_ms = event.latency_ms, event.queued_ms, event.approval_ms
        live.partial = live.progress = ""
        # The result of a success repeats it; that of a failure may lack the output before the error.
        if event.status == "ok":
            live.text = ""
        self.outcome = CallOutcome(
            result=fitted(text_of(event.content)),
            details=event.details,
            size_bytes=event.size_bytes,
            persisted_path=event.persisted_path,
            error_kind=event.error_kind,
            traceback=event.traceback,
            metrics=tuple((name, metric.value) for name, metric in event.metrics.items()),
            took_over=self.outcome.took_over,
        )
        self._share_empty()

    def _apply_effects(self, found: JsonObject) -> bool:
        """Add the effects to the details of the result."""
        details = (self.outcome.details or {}) | found
        if mark := details.pop("mark", None):
            details["outcome"] = " · ".join(filter(None, (str(mark), str(details.get("outcome", "")))))
        self.outcome.details = details
        return True

    def _abandoned(self, envelope: Envelope) -> bool:
        """End the call with its run, even if no event reported its end."""
        if self.ended:
            return False
        self.phase, self.status = "ended", "interrupted"
        self.waits_for, self.waits_on = None, ()
        timing = self.timing
        if isinstance(envelope.event, SessionLoaded):
            return True  # The clock of another process cannot say how long it ran.
        if timing.started_at is not None:
            timing.latency_ms = max(0.0, (envelope.mono - timing.started_at) * 1000)
        return True

    def end_job(self, event: BackgroundEnded) -> None:
        """End the background command that the call became: from now on its state is that of the command."""
        self.outcome.job = ""
        code = event.code or 0
        self.status = _JOB_ENDS.get(event.status, "error" if code else "ok")
        ending = f"signal {-code}" if code < 0 else f"exit {code}" if code else ""
        words = " · ".join(filter(None, (ending if self.status == "error" else "", "ran in the background")))
        self.outcome.details = (self.outcome.details or {}) | {"outcome": words}

    def own_changes(self) -> CallChanges:
        """Return the call's changes, which may then be changed."""
        if self.changes is _NO_CHANGES:
            self.changes = CallChanges()
        return self.changes

    def _preview(self, preview: Preview | None) -> None:
        if preview is not None:
            self.own_changes().preview = preview

    def _share_empty(self) -> None:
        """Share the records without content with all calls that have ended: a long session has thousands."""
        if self.live == _NO_OUTPUT:
            self.live = _NO_OUTPUT
        if self.subagent == _NO_SUBAGENT:
            self.subagent = _NO_SUBAGENT
        # Changes of an adopted execution belong to two calls.
        if self.changes == _NO_CHANGES and not self.outcome.took_over:
            self.changes = _NO_CHANGES

    # --- who decided --------------------------------------------------------------------------------------------------

    def _apply_decision(self, event: AgentEvent) -> bool:
        match event:
            case PermissionDecided():
                self.approval.decision = kept_decision(event)
            case ApprovalResolved():
                self.approval.resolution = event
                # A question about the changes of a trial comes after the start.
                if self.phase == "asking":
                    self.phase, self.waits_for = "queued" if self.timing.started_at is None else "running", None
            case HookStarted(event=name, name=hook):
                self.approval.hooks += (HookRun(name, hook, "asked"),)
            case HookEnded():
                self._hook_answered(HookRun(event.event, event.name, event.action, event.reason, event.ms))
            case HookFailed():
                action = "timed out" if event.timed_out else "failed"
                self._hook_answered(HookRun(event.event, event.name, action, event.error))
            case FileChanged():
                changes = self.own_changes()
                changes.count += 1
                if len(changes.files) < CHANGES_LIMIT:
                    changes.files.append(FileChange.of(event))
            case SubagentStarted():
                self.subagent = Subagent(event.agent)
            case SubagentEnded():
                self.live = replace(self.live, progress=event.status)
            case _:
                return False
        return True

    def _apply_trial(self, event: ChangesProposed | ChangesKept | ChangesDiscarded) -> None:
        trial = self.own_changes().trial
        match event:
            case ChangesProposed():
                self.own_changes().trial = CallTrial(trial.place, event.changes)
            case ChangesKept():
                trial.kept, trial.kept_count, trial.by_policy = event.paths, event.count, event.by == "policy"
            case ChangesDiscarded():
                trial.discarded, trial.discarded_count, trial.reason = event.paths, event.count, event.reason

    def _asked(self, request: ApprovalRequest, envelope: Envelope) -> None:
        self.approval.request, self.approval.resolution = request, None
        self.timing.asked_at = envelope.mono
        self._preview(request.preview)
        self.summary = self.summary or joined_lines(request.summary)
        if self.phase != "ended" and (self.phase != "running" or request.changes is not None):
            self.phase, self.waits_for = "asking", "approval"

    def _hook_answered(self, run: HookRun) -> None:
        hooks = self.approval.hooks
        for place, asked in enumerate(hooks):
            if asked.action == "asked" and (asked.event, asked.name) == (run.event, run.name):
                self.approval.hooks = (*hooks[:place], run, *hooks[place + 1 :])
                return
        self.approval.hooks = (*hooks, run)


@dataclass(slots=True)
class LedgerCall:
    """One call and its position in the session."""

    view: CallViewState
    number: int
    """Number from 1, in the order of the first `tool.queued` of each call."""
    place: int
    """Index in the ledger."""
    kind: CallKind = "waiting"
    is_resumed: bool = False
    """True if the call was queued again when its session was resumed."""
    parent: int | None = None
    """Index of the call that started its agent; None for calls of the root agent."""
    children: list[int] | tuple[()] = ()
    """Indexes of the calls of the sub-agent that it started."""


CALL_EVENTS: frozenset[type[FrozenModel]] = frozenset(
    (
        *(ToolQueued, ToolBlockedOn, ToolStarted, ToolUpdated, ToolProgress, ToolOutput, ToolData, ToolEnded),
        *(HookStarted, HookEnded, HookFailed, PermissionDecided, ApprovalRequested, ApprovalResolved),
        *(SubagentStarted, SubagentEnded, FileChanged, ChangesProposed, ChangesKept, ChangesDiscarded),
    )
)
"""Events of one call, which they name as `call_id`."""


def call_of(event: AgentEvent) -> str | None:
    """Return the id of the call that an event belongs to; None if it belongs to none."""
    # A look at the class: a long session has a hundred thousand events, and most belong to calls.
    return cast(ToolEnded, event).call_id if type(event) in CALL_EVENTS else None


def text_of(content: tuple[UserBlock, ...]) -> str:
    """Return the blocks of a result as text; an image is named by its type and size, a document by its name."""
    return "\n".join(map(_block_words, content))


def fitted(text: str, limit: int = RESULT_LIMIT) -> str:
    """Return head and tail of a text longer than `limit` characters, with the number of omitted ones between them."""
    if len(text) <= limit:
        return text
    head, tail = text[: limit // 2], text[-(limit // 2) :]
    return f"{head}\n… {len(text) - len(head) - len(tail):,} characters not kept here …\n{tail}"


def _block_words(block: UserBlock) -> str:
    match block:
        case ImageBlock():
            return f"[image {block.media_type}, {bytes_text(len(block.data) * 3 // 4)}]"
        case DocumentBlock():
            return block.label
        case _:
            return block.text
