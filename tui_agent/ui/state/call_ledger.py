"""All calls of a session in order: the fold behind the tool panel. An event costs the same with 10,000 calls."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ApprovalRequested,
    BackgroundEnded,
    BackgroundStarted,
    FileChanged,
    MessageEnded,
    RunEnded,
    RunStarted,
    SessionCreated,
    SessionLoaded,
    ToolEnded,
    ToolQueued,
    ToolStarted,
    UsageUpdated,
)
from tui_agent.protocol.messages import AssistantMessage
from tui_agent.protocol.permissions import ApprovalRequest
from tui_agent.ui.text.sanitiser import shown_path, shown_summary

from .call_records import END_KINDS, CallKind
from .call_view_state import CALL_EVENTS, CallViewState, LedgerCall, call_of

CallFilter = Literal["all", "running", "failed", "needs_you"]
FILTERS: tuple[CallFilter, ...] = ("all", "running", "failed", "needs_you")

MAX_RESULT_CHARACTERS = 32 * 1024 * 1024
"""Most characters of results kept for detail pages, over all calls; the oldest results are dropped first."""

HANDLED_EVENTS = CALL_EVENTS.union(
    (RunStarted, RunEnded, SessionCreated, SessionLoaded, UsageUpdated, MessageEnded),
    (BackgroundStarted, BackgroundEnded),
)
"""Events that may change a call."""


@dataclass(slots=True)
class CallLedger:
    """All calls of a session. Changed by `apply` only."""

    before: int = 0
    """Number of calls of the session before the first event here."""
    numbers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Numbers of those of them that are resumed here, by call id."""
    calls: list[LedgerCall] = field(default_factory=list[LedgerCall])
    places: dict[CallKind, set[int]] = field(default_factory=lambda: {kind: set() for kind in get_args(CallKind)})
    """Indexes of the calls of each kind."""
    root: str = ""
    """Working directory of the session; empty until an event reports it."""
    of_run: Counter[CallKind] = field(default_factory=Counter[CallKind])
    """Number of calls of each kind in the newest run."""
    _first_of_run: int = 0
    _position_of: dict[str, int] = field(default_factory=dict[str, int])
    _place_of: dict[int, int] = field(default_factory=dict[int, int])
    _closed: set[str] = field(default_factory=set[str])
    """Finished calls that were queued again with their answer; the later events only repeat that they are finished."""
    _jobs: dict[str, int] = field(default_factory=dict[str, int])
    """Indexes of the calls that became background commands, by id of those that run; -1 until the call has ended."""
    _newest: int = 0
    _results: deque[tuple[int, int]] = field(default_factory=deque[tuple[int, int]])
    _result_size: int = 0

    def apply(self, envelope: Envelope) -> tuple[int, ...]:
        """Apply one event; return the indexes in `calls` of changed and new calls."""
        event = envelope.event
        match event:
            case ToolQueued(call_id=call_id):
                return (self._add(call_id, envelope),)
            case RunStarted():
                if envelope.origin.depth == 0:
                    self._first_of_run = len(self.calls)
                    self.of_run.clear()
                return ()
            case RunEnded():
                return self._close_run(envelope)
            case BackgroundStarted(task_id=task_id):
                # It does not name its call; the result of the call names the job.
                self._jobs[task_id] = -1
                return ()
            case BackgroundEnded(task_id=task_id):
                return self._end_job(task_id, event)
            case SessionCreated(cwd=root):
                self.root = root
                return ()
            case SessionLoaded(cwd=root):
                self.root = root
                return self._close_earlier(envelope)
            case UsageUpdated(total=total):
                # An event of a sub-agent changes the row of the call that started it.
                place = self._position_of.get(envelope.origin.parent_call_id or "")
                if place is None:
                    return ()
                view = self.calls[place].view
                view.subagent = replace(view.subagent, tokens=total.input_tokens + total.output_tokens)
                return (place,)
            case MessageEnded(message=AssistantMessage(text=text)) if text.strip():
                place = self._position_of.get(envelope.origin.parent_call_id or "")
                if place is None:
                    return ()
                call = self.calls[place]
                call.view.subagent = call.view.subagent.saying(len(call.children), text.strip())
                return (place,)
            case _:
                call_id = call_of(event)
                place = self._position_of.get(call_id) if call_id not in self._closed and call_id is not None else None
                if place is None or not self.calls[place].view.apply(envelope):
                    return ()
                if isinstance(event, ToolStarted | ApprovalRequested | FileChanged):
                    self._spell_paths(self.calls[place].view)
                if isinstance(event, ToolStarted) and (source := self.find(event.adopted_from or "")) is not None:
                    # It runs once, whichever of the two calls its changes are reported for.
                    self.calls[place].view.changes = source.view.own_changes()
                if isinstance(event, ToolEnded):
                    self._note_job(place, str((event.details or {}).get("task_id")))
                has_moved = self._sort(place)
                if isinstance(event, ToolEnded):
                    self._evict_old_results(place)
                return (place, *self._waiting_for(call_id)) if has_moved else (place,)

    @property
    def total(self) -> int:
        """Number of all calls of the session."""
        return max(self.before, self._newest)

    def numbered(self, number: int) -> LedgerCall | None:
        """Return the call with this number, from 1; None if it has none."""
        place = self._place_of.get(number)
        return None if place is None else self.calls[place]

    def find(self, call_id: str) -> LedgerCall | None:
        """Return the newest call with this id; None if it is unknown."""
        place = self._position_of.get(call_id)
        return None if place is None else self.calls[place]

    def asker(self, call_id: str) -> str:
        """Return the call whose sub-agent made a call, such as `#2 Check the tests`; empty if none did."""
        call = self.find(call_id)
        if call is None or call.parent is None:
            return ""
        asking = self.calls[call.parent]
        return f"#{asking.number} {asking.view.summary}".strip()

    def named(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return a request to show: with the task of the sub-agent that asks, and paths relative to the workspace."""
        agent = self.asker(request.call_id) or request.agent
        summary = shown_summary(request.summary, request.args, self.root)
        return request.model_copy(update={"agent": agent, "summary": summary})

    def shown(self, chosen: CallFilter) -> list[int]:
        """Return the indexes in `calls` of the calls that pass the filter, in order."""
        return list(range(len(self.calls))) if chosen == "all" else sorted(self.places[chosen])

    def _add(self, call_id: str, envelope: Envelope) -> int:
        """Add a call, or continue the one that is resumed; return its index."""
        view = CallViewState(call_id)
        view.apply(envelope)
        self._spell_paths(view)
        known = self._position_of.get(call_id)
        self._closed.discard(call_id)
        # Only a resume queues calls outside a step, all of the last answer. Other calls may reuse an id: some servers
        # count them from zero.
        is_resumed = envelope.origin.step is None
        if known is not None and is_resumed:
            self._resume(self.calls[known], view)
            return known
        parent = self._position_of.get(envelope.origin.parent_call_id or "")
        place = len(self.calls)
        if parent is not None:
            above = self.calls[parent]
            above.children = above.children or []
            above.children.append(place)
        number = self.numbers.get(call_id) if is_resumed else None
        if number is None:
            # Here may be only the end of a session: the calls before it have numbers, too.
            number = self._newest = self.total + 1
        self.calls.append(LedgerCall(view, number, place, parent=parent))
        self.places["waiting"].add(place)
        self.of_run["waiting"] += 1
        self._position_of[call_id] = place
        self._place_of[number] = place
        return place

    def _spell_paths(self, view: CallViewState) -> None:
        """Spell the paths of a call's newest summary and change as the screen does."""
        view.summary = shown_summary(view.summary, view.arguments.effective, self.root)
        if view.changes.files:
            newest = view.changes.files[-1]
            view.changes.files[-1] = replace(newest, path=shown_path(newest.path, self.root))

    def _resume(self, call: LedgerCall, view: CallViewState) -> None:
        """Continue a call that was cancelled or interrupted; a finished one keeps its result."""
        call.is_resumed = True
        if call.view.ended and call.view.status not in ("cancelled", "interrupted"):
            self._closed.add(view.call_id)
            return
        call.view = view
        self._sort(call.place)

    def _close_run(self, envelope: Envelope) -> tuple[int, ...]:
        """End every call of a run that has ended; the end of the root agent's run ends all calls."""
        # A copy, because `_sort` moves calls between these sets.
        still_open = sorted(self.places["waiting"] | self.places["running"] | self.places["needs_you"])
        ended: list[int] = []
        for place in still_open:
            view = self.calls[place].view
            if (envelope.origin.depth == 0 or view.origin.run_id == envelope.origin.run_id) and view.apply(envelope):
                self._sort(place)
                ended.append(place)
        return tuple(ended)

    def _note_job(self, place: int, task_id: str) -> None:
        """Mark a call that has ended, if it is the first one that names a background command which runs."""
        if self._jobs.get(task_id) == -1:
            self._jobs[task_id], self.calls[place].view.outcome.job = place, task_id

    def _end_job(self, task_id: str, event: BackgroundEnded) -> tuple[int, ...]:
        place = self._jobs.pop(task_id, -1)
        if place < 0:
            return ()
        self.calls[place].view.end_job(event)
        self._sort(place)
        return (place,)

    def _close_earlier(self, envelope: Envelope) -> tuple[int, ...]:
        """End every call of the program that ran the session before: its outcome is unknown."""
        lost = [BackgroundEnded(task_id=job, kind="bash", status="unknown") for job in self._jobs]
        ended = self._close_run(envelope)
        return (*ended, *(place for event in lost for place in self._end_job(event.task_id, event)))

    def _sort(self, place: int) -> bool:
        """Move a call to its kind; return False if it has the same kind as before."""
        call = self.calls[place]
        kind = kind_of(call.view)
        if kind == call.kind:
            return False
        if "needs_you" in (kind, call.kind):
            self._count_question(call, 1 if kind == "needs_you" else -1)
        self.places[call.kind].discard(place)
        self.places[kind].add(place)
        if place >= self._first_of_run:
            self.of_run[call.kind] -= 1
            self.of_run[kind] += 1
        call.kind = kind
        return True

    def _count_question(self, call: LedgerCall, change: int) -> None:
        """Count a question of a sub-agent, or its end, for each call above it."""
        # A sub-agent may have started the one that asks: each row that hides the question shows it.
        while call.parent is not None:
            call = self.calls[call.parent]
            agent = call.view.subagent
            call.view.subagent = replace(agent, asks=max(0, agent.asks + change))

    def _waiting_for(self, call_id: str | None) -> list[int]:
        return sorted(place for place in self.places["waiting"] if call_id in self.calls[place].view.waits_on)

    def _evict_old_results(self, place: int) -> None:
        view = self.calls[place].view
        size = len(view.outcome.result) + len(view.live.text)
        self._results.append((place, size))
        self._result_size += size
        # The newest result stays, even if it alone is over the limit.
        while self._result_size > MAX_RESULT_CHARACTERS and len(self._results) > 1:
            oldest, freed = self._results.popleft()
            self._result_size -= freed
            old = self.calls[oldest].view
            path = old.outcome.persisted_path
            where = f"; the whole of it is in {path}" if path else ""
            old.outcome.result, old.outcome.details = f"[no longer kept on the screen{where}]", None
            old.live.text = ""


def kind_of(view: CallViewState) -> CallKind:
    """Return the kind under which the panel counts a call."""
    match view.phase:
        case "queued" | "waiting":
            return "waiting"
        case "asking":
            return "needs_you"
        case "running":
            return "running"
        case "ended" if view.outcome.job:
            return "background"
        case "ended" if view.is_discarded:
            return "denied"
        case "ended":
            return END_KINDS[view.status] if view.status is not None else "failed"
