"""Reconstruction of a conversation from a session's events. The result is valid even if events are missing.

Pure: the same events give the same messages, synthesised ones included. Live and saved events give equal conversations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from typing import assert_never

from tui_agent.protocol.cancellation import ASKED_AGAIN, NOT_BEGUN
from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    ApprovalRequested,
    ApprovalResolved,
    ChangesDiscarded,
    ChangesKept,
    ChangesProposed,
    CompactionEnded,
    CompactionUndone,
    ContentDropped,
    MessageDiscarded,
    MessageEnded,
    MessageStarted,
    RunEnded,
    SessionRewinding,
    SessionRewound,
    SteeringQueued,
    ToolEnded,
    ToolQueued,
    ToolStarted,
)
from tui_agent.protocol.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    lost_message_notice,
    share_field_sets,
    unclaimed_call,
    without,
)
from tui_agent.protocol.past_session import Fate, OpenCall, PastCompaction, events_of
from tui_agent.protocol.permissions import ApprovalDecision, ApprovalRequest
from tui_agent.protocol.tool import ToolResult

from .event_folds import active_events

ROOT_AGENT = "main"

ENDED_EARLY = "the program ended"
"""Beginning of the reason of runs that ended with the program."""
LONGEST_EARLY_RESULT = 8_000
"""Most characters of the result of a call whose response was lost."""

EARLY_NOTICE = "msg_early_"
"""Prefix of the ids of notices about calls of a response that never ended."""

NOT_STARTED = (
    "Not run, as far as the journal shows: the program ended before this call started. "
    "Check the current state before running it again if that matters."
)
IN_TRIAL = (
    "The program ended while this command or what it had changed was in its trial. Its output is lost, and none of its "
    "changes were kept."
)
OUTCOME_UNKNOWN = (
    "Outcome unknown: the program ended while this call was running. It may have taken effect; "
    "check the current state before running it again."
)

FOLDED_EVENTS = frozenset(
    {
        *(ToolQueued, ToolStarted, ToolEnded, ApprovalRequested, ApprovalResolved),
        *(ChangesProposed, ChangesKept, ChangesDiscarded),
        *(MessageStarted, MessageEnded, MessageDiscarded, CompactionEnded, CompactionUndone),
        ContentDropped,
        *(SessionRewinding, SessionRewound, RunEnded, SteeringQueued),
    }
)
"""Events from which a conversation is reconstructed."""


def fold_history(envelopes: Iterable[Envelope], agent_id: str = ROOT_AGENT) -> "HistoryFold":
    """Fold the events of one agent into its conversation and the state of its last calls."""
    told = active_events(envelopes)
    discarded: set[str] = set()
    for one in events_of(told, (MessageDiscarded,)):
        if isinstance(one.event, MessageDiscarded) and one.origin.agent_id == agent_id:
            discarded.add(one.event.message_id)
    fold = HistoryFold()
    for one in events_of(told, FOLDED_EVENTS):
        is_discarded = isinstance(one.event, MessageEnded) and one.event.message_id in discarded
        if one.origin.agent_id == agent_id and not is_discarded:
            fold.apply(one.event)
    return fold


def messages_of(envelopes: Iterable[Envelope], agent_id: str = ROOT_AGENT) -> tuple[Message, ...]:
    """Return the conversation of one agent, in order.

    Every call has exactly one result, in call order after its message: a call without one gets an error result with
    its fate (S0-3). Discarded messages, repeated messages and results without a call are left out.
    """
    return fold_history(envelopes, agent_id).messages()


@dataclass(frozen=True, slots=True)
class ResumableConversation:
    """A conversation that ends in calls which can be resumed."""

    messages: tuple[Message, ...]
    """Messages, with results of the last calls up to the first call without one."""
    calls: tuple[OpenCall, ...]
    """State of the other calls of the last message."""


@dataclass(frozen=True, slots=True)
class UnansweredCall:
    """A call of the last message that has no result in the journal."""

    call: ToolCall
    index: int
    """Index in its message, from 0."""
    fate: Fate
    result: ToolResultMessage
    """Its result if that is known, else an error with its fate."""
    queued: bool = True
    """True if a `tool.queued` was published for the call."""
    begun: bool = False
    """True if a `message.started` was published for the result."""


def text_of(fate: Fate) -> str:
    """Return the text for the model about a call without a result; empty for a finished one."""
    match fate:
        case "not_started":
            return NOT_STARTED
        case "in_trial":
            return IN_TRIAL
        case "outcome_unknown":
            return OUTCOME_UNKNOWN
        case "finished":
            return ""
        case _:
            assert_never(fate)


@dataclass(slots=True)
class CallRecord:
    """State of one call, as far as the events show."""

    queued: bool = False
    arguments: JsonObject | None = None
    """Arguments as the model sent them."""
    started: bool = False
    ended: ToolEnded | None = None
    result_id: str | None = None
    """Id of the result's message, once it started."""
    request: ApprovalRequest | None = None
    """Request for approval of the call, or of its changes, that was not answered or not carried out."""
    waits: bool = False
    """True if it has run in a trial, and its changes were neither kept nor discarded."""
    in_trial: bool = False
    """True if it started in a trial, and none of its changes were kept."""
    answer: ApprovalDecision | None = None
    """Answer of the user about its changes."""
    layer_of: str = ""
    """Id of the call that made its layer, if another did."""

    def note(self, event: AgentEvent, *, is_resumed: bool = False) -> None:
        """Apply the next event about this call; `is_resumed` if its message is complete, so that a resume queues it."""
        match event:
            case ToolQueued(args_raw=arguments):
                self.arguments = arguments
                # A resume repeats nothing that has started or ended, also if it is killed before it has answered it.
                if not is_resumed or self.was_abandoned:
                    self.ended = None
                self.started = self.started and is_resumed
                self.in_trial = self.in_trial and is_resumed
                self.queued, self.result_id = True, None
                # A resumed call whose changes wait keeps its question and its answer.
                self.request = self.request if self.waits else None
            case MessageStarted():
                self.result_id = event.message_id
            case ToolStarted(adopted_from=layer_of, place=place):
                self.started, self.layer_of, self.in_trial = True, layer_of or "", place != "outside"
            case ChangesProposed():
                self.waits = True
            case ChangesKept() | ChangesDiscarded():
                self.waits, self.request, self.answer = False, None, None
                self.in_trial = self.in_trial and isinstance(event, ChangesDiscarded)
            case ToolEnded(error_kind=kind):
                self.ended = None if kind == ASKED_AGAIN else event
                self.request = self.request if kind in (ASKED_AGAIN, NOT_BEGUN) else None
            case ApprovalRequested(digest=digest):
                is_same = self.request is not None and self.request.digest == digest
                self.request, self.answer = event, self.answer if is_same else None
            case ApprovalResolved(by="user" | "resume") if self.waits:
                self.answer = _answer_of(event)
            case ApprovalResolved(by=by):
                self.request = self.request if by == "cancel" or self.waits else None
            case _:
                pass

    @property
    def was_abandoned(self) -> bool:
        """True if its only result is that the program exited before it started."""
        return self.ended is not None and self.ended.error_kind == NOT_BEGUN

    @property
    def fate(self) -> Fate:
        """Fate of the call if no more events follow."""
        return "finished" if self.ended is not None else self.open_fate

    @property
    def open_fate(self) -> Fate:
        """Fate of the call if its end does not count."""
        if self.waits or self.in_trial:
            return "in_trial"
        return "outcome_unknown" if self.started else "not_started"


@dataclass(slots=True)
class _PendingAnswer:
    """The calls of an assistant message, with one slot for each result."""

    calls: tuple[ToolCall, ...]
    timestamp: int
    slots: list[ToolResultMessage | None]

    def take(self, result: ToolResultMessage) -> None:
        """Put a result into the first free slot of its call; drop it if there is none."""
        for place, call in enumerate(self.calls):
            if call.id == result.call_id and self.slots[place] is None:
                self.slots[place] = result
                return

    def contains(self, call_id: str) -> bool:
        """Return True if it is one of these calls."""
        return any(call.id == call_id for call in self.calls)

    def take_back(self, call_id: str) -> None:
        """Clear the slot of a call that is resumed."""
        for place, call in enumerate(self.calls):
            if call.id == call_id:
                self.slots[place] = None


@dataclass(frozen=True, slots=True)
class _PastCompaction:
    """A compaction, with the messages before it and the number of messages right after it."""

    before: list[Message]
    length: int
    done: PastCompaction


@dataclass(slots=True)
class HistoryFold:
    """State of the fold: the conversation up to the last event applied."""

    done: list[Message] = field(default_factory=list[Message])
    records: dict[str, CallRecord] = field(default_factory=dict[str, CallRecord])
    seen: set[str] = field(default_factory=set[str])
    asked: _PendingAnswer | None = None
    condensed: list[_PastCompaction] = field(default_factory=list[_PastCompaction])
    """Compactions that were not undone."""
    rewinding: SessionRewinding | None = None
    """Rewind that began and did not end."""
    streaming: bool = False
    """True while a response of the model streams."""
    early: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    """Calls with effects that started in a response that has not ended or was discarded, and that no later call has
    taken over and no notice reports, by id."""
    early_notices: int = 0
    """Number of notices about them; one that a resume did not finish is discarded, and its id with it."""

    def apply(self, event: AgentEvent) -> None:
        """Apply the next event; events of discarded messages must be left out."""
        match event:
            case (
                ToolQueued()
                | ToolStarted()
                | ToolEnded()
                | ApprovalRequested()
                | ApprovalResolved()
                | (ChangesProposed() | ChangesKept() | ChangesDiscarded())
            ):
                record = self.records.setdefault(event.call_id, CallRecord())
                if record.was_abandoned and self.asked is not None and not isinstance(event, ChangesDiscarded):
                    self.asked.take_back(event.call_id)
                record.note(event, is_resumed=self.asked is not None and self.asked.contains(event.call_id))
                if isinstance(event, ToolStarted) and not event.read_only and event.place == "outside":
                    self.early.pop(event.adopted_from or "", None)
                    if self.streaming:
                        self.early[event.call_id] = event
            case MessageStarted(role="assistant"):
                self.streaming = True
            case MessageStarted(role="user", message_id=message_id) if message_id.startswith(EARLY_NOTICE):
                self.early_notices += 1
            case RunEnded(error=error) if error is None or not error.startswith(ENDED_EARLY):
                # The agent itself has queued a notice about them.
                self.early.clear()
            case SteeringQueued(message_id=message_id) if (call_id := unclaimed_call(message_id)) is not None:
                self.early.pop(call_id, None)
            case MessageStarted(role="tool_result", call_id=str() as call_id):
                self.records.setdefault(call_id, CallRecord()).note(event)
            case MessageEnded(message=message) if message.id not in self.seen:
                self.streaming = False
                self.seen.add(message.id)
                share_field_sets(message)
                self._add(message)
                if isinstance(message, AssistantMessage):
                    self._note_repeated(message.tool_calls)
                elif isinstance(message, UserMessage):
                    self.early.clear()
            case CompactionEnded(ok=True):
                self._condense(event)
            case ContentDropped():
                self._drop_content(event)
            case CompactionUndone():
                self._undo_condensing()
            case SessionRewinding():
                self.rewinding = event
            case SessionRewound():
                self.rewinding = None
                self._go_back(event)
            case _:
                pass

    def _add(self, message: Message) -> None:
        if isinstance(message, ToolResultMessage):
            if self.asked is not None:
                self.asked.take(message)
            return
        # A server refuses every conversation with a message that says nothing.
        if not message.content:
            return
        self._close_asked()
        if self.rewinding is not None:
            broken_off, self.rewinding = self.rewinding.notice, None
            if broken_off is not None and message.id != broken_off.id:
                self.done.append(broken_off)
        if isinstance(message, AssistantMessage):
            if not self.done or _was_finished(self.done[-1]):
                self.done.append(lost_message_notice(message, f"msg_before_{message.id}"))
            if calls := message.tool_calls:
                self.asked = _PendingAnswer(calls, message.timestamp, [None] * len(calls))
        self.done.append(message)

    def _note_repeated(self, calls: Iterable[ToolCall]) -> None:
        """Count a call as started if it repeats one of a discarded response: a resume must not run its effect again.

        Of the early calls, only those that the response does not contain are left.
        """
        asked = {call.id for call in calls}
        left = [event for event in self.early.values() if event.call_id not in asked]
        for call in calls:
            record = self.records.get(call.id)
            for event in left if record is not None and not record.started else ():
                if event.name == call.name and self.records[event.call_id].arguments == call.arguments:
                    self.records[call.id].started = True
                    left.remove(event)
                    break
        self.early = {event.call_id: event for event in left}

    def _close_asked(self) -> None:
        """Finish the last message: no more results of its calls can follow."""
        if self.asked is not None:
            self.done.extend(self._answers(self.asked, at_end=False))
            for call in self.asked.calls:
                # Models repeat ids: a later call with the same one begins anew.
                self.records.pop(call.id, None)
            self.asked = None

    def _condense(self, event: CompactionEnded) -> None:
        """Repeat a compaction on the conversation, except for a range that no longer exists."""
        self._close_asked()
        before, removed = list(self.done), tuple[Message, ...]()
        cut: dict[str, ToolResultMessage] = {message.id: message for message in event.cut}
        self.done = [cut.get(message.id, message) for message in self.done]
        ids = [message.id for message in self.done]
        if event.replacement is not None and event.first_removed in ids and event.last_removed in ids:
            start, end = ids.index(event.first_removed), ids.index(event.last_removed) + 1
            self.done[start:end] = [event.replacement]
            removed = tuple(before[start:end])
        pairs = tuple((old, new) for old in before if isinstance(old, ToolResultMessage) and (new := cut.get(old.id)))
        replacement = event.replacement if removed else None
        sizes = (event.tokens_before, event.tokens_after, len(self.done))
        done = PastCompaction(event.strategy, removed, replacement, pairs, *sizes)
        self.condensed.append(_PastCompaction(before, len(self.done), done))

    def _drop_content(self, event: ContentDropped) -> None:
        """Drop the parts of messages that the model's server refused."""
        ids = set(event.message_ids)
        self.done = [without(one, event.kind) if one.id in ids else one for one in self.done]
        if self.asked is not None:
            dropped = [without(one, event.kind) if one and one.id in ids else one for one in self.asked.slots]
            self.asked.slots = [one if isinstance(one, ToolResultMessage) else None for one in dropped]

    def _undo_condensing(self) -> None:
        if self.condensed:
            self._close_asked()
            last = self.condensed.pop()
            self.done = [*last.before, *self.done[last.length :]]

    def compactions(self) -> tuple[PastCompaction, ...]:
        """Return the compactions that were not undone, oldest first."""
        return tuple(one.done for one in self.condensed)

    def _go_back(self, event: SessionRewound) -> None:
        """Apply a rewind: earlier compactions can no longer be undone, and its notice becomes the newest message."""
        if event.conversation:
            self.condensed.clear()
        if event.notice is not None and event.notice.id not in self.seen:
            self.seen.add(event.notice.id)
            self._add(event.notice)

    def messages(self) -> tuple[Message, ...]:
        """Return all messages, with results for the last calls."""
        return (*self.done, *self._answers(self.asked, at_end=True), *self.notices())

    def notices(self) -> tuple[UserMessage, ...]:
        """Return notices for the model about a rewind that did not end, and about a lost response with started calls.

        Empty if there is neither.
        """
        told = [] if self.rewinding is None or self.rewinding.notice is None else [self.rewinding.notice]
        if self.early:
            when = (
                "while a response of yours was streaming" if self.streaming else "after a response of yours broke off"
            )
            text = f"The program ended {when}. It is lost, but calls of it had started."
            content = (TextBlock(text="\n\n".join([text, *self._early_calls()])),)
            # Not the present time: the same events give the same messages.
            time = self.done[-1].timestamp if self.done else 0
            notice_id = f"{EARLY_NOTICE}{self.early_notices}_{next(iter(self.early))}"
            told.append(UserMessage(id=notice_id, content=content, kind="notice", timestamp=time))
        return tuple(told)

    def _early_calls(self) -> Iterator[str]:
        """Yield the calls of a lost response: those without a known end, then each other one with its result."""
        ends = {call_id: self.records[call_id].ended for call_id in self.early}
        # A resume closes a call without an end as interrupted.
        known = {call_id: end for call_id, end in ends.items() if end is not None and end.status != "interrupted"}
        names = {call.call_id: f"{call.name} {call.summary}".strip() for call in self.early.values()}
        if unknown := [name for call_id, name in names.items() if call_id not in known]:
            yield f"These may have taken effect; check before you repeat them: {'; '.join(unknown)}"
        for call_id, end in known.items():
            result = "\n".join(block.text for block in end.content if isinstance(block, TextBlock))
            outcome = "failed" if end.is_error else "finished"
            cut = f"{result[:LONGEST_EARLY_RESULT]}…" if len(result) > LONGEST_EARLY_RESULT else result
            yield f"This one {outcome}: {names[call_id]}\nIts result:\n{cut}"

    def unanswered(self) -> tuple[UnansweredCall, ...]:
        """Return the calls of the last message that have no result, in order."""
        if self.asked is None:
            return ()
        slots = enumerate(self.asked.slots)
        return tuple(self._made_up(self.asked, place, at_end=True) for place, slot in slots if slot is None)

    def resumable_conversation(self) -> ResumableConversation | None:
        """Return the conversation with its last calls open; None unless one of them waits for an approval.

        Also None if an interrupted rewind or a call of a lost response may have changed files since.
        """
        if self.asked is None or self.rewinding is not None or self.early:
            return None
        waited = [self.records.get(call.id, CallRecord()) for call in self.asked.calls]
        if not any(record.waits or (record.request is not None and not record.started) for record in waited):
            return None
        slots = [None if record.was_abandoned else slot for record, slot in zip(waited, self.asked.slots, strict=True)]
        in_order = list(takewhile(lambda slot: slot is not None, slots))
        rest = list(zip(self.asked.calls, waited, slots, strict=True))[len(in_order) :]
        kept = (*self.done, *(slot for slot in in_order if slot is not None))
        return ResumableConversation(kept, tuple(_open_call(call.id, record, slot) for call, record, slot in rest))

    def _answers(self, asked: _PendingAnswer | None, *, at_end: bool) -> list[ToolResultMessage]:
        """Return one result for each call."""
        if asked is None:
            return []
        slots = enumerate(asked.slots)
        return [slot or self._made_up(asked, place, at_end=at_end).result for place, slot in slots]

    def _made_up(self, asked: _PendingAnswer, place: int, *, at_end: bool) -> UnansweredCall:
        """Synthesise the result of a call. Before the end of a conversation, a missing start proves nothing: lines may
        be missing."""
        call = asked.calls[place]
        record = self.records.get(call.id, CallRecord())
        fate = record.fate if at_end or record.ended else "outcome_unknown"
        ended = record.ended
        result = ToolResultMessage(
            call_id=call.id,
            tool_name=call.name,
            content=(TextBlock(text=text_of(fate)),) if ended is None else ended.content,
            is_error=ended is None or ended.is_error,
            details=None if ended is None else ended.details,
            # Not random: a later resume finds the result of this one.
            id=record.result_id or f"msg_of_{call.id}",
            timestamp=asked.timestamp,
        )
        return UnansweredCall(call, place, fate, result, record.queued, record.result_id is not None)


def _open_call(call_id: str, record: CallRecord, message: ToolResultMessage | None) -> OpenCall:
    told = message or (None if record.was_abandoned else record.ended)
    if told is None and record.waits:
        layer_of = record.layer_of or call_id
        return OpenCall(call_id, "in_trial", request=record.request, answer=record.answer, layer_of=layer_of)
    if told is None:
        return OpenCall(call_id, record.open_fate, request=record.request)
    result = ToolResult(content=told.content, details=told.details, is_error=told.is_error)
    return OpenCall(call_id, "finished", result)


def _answer_of(event: ApprovalResolved) -> ApprovalDecision:
    """Return the answer to a question about changes; its rule was stored before anything else."""
    return ApprovalDecision(decision=event.decision, note=event.note, input=event.answers)


def _was_finished(message: Message) -> bool:
    """True for an answer that only a user message may follow; a paused one continues in the next (S4-84)."""
    return isinstance(message, AssistantMessage) and message.stop_reason != "pause_turn"
