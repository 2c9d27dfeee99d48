"""State that a run left open when its program ended, and the events that close it, so that no old call seems to run.

Nothing runs again. A resumed session publishes the closing events: so journal, screen and conversation agree.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    BackgroundEnded,
    BackgroundStarted,
    ChangesDiscarded,
    ChangesKept,
    ChangesProposed,
    CompactionEnded,
    CompactionStarted,
    HookEnded,
    HookFailed,
    HookStarted,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    RunEnded,
    RunStarted,
    StatusChanged,
    StepEnded,
    StepStarted,
    SubagentEnded,
    SubagentStarted,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    TurnEnded,
    TurnStarted,
)
from tui_agent.protocol.messages import TextBlock, Usage, UserMessage
from tui_agent.protocol.past_session import Fate, events_of
from tui_agent.protocol.trial import REPOSITORY

from .history_fold import ENDED_EARLY, ROOT_AGENT, HistoryFold, UnansweredCall, fold_history, text_of

_RERUN_NOTE = TextBlock(text="The program ended before the question about this call was answered; it is resumed.")


@dataclass(frozen=True, slots=True)
class InterruptedCall:
    """A call of the interrupted run."""

    call_id: str
    name: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class ClosingEvent:
    """An event to publish on resume, with its origin."""

    event: AgentEvent
    origin: Origin


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """State that was left open; all fields are empty if the last run ended normally."""

    calls: tuple[InterruptedCall, ...] = ()
    """Calls without an end or without a result, as they were queued."""
    closing: tuple[ClosingEvent, ...] = ()
    """Events that close everything, inner scopes first."""
    notice: tuple[ClosingEvent, ...] = ()
    """Events of the notices about an interrupted rewind or response, to publish after all others."""

    def __str__(self) -> str:
        words: dict[Fate, str] = {
            "not_started": "not started",
            "in_trial": "changes not kept",
            "outcome_unknown": "outcome unknown",
            "finished": "finished",
        }
        ended = [one.event for one in self.closing if not isinstance(one.event, StatusChanged)]
        if ended and all(isinstance(event, ChangesDiscarded) for event in ended):
            return f"the changes of {len(ended)} commands that waited for an answer were discarded"
        calls = ", ".join(f"{call.name} {words[call.fate]}" for call in self.calls)
        return f"the last run was interrupted ({calls})" if calls else "the last run was interrupted"


def unfinished(
    envelopes: Sequence[Envelope],
    reopened: Collection[str] = (),
    root: HistoryFold | None = None,
    scopes: "OpenScopes | None" = None,
) -> InterruptedRun:
    """Find the state that a journal leaves open. With the closing events appended, a journal leaves nothing open.

    Args:
        reopened: ids of the root agent's calls that are resumed at once: their end says so, and they get no result
            here.
        root: the root agent's conversation, if it is already known.
        scopes: the open scopes, if they are already known and nothing is reopened.
    """
    ledger = scopes
    if ledger is None:
        ledger = OpenScopes(frozenset(reopened))
        for envelope in events_of(envelopes, LEDGERED_EVENTS):
            ledger.apply(envelope)
    root = root or fold_history(envelopes)
    agents = {run.origin.agent_id for run in ledger.runs.values()} - {ROOT_AGENT}
    unanswered = {agent_id: fold_history(envelopes, agent_id).unanswered() for agent_id in sorted(agents)}
    unanswered[ROOT_AGENT] = tuple(entry for entry in root.unanswered() if entry.call.id not in ledger.reopened)
    origin = Origin(session_id=envelopes[-1].origin.session_id if envelopes else "")
    notices = root.notices()
    begun = ledger.open_messages() & {notice.id for notice in notices}
    closing = ledger.closing(unanswered, origin, begun)
    return InterruptedRun(tuple(ledger.calls(unanswered)), tuple(closing), tuple(_notices(notices, begun, origin)))


_Key = tuple[object, ...]
_Scope = tuple[str, ...]
_Unanswered = Mapping[str, Sequence[UnansweredCall]]
"""Calls without a result, by agent."""

_RANKS = ("approval", "hook", "subagent", "call", "message", "result", "compaction", "batch", "step", "turn")
"""Order in which the open scopes of one run are closed, inner ones first."""

_OPENING: Mapping[type[AgentEvent], _Scope] = {
    ApprovalRequested: ("approval", "request_id"),
    HookStarted: ("hook", "event", "name", "call_id"),
    SubagentStarted: ("subagent", "child_run_id"),
    ToolQueued: ("call", "call_id"),
    MessageStarted: ("message", "message_id"),
    CompactionStarted: ("compaction",),
    ToolBatchStarted: ("batch", "batch_id"),
    StepStarted: ("step", "index"),
    TurnStarted: ("turn", "index"),
}
"""Scope that each event opens in a run, with the fields that identify it."""

_CLOSING: Mapping[type[AgentEvent], _Scope] = {
    ApprovalResolved: ("approval", "request_id"),
    HookEnded: ("hook", "event", "name", "call_id"),
    HookFailed: ("hook", "event", "name", "call_id"),
    SubagentEnded: ("subagent", "child_run_id"),
    ToolEnded: ("call", "call_id"),
    MessageEnded: ("message", "message_id"),
    MessageDiscarded: ("message", "message_id"),
    CompactionEnded: ("compaction",),
    ToolBatchEnded: ("batch", "batch_id"),
    StepEnded: ("step", "index"),
    TurnEnded: ("turn", "index"),
}
"""Scope that each event closes, with the fields that identify it."""

LEDGERED_EVENTS = frozenset(
    (
        *(*_OPENING, *_CLOSING, RunStarted, RunEnded, ToolStarted, BackgroundStarted, BackgroundEnded),
        *(ChangesProposed, ChangesKept, ChangesDiscarded),
    )
)
"""Events that matter here; the others open and close nothing."""

_COUNTED = frozenset((RunStarted, StepStarted, StepEnded, ToolQueued, ToolBatchStarted))
"""Events that change a run beyond its scopes."""


@dataclass(slots=True)
class _Changes:
    """Proposed changes that were not all kept or discarded."""

    origin: Origin
    layer: str
    files: dict[str, int]
    """Number of files for each path that is left."""
    is_decided: bool = False
    """True if a part was kept, so that the rest waits for no one."""

    @classmethod
    def of(cls, event: ChangesProposed, origin: Origin) -> "_Changes":
        changes = event.changes
        files = {one.path: 1 for one in changes.files} | {one.path: one.files for one in changes.trees}
        return cls(origin, changes.layer, files | ({REPOSITORY: 0} if changes.repository else {}))

    def keep(self, paths: Iterable[str]) -> None:
        """Take the kept paths away."""
        self.is_decided = True
        self.files = {path: files for path, files in self.files.items() if path not in set(paths)}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self.files)

    @property
    def count(self) -> int:
        return sum(self.files.values())


@dataclass(slots=True)
class _Run:
    """Open scopes and totals of one run; `run_id` None is for events outside any run."""

    origin: Origin
    place: int
    """Number of runs that started before."""
    reopened: frozenset[str] = frozenset()
    """Calls that are resumed at once."""
    waiting: Mapping[str, _Changes] = field(default_factory=dict[str, _Changes])
    """Proposed changes of all runs that were not all kept or discarded, by call."""
    in_trial: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Calls of all runs that started and did not end; True: in a trial, and none of their changes were kept."""
    ended: dict[str, ToolEnded] = field(default_factory=dict[str, ToolEnded])
    """Ends of the calls of the agent's last message, in all runs, by call."""
    started: bool = False
    open: dict[_Key, Envelope] = field(default_factory=dict[_Key, Envelope])
    batch_calls: list[str] = field(default_factory=list[str])
    """Calls queued since the batch began."""
    steps: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def apply(self, envelope: Envelope) -> None:
        """Apply the next event of this run."""
        if type(envelope.event) in _COUNTED:
            self._count(envelope)
        if (opened := _key_of(envelope.event, _OPENING)) is not None:
            self.open[opened] = envelope
        elif (closed := _key_of(envelope.event, _CLOSING)) is not None:
            self.open.pop(closed, None)

    def _count(self, envelope: Envelope) -> None:
        match envelope.event:
            case RunStarted():
                self.started = True
                self.origin = envelope.origin
            case StepStarted():
                self.steps += 1
            case StepEnded(usage=usage):
                self.usage = self.usage + usage
            case ToolQueued(call_id=call_id):
                self.tool_calls += 1
                self.batch_calls.append(call_id)
            case ToolBatchStarted():
                self.batch_calls = []
            case _:
                pass

    def waits(self, call_id: str) -> bool:
        """Return True if someone may still decide on the changes of a call."""
        return call_id in self.waiting and not self.waiting[call_id].is_decided

    def fate_of(self, queued: ToolQueued) -> Fate:
        """Return the fate of a call that did not end."""
        if self.waits(queued.call_id) or self.in_trial.get(queued.call_id):
            return "in_trial"
        return "outcome_unknown" if queued.call_id in self.in_trial else "not_started"

    def closing(self, unanswered: Sequence[UnansweredCall], begun_notices: Collection[str]) -> list[ClosingEvent]:
        """Return the events that close everything, the run itself last."""
        begun = {("message", entry.result.id) for entry in unanswered if entry.begun}
        begun |= {("message", message_id) for message_id in begun_notices}
        self.batch_calls += [entry.call.id for entry in unanswered if not entry.queued]
        ranked = [
            (_RANKS.index(str(key[0])), self._closed(envelope))
            for key, envelope in self.open.items()
            if key not in begun
        ]
        ranked += [(_RANKS.index("call"), event) for event in _unpublished_calls(unanswered, self.origin)]
        ranked += [(_RANKS.index("result"), event) for event in _results(unanswered, self.origin)]
        events = [event for _, event in sorted(ranked, key=lambda pair: pair[0])]
        if self.started:
            events.append(ClosingEvent(self._run_ended(), replace(self.origin, turn=None, step=None)))
        return events

    def _closed(self, envelope: Envelope) -> ClosingEvent:
        match envelope.event:
            case ToolQueued(call_id=call_id) if call_id in self.ended:
                # It ended in an earlier run, and a resume was about to say so again.
                closed = self.ended[call_id].model_copy(update={"status": "overridden", "latency_ms": 0.0})
            case ToolQueued() as queued:
                fate = self.fate_of(queued)
                closed = _ended_call(queued.call_id, queued.name, queued.index, fate)
                if queued.call_id in self.reopened and (fate == "not_started" or self.waits(queued.call_id)):
                    closed = closed.model_copy(
                        update={"content": (_RERUN_NOTE,), "status": "cancelled", "error_kind": ASKED_AGAIN}
                    )
            case ApprovalRequested() as request if request.call_id in self.reopened:
                closed = _closing_of(request).model_copy(update={"note": ASKED_AGAIN})
            case ToolBatchStarted() as batch:
                closed = ToolBatchEnded(
                    batch_id=batch.batch_id,
                    strategy=batch.strategy,
                    call_ids=tuple(self.batch_calls),
                    total_ms=0.0,
                    busy_ms=0.0,
                )
            case event:
                closed = _closing_of(event)
        return ClosingEvent(closed, envelope.origin)

    def _run_ended(self) -> RunEnded:
        return RunEnded(
            reason="aborted",
            error=f"{ENDED_EARLY} during this run",
            usage=self.usage,
            steps=self.steps,
            tool_calls=self.tool_calls,
        )


@dataclass(slots=True)
class OpenScopes:
    """All open scopes, by run."""

    reopened: frozenset[str] = frozenset()
    runs: dict[str | None, _Run] = field(default_factory=dict[str | None, _Run])
    background: dict[str, Envelope] = field(default_factory=dict[str, Envelope])
    waiting: dict[str, _Changes] = field(default_factory=dict[str, _Changes])
    """Proposed changes that were not all kept or discarded, by call."""
    in_trial: dict[str, bool] = field(default_factory=dict[str, bool])
    """Calls that started and did not end; True: in a trial, and none of their changes were kept."""
    ended: dict[str, dict[str, ToolEnded]] = field(default_factory=dict[str, dict[str, ToolEnded]])
    """Ends of the calls of each agent's last message."""
    layers: dict[str, str] = field(default_factory=dict[str, str])
    """Ids of the calls that made the layers of others, by these."""
    begun: int = 0

    def apply(self, envelope: Envelope) -> None:
        """Apply the next event."""
        run_id = envelope.origin.run_id
        ended = self.ended.setdefault(envelope.origin.agent_id, {})
        self._follow_call(envelope.event, ended)
        match envelope.event:
            case BackgroundStarted(task_id=task_id):
                self.background[task_id] = envelope
            case BackgroundEnded(task_id=task_id):
                self.background.pop(task_id, None)
            case ChangesProposed(call_id=call_id) as proposed:
                self.waiting[call_id] = _Changes.of(proposed, envelope.origin)
            case ChangesDiscarded(call_id=call_id):
                self.waiting.pop(call_id, None)
            case ChangesKept(call_id=call_id, paths=paths):
                if call_id in self.waiting:
                    self.waiting[call_id].keep(paths)
            case RunEnded():
                self.runs.pop(run_id, None)
            case event if run_id in self.runs or isinstance(event, RunStarted) or _key_of(event, _OPENING):
                if run_id not in self.runs:
                    self.runs[run_id] = _Run(
                        envelope.origin, self.begun, self.reopened, self.waiting, self.in_trial, ended
                    )
                    self.begun += 1
                self.runs[run_id].apply(envelope)
            case _:
                pass

    def _follow_call(self, event: AgentEvent, ended: dict[str, ToolEnded]) -> None:
        """Follow a call from its start to its end, over all the runs that resume it."""
        match event:
            case MessageStarted(role="assistant"):
                ended.clear()
            case ToolStarted(call_id=call_id):
                self.in_trial[call_id] = event.place != "outside"
                if event.adopted_from:
                    self.layers[call_id] = event.adopted_from
            case ChangesKept(call_id=call_id) if call_id in self.in_trial:
                self.in_trial[call_id] = False
            case ToolEnded(call_id=call_id):
                # The end of a call with an unknown outcome is made up.
                if event.status != "interrupted":
                    self.in_trial.pop(call_id, None)
                if event.status != "interrupted" and event.error_kind not in (NOT_BEGUN, ASKED_AGAIN):
                    ended[call_id] = event
                # Long lists of paths are cut, but the call has settled all.
                if call_id in self.waiting and self.waiting[call_id].is_decided:
                    del self.waiting[call_id]
            case _:
                pass

    def calls(self, unanswered: _Unanswered) -> Iterable[InterruptedCall]:
        """Yield the calls without an end, then those without a result that ended or were never queued."""
        told: set[str] = set()
        for run in self.runs.values():
            for envelope in run.open.values():
                if isinstance(envelope.event, ToolQueued):
                    told.add(envelope.event.call_id)
                    yield InterruptedCall(envelope.event.call_id, envelope.event.name, run.fate_of(envelope.event))
        for entry in chain.from_iterable(unanswered.values()):
            if entry.call.id not in told:
                yield InterruptedCall(entry.call.id, entry.call.name, entry.fate)

    def open_messages(self) -> set[str]:
        """Return the ids of the messages without an end."""
        keys = chain.from_iterable(run.open for run in self.runs.values())
        return {str(key[1]) for key in keys if key[0] == "message"}

    def closing(self, unanswered: _Unanswered, session: Origin, begun_notices: Collection[str]) -> list[ClosingEvent]:
        """Return the events that close every run, children before their parents, then scopes outside any run.

        Args:
            session: origin of events outside any run.
            begun_notices: ids of messages that the notices of this resume end.
        """
        homes = {
            run.origin.agent_id: run for run in sorted(self.runs.values(), key=lambda run: (run.started, run.place))
        }
        events: list[ClosingEvent] = list(self._discarded())
        for run in sorted(self.runs.values(), key=lambda run: (-run.origin.depth, -run.place)):
            agent_id = run.origin.agent_id
            events += run.closing(unanswered[agent_id] if run is homes[agent_id] else (), begun_notices)
        if ROOT_AGENT not in homes:
            events += [*_unpublished_calls(unanswered[ROOT_AGENT], session), *_results(unanswered[ROOT_AGENT], session)]
        for envelope in self.background.values():
            events.append(ClosingEvent(_closing_of(envelope.event), envelope.origin))
        # The screen would otherwise still show what the interrupted run did last.
        return [*events, ClosingEvent(StatusChanged(status="idle"), session)] if events else []

    def _discarded(self) -> Iterable[ClosingEvent]:
        """Yield the ends of changes on which no one can decide any more."""
        for call_id, changes in self.waiting.items():
            if not changes.paths or (call_id in self.reopened and not changes.is_decided):
                continue
            discarded = ChangesDiscarded(
                call_id=call_id, layer=changes.layer, paths=changes.paths, count=changes.count, reason=ENDED_EARLY
            )
            origin = changes.origin
            # After the end of a run nothing may be published for it.
            is_open = origin.run_id in self.runs
            yield ClosingEvent(discarded, origin if is_open else replace(origin, run_id=None, turn=None, step=None))

    def abandoned(self, reopened: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the calls that made layers whose changes no one can keep or discard any more.

        Args:
            reopened: ids of the calls that are resumed; their layers stay.
        """
        waiting = (call_id for call_id, changes in self.waiting.items() if changes.paths and call_id not in reopened)
        return tuple(self.layers.get(call_id, call_id) for call_id in waiting)


def _unpublished_calls(unanswered: Iterable[UnansweredCall], origin: Origin) -> list[ClosingEvent]:
    """Return queue and end events for calls of the last message that were never published."""
    events: list[ClosingEvent] = []
    for entry in unanswered:
        if not entry.queued:
            call = entry.call
            queued = ToolQueued(call_id=call.id, name=call.name, args_raw=call.arguments, index=entry.index)
            events.append(ClosingEvent(queued, origin))
            events.append(ClosingEvent(_ended_call(call.id, call.name, entry.index, entry.fate), origin))
    return events


def _results(unanswered: Iterable[UnansweredCall], origin: Origin) -> list[ClosingEvent]:
    """Return the events of the synthesised results, so that later readers find them in the journal."""
    events: list[ClosingEvent] = []
    for entry in unanswered:
        result = entry.result
        if not entry.begun:
            begin = MessageStarted(message_id=result.id, role="tool_result", call_id=result.call_id)
            events.append(ClosingEvent(begin, origin))
        events.append(ClosingEvent(MessageEnded(message_id=result.id, message=result), origin))
    return events


def _notices(notices: Iterable[UserMessage], begun: Collection[str], origin: Origin) -> Iterable[ClosingEvent]:
    """Yield the events of the notices for the model; an earlier resume may have begun one before it was killed."""
    for notice in notices:
        if notice.id not in begun:
            yield ClosingEvent(MessageStarted(message_id=notice.id, role="user"), origin)
        yield ClosingEvent(MessageEnded(message_id=notice.id, message=notice), origin)


def _key_of(event: AgentEvent, fields: Mapping[type[AgentEvent], _Scope]) -> _Key | None:
    """Return the scope that an event opens or closes in a run, or None."""
    found = fields.get(type(event))
    return None if found is None else (found[0], *[getattr(event, name) for name in found[1:]])


def _closing_of(event: AgentEvent) -> AgentEvent:
    """Return the event that closes the scope of `event`."""
    match event:
        case ApprovalRequested():
            return ApprovalResolved(
                request_id=event.request_id, call_id=event.call_id, decision="deny", by="cancel", note=ENDED_EARLY
            )
        case HookStarted():
            return HookFailed(event=event.event, name=event.name, call_id=event.call_id, error=ENDED_EARLY)
        case SubagentStarted():
            return SubagentEnded(
                child_run_id=event.child_run_id,
                call_id=event.call_id,
                agent=event.agent,
                status="interrupted",
                text=ENDED_EARLY,
            )
        case MessageStarted():
            return MessageDiscarded(message_id=event.message_id, reason=ENDED_EARLY)
        case CompactionStarted():
            return CompactionEnded(ok=False, tokens_after=event.tokens_before, removed=0, error=ENDED_EARLY)
        case StepStarted():
            return StepEnded(index=event.index, kind=event.kind, llm_ms=0.0, finish_reason="interrupted", usage=Usage())
        case TurnStarted():
            return TurnEnded(index=event.index)
        case BackgroundStarted():
            return BackgroundEnded(task_id=event.task_id, kind=event.kind, status="unknown")
        case _:
            raise ValueError(f"{event.type} opens nothing")


def _ended_call(call_id: str, name: str, index: int, fate: Fate) -> ToolEnded:
    """Return the end event of a call without one; a call that started may have taken effect."""
    return ToolEnded(
        call_id=call_id,
        name=name,
        index=index,
        status="cancelled" if fate == "not_started" else "interrupted",
        is_error=True,
        content=(TextBlock(text=text_of(fate)),),
    )
