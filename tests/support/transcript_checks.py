"""Strict validators for a run's events and its conversation (S4-84).

Use them after every test that drives the engine. A test that only looks at the events it expects never notices the
missing ones.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
from tui_agent.protocol.envelope import Envelope, read_envelope
from tui_agent.protocol.events import (
    ApprovalRequested,
    ApprovalResolved,
    ChangesDiscarded,
    ChangesKept,
    ChangesProposed,
    FileChanged,
    HookEnded,
    HookFailed,
    HookStarted,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    PermissionDecided,
    RunEnded,
    RunStarted,
    StepEnded,
    StepStarted,
    ToolBatchEnded,
    ToolBatchStarted,
    ToolBlockedOn,
    ToolData,
    ToolEnded,
    ToolOutput,
    ToolProgress,
    ToolQueued,
    ToolStarted,
    ToolUpdated,
    TurnEnded,
    TurnStarted,
)
from tui_agent.protocol.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tui_agent.protocol.tool import EFFECTS_DATA
from tui_agent.protocol.trial import REPOSITORY

NEEDS_START = {"ok", "timeout"}
"""Statuses that only a call that ran can have."""

PUBLISHED_ON_FAILURE_ONLY = {"before_update", "after_update"}
"""Hooks that run too often to publish each use; only their failures are published."""

REFUSED = {
    "invalid",
    "not_found",
    "denied_policy",
    "denied_user",
    "denied_hook",
    "skipped_steering",
    "skipped_hook",
    "skipped_user",
}
"""Statuses of calls that never ran."""

NO_ERROR = {"ok"}
EITHER = {"overridden", "skipped_steering", "skipped_hook", "skipped_user"}


def validate_events(
    envelopes: Iterable[Envelope],
    *,
    complete: bool = True,
    ordered: bool = True,
    balanced: bool = False,
    unanswered: Collection[str] = (),
    gaps: bool = False,
) -> None:
    """Check a whole sequence of events, as an unmerged subscription delivers it.

    Args:
        envelopes: all published events, in order.
        complete: True if everything that began must have ended; False for the beginning of a session.
        ordered: True if result messages must be in call order; False only for the preset `rust_loop`.
        balanced: True if calls that never ran may have a start, as with `balanced_start` and `start_events=upfront`.
        unanswered: ids of calls that need no result message, because their assistant message was discarded or because a
            later run resumes them.
        gaps: True if numbers may be missing, as in a stream without deltas.

    Raises:
        AssertionError: names every broken invariant.
    """
    validator = _EventValidator(ordered=ordered, balanced=balanced, unanswered=frozenset(unanswered), gaps=gaps)
    for envelope in envelopes:
        validator.check(envelope)
    if complete:
        validator.expect_everything_closed()
    assert not validator.faults, "\n".join(["events break their invariants:", *validator.faults])


def validate_history(messages: Sequence[Message], *, complete: bool = True) -> None:
    """Check a conversation: user → assistant → its results in call order, each exactly once → …

    Several consecutive user messages are allowed, since queued messages are delivered together. An assistant message
    may follow another only if that one paused.

    Args:
        messages: the conversation.
        complete: True if the last assistant message's calls must have results, too.

    Raises:
        AssertionError: names every fault.
    """
    faults: list[str] = []
    waiting: list[str] = []
    previous = "nothing"
    paused = False
    for place, message in enumerate(messages):
        where = f"message {place} ({message.role})"
        if waiting and not isinstance(message, ToolResultMessage):
            faults.append(f"{where} comes before the results of {waiting}")
            waiting = []
        match message:
            case ToolResultMessage():
                if message.call_id not in waiting:
                    faults.append(f"{where} answers {message.call_id!r}, which waits for no answer")
                elif message.call_id != waiting[0]:
                    faults.append(f"{where} answers {message.call_id!r} before {waiting[0]!r}")
                if message.call_id in waiting:
                    waiting.remove(message.call_id)
            case AssistantMessage():
                if previous == "nothing" or (previous == "assistant" and not paused):
                    faults.append(f"{where} follows {previous}")
                waiting = [call.id for call in message.tool_calls]
                paused = message.stop_reason == "pause_turn"
                faults += [f"{where} has call {name!r} twice" for name in _repeated(waiting)]
            case UserMessage():
                if not message.content:
                    faults.append(f"{where} says nothing")
        previous = message.role
    if waiting and complete:
        faults.append(f"calls without a result: {waiting}")
    faults += [f"message id {name!r} is used twice" for name in _repeated([message.id for message in messages])]
    assert not faults, "\n".join(["the conversation is not valid:", *faults])


@dataclass
class _Call:
    """State of one call so far."""

    index: int
    run_id: str | None
    name: str = ""
    started: bool = False
    ended: ToolEnded | None = None
    answered: bool = False
    updates: int = 0
    proposed: set[str] | None = None
    """Changed paths of a trial that were neither kept nor discarded; None without a trial."""


@dataclass
class _Agent:
    """State of one agent so far."""

    calls: dict[str, _Call] = field(default_factory=dict)
    batch: ToolBatchStarted | None = None
    batch_calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    """Calls with a result message since the batch began."""
    since_message: list[str] = field(default_factory=list)
    """Calls queued since the last assistant message began."""
    discarded: set[str] = field(default_factory=set)
    """Calls whose assistant message was discarded."""
    commands: set[str | None] = field(default_factory=set)
    """Runs of the user's own commands: one call each, without a message that requests it or answers it."""


class _EventValidator:
    """Validator that receives events one by one and collects faults."""

    def __init__(self, *, ordered: bool, balanced: bool, unanswered: frozenset[str], gaps: bool) -> None:
        self.faults: list[str] = []
        self._ordered = ordered
        self._balanced = balanced
        self._unanswered = unanswered
        self._gaps = gaps
        self._agents: dict[str, _Agent] = {}
        self._open: dict[tuple[Any, ...], str | None] = {}
        """Everything that has begun and not ended, with its run: (kind, agent, name)."""
        self._over: set[str] = set()
        self._messages: set[str] = set()
        self._last: Envelope | None = None
        self._now: Envelope | None = None

    def check(self, envelope: Envelope) -> None:
        """Check one event."""
        self._now = envelope
        self._check_envelope(envelope)
        agent = self._agents.setdefault(envelope.origin.agent_id, _Agent())
        match envelope.event:
            case RunStarted() | RunEnded() | TurnStarted() | TurnEnded() | StepStarted() | StepEnded():
                self._check_run(envelope, agent)
            case MessageStarted() | MessageDelta() | MessageEnded() | MessageDiscarded():
                self._check_message(envelope, agent)
            case ToolBatchStarted() | ToolBatchEnded():
                self._check_batch(envelope, agent)
            case HookStarted() | HookEnded() | HookFailed():
                self._check_hook(envelope)
            case _:
                self._check_call(envelope, agent)
        self._last = envelope

    def expect_everything_closed(self) -> None:
        """Add a fault for everything that began and never ended."""
        self._now = None
        for key in self._open:
            self._fault(f"{key[0]} {key[2]!r} of agent {key[1]!r} never ended")
        for agent in self._agents.values():
            self._expect_calls_over(agent)

    def _fault(self, text: str) -> None:
        where = f"seq {self._now.seq} {self._now.type}" if self._now else "at the end"
        self.faults.append(f"- {where}: {text}")

    def _begin(self, kind: str, name: object) -> None:
        envelope = self._now
        assert envelope
        key = (kind, envelope.origin.agent_id, name)
        if key in self._open:
            self._fault(f"{kind} {name!r} began twice")
        self._open[key] = envelope.origin.run_id

    def _end(self, kind: str, name: object) -> None:
        assert self._now
        if self._open.pop((kind, self._now.origin.agent_id, name), "absent") == "absent":
            self._fault(f"{kind} {name!r} ended without a beginning")

    def _is_open(self, kind: str, name: object) -> bool:
        assert self._now
        return (kind, self._now.origin.agent_id, name) in self._open

    def _check_envelope(self, envelope: Envelope) -> None:
        last = self._last
        if last and (envelope.seq <= last.seq if self._gaps else envelope.seq != last.seq + 1):
            self._fault(f"its number is not the next: {last.seq} came before")
        if last and envelope.mono < last.mono:
            self._fault("time went backwards")
        if envelope.origin.run_id in self._over:
            self._fault(f"told after run {envelope.origin.run_id} had ended")
        line = envelope.to_json()
        back = read_envelope(line)
        json.loads(line, parse_constant=lambda word: self._fault(f"its line has {word}, which is no JSON"))
        if back is None or back.event != envelope.event or back.origin != envelope.origin:
            self._fault("cannot be written and read again")

    def _check_run(self, envelope: Envelope, agent: _Agent) -> None:
        run_id = envelope.origin.run_id
        match envelope.event:
            case RunStarted(trigger=trigger):
                self._begin("run", run_id)
                agent.commands |= {run_id} if trigger == "command" else set()
            case RunEnded():
                self._end("run", run_id)
                for key in [key for key, of_run in self._open.items() if of_run == run_id and run_id is not None]:
                    self._fault(f"{key[0]} {key[2]!r} is still open")
                self._expect_calls_over(agent)
                self._over |= {run_id} if run_id is not None else set()
            case TurnStarted(index=index):
                self._begin("turn", index)
            case TurnEnded(index=index):
                self._end("turn", index)
            case StepStarted(index=index):
                self._expect_calls_over(agent)
                self._begin("step", index)
            case StepEnded(index=index):
                self._end("step", index)
            case _:
                pass

    def _check_message(self, envelope: Envelope, agent: _Agent) -> None:
        match envelope.event:
            case MessageStarted(message_id=message_id, role=role, call_id=call_id):
                if message_id in self._messages:
                    self._fault(f"message {message_id!r} began before")
                self._messages.add(message_id)
                self._begin("message", message_id)
                if role == "assistant":
                    agent.since_message = []
                if role == "tool_result":
                    self._check_result(agent, call_id)
            case MessageDelta(message_id=message_id):
                if not self._is_open("message", message_id):
                    self._fault(f"message {message_id!r} is not open")
            case MessageEnded(message_id=message_id, message=message):
                self._end("message", message_id)
                if message.id != message_id:
                    self._fault(f"names {message_id!r} and carries {message.id!r}")
                if isinstance(message, ToolResultMessage):
                    self._compare_result(agent, message)
            case MessageDiscarded(message_id=message_id):
                self._end("message", message_id)
                agent.discarded |= set(agent.since_message)
            case _:
                pass

    def _check_result(self, agent: _Agent, call_id: str | None) -> None:
        call = agent.calls.get(call_id or "")
        if call is None or call_id is None:
            self._fault(f"answers {call_id!r}, which was never queued")
            return
        if call.ended is None:
            self._fault(f"answers {call_id!r} before it ended")
        if call.answered:
            self._fault(f"answers {call_id!r} twice")
        call.answered = True
        earlier = [name for name in agent.batch_calls if name in agent.results]
        places = [agent.batch_calls.index(name) for name in earlier]
        if self._ordered and call_id in agent.batch_calls and agent.batch_calls.index(call_id) < max(places, default=0):
            self._fault(f"answers {call_id!r} after {earlier[-1]!r}, against call order")
        agent.results.append(call_id)

    def _compare_result(self, agent: _Agent, message: ToolResultMessage) -> None:
        call = agent.calls.get(message.call_id)
        if call is None or call.ended is None:
            return
        ended = call.ended
        if (message.content, message.is_error, message.tool_name) != (ended.content, ended.is_error, ended.name):
            self._fault(f"the model and the screen get different results for {message.call_id!r}")

    def _check_batch(self, envelope: Envelope, agent: _Agent) -> None:
        match envelope.event:
            case ToolBatchStarted(batch_id=batch_id):
                self._begin("batch", batch_id)
                if agent.batch is not None:
                    self._fault(f"batch {agent.batch.batch_id!r} is still open")
                agent.batch, agent.batch_calls, agent.results = envelope.event, [], []
            case ToolBatchEnded(batch_id=batch_id, call_ids=call_ids):
                self._end("batch", batch_id)
                if list(call_ids) != agent.batch_calls:
                    self._fault(f"names {list(call_ids)}, queued were {agent.batch_calls}")
                for name in agent.batch_calls:
                    if agent.calls[name].ended is None:
                        self._fault(f"call {name!r} has not ended")
                agent.batch = None
            case _:
                pass

    def _check_hook(self, envelope: Envelope) -> None:
        event = envelope.event
        assert isinstance(event, HookStarted | HookEnded | HookFailed)
        name = (event.event, event.name, event.call_id)
        if isinstance(event, HookStarted):
            self._begin("hook", name)
        elif event.event not in PUBLISHED_ON_FAILURE_ONLY:
            self._end("hook", name)

    def _check_call(self, envelope: Envelope, agent: _Agent) -> None:
        event = envelope.event
        if isinstance(event, ToolQueued):
            self._check_queued(event, envelope, agent)
            return
        call_id = getattr(event, "call_id", None)
        call = agent.calls.get(call_id) if call_id is not None else None
        match event:
            case ToolBlockedOn() | PermissionDecided() | ApprovalRequested() | ToolStarted():
                # With upfront starts, waiting comes after the start, and so does the question about changes.
                settles = isinstance(event, ToolBlockedOn) and event.what in ("group", "approval")
                settles |= (
                    isinstance(event, ApprovalRequested)
                    and event.changes is not None
                    and call is not None
                    and (call.proposed is not None)
                )
                may_wait = (self._balanced and not isinstance(event, ToolStarted)) or settles
                if call is None or call.ended or (call.started and not may_wait):
                    self._fault(f"call {call_id!r} is not waiting to start")
            case ToolData(kind=kind) if kind == EFFECTS_DATA:
                if call is None or not call.started:
                    self._fault(f"call {call_id!r} never started")
            case ToolUpdated() | ToolProgress() | ToolOutput() | ToolData():
                if call is None or not call.started or call.ended:
                    self._fault(f"call {call_id!r} is not running")
            case _:
                pass
        match event:
            case ToolStarted():
                self._begin("call", call_id)
                if call:
                    call.started = True
                self._expect_takeover_is_sound(event, agent)
            case ToolUpdated(n=n) if call:
                call.updates += 1
                if n != call.updates:
                    self._fault(f"is update {call.updates} of {call_id!r} and says {n}")
            case ChangesProposed() | ChangesKept() | ChangesDiscarded():
                self._check_changes(event, call)
            case FileChanged() if call and call.proposed is not None and call.ended:
                self._fault(f"call {call_id!r} changed a file after its end")
            case ToolEnded():
                self._check_ended(event, call)
            case ApprovalRequested(request_id=request_id):
                self._begin("approval", (request_id, call_id))
            case ApprovalResolved(request_id=request_id):
                self._end("approval", (request_id, call_id))
                if call is None or call.ended:
                    self._fault(f"call {call_id!r} is over already")
            case _:
                pass

    def _check_changes(self, event: ChangesProposed | ChangesKept | ChangesDiscarded, call: _Call | None) -> None:
        """Check that each path is kept or discarded once, between the call's start and its end."""
        if call is None or not call.started or (call.ended and not isinstance(event, ChangesDiscarded)):
            self._fault(f"call {event.call_id!r} is not running")
        elif isinstance(event, ChangesProposed):
            if call.proposed is not None:
                self._fault(f"call {event.call_id!r} proposes twice")
            repository = (REPOSITORY,) if event.changes.repository else ()
            call.proposed = {*(one.path for one in (*event.changes.files, *event.changes.trees)), *repository}
        elif call.proposed is None or not call.proposed.issuperset(event.paths):
            self._fault(f"settles {event.paths}, of which not all are proposed and open")
        else:
            call.proposed -= set(event.paths)

    def _expect_takeover_is_sound(self, event: ToolStarted, agent: _Agent) -> None:
        """Check that the adopted call was started for the same tool, and has no owner any more."""
        name = event.adopted_from
        if name is None:
            return
        begun = agent.calls.get(name)
        if begun is None or not begun.started or begun.ended is None or begun.answered or begun.name != event.name:
            self._fault(f"takes over {name!r}, which is not there to be taken")

    def _check_queued(self, event: ToolQueued, envelope: Envelope, agent: _Agent) -> None:
        before = agent.calls.get(event.call_id)
        if before and before.ended is None:
            self._fault(f"call {event.call_id!r} was queued before")
        if agent.batch is not None:
            if event.index != len(agent.batch_calls):
                self._fault(f"index {event.index}, expected {len(agent.batch_calls)}")
            agent.batch_calls.append(event.call_id)
        agent.since_message.append(event.call_id)
        agent.discarded.discard(event.call_id)
        run_id = envelope.origin.run_id
        agent.calls[event.call_id] = _Call(event.index, run_id, event.name, answered=run_id in agent.commands)

    def _check_ended(self, event: ToolEnded, call: _Call | None) -> None:
        if call is None:
            self._fault(f"call {event.call_id!r} was never queued")
            return
        if call.ended:
            self._fault(f"call {event.call_id!r} ended before as {call.ended.status}")
        call.ended = event
        if call.started:
            self._end("call", event.call_id)
        if event.index != call.index:
            self._fault(f"index {event.index}, queued as {call.index}")
        if event.status in NEEDS_START and not call.started:
            self._fault(f"status {event.status}, but it never started")
        if event.status in REFUSED and call.started and not self._balanced:
            self._fault(f"status {event.status}, but it was started")
        if event.status not in EITHER and event.is_error is (event.status in NO_ERROR):
            self._fault(f"status {event.status} and is_error={event.is_error}")
        if call.proposed and event.error_kind not in (NOT_BEGUN, ASKED_AGAIN):
            self._fault(f"{sorted(call.proposed)} of {event.call_id!r} were neither kept nor discarded")
        for kind, _, name in list(self._open):
            if kind == "approval" and name[1] == event.call_id:
                self._fault(f"the question about {event.call_id!r} is still open")

    def _expect_calls_over(self, agent: _Agent) -> None:
        for name, call in agent.calls.items():
            if call.ended is None:
                self._fault(f"call {name!r} never ended")
            elif not call.answered and name not in agent.discarded and name not in self._unanswered:
                self._fault(f"call {name!r} has no result message")


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
