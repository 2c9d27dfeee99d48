"""Small folds over the events of a journal: the branch that is valid after rewinds, the queue, and lost programs."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    AgentEvent,
    BackgroundEnded,
    MessageEnded,
    ProcessStarted,
    SessionForked,
    SessionLoaded,
    SessionRewinding,
    SessionRewound,
    SteeringDropped,
    SteeringQueued,
    SteeringRequeued,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import TextBlock, UserMessage
from tui_agent.protocol.past_session import events_of
from tui_agent.protocol.run_events import HELD_REASON
from tui_agent.protocol.tool import StartedProcess

QUEUE_EVENTS = frozenset((SteeringQueued, SteeringDropped, SteeringRequeued, MessageEnded))
"""Events from which the queue is reconstructed."""

LOST_PROCESS_EVENTS = frozenset((ToolStarted, ProcessStarted, ToolEnded, BackgroundEnded, SessionForked))
"""Events from which lost programs are found."""


def active_events(envelopes: Iterable[Envelope]) -> Sequence[Envelope]:
    """Return the events without those that a rewind removed, in order.

    A rewind names an earlier event, from which the events after it continue. Rewinding to a moment before an earlier
    rewind restores what that one removed. A rewind that names no earlier event removes nothing.
    """
    told = envelopes if isinstance(envelopes, Sequence) else tuple(envelopes)
    # Nearly all sessions have no rewind: then nothing is copied, and no other event is parsed.
    rewinds = (one.event for one in events_of(told, (SessionRewound,)))
    if not any(isinstance(event, SessionRewound) and event.conversation for event in rewinds):
        return told
    told = list(told)
    seqs = [one.seq for one in told]
    before: list[int] = []
    tip = -1
    for place, one in enumerate(told):
        event = one.event
        if isinstance(event, SessionRewound) and event.conversation and event.to_seq < one.seq:
            tip = bisect_right(seqs, event.to_seq, hi=place) - 1
        before.append(tip)
        tip = place
    path: list[Envelope] = []
    while tip >= 0:
        path.append(told[tip])
        tip = before[tip]
    return path[::-1]


def interrupted_rewind(envelopes: Sequence[Envelope]) -> SessionRewinding | None:
    """Return the rewind that began last and never ended; None without one, or if a resume has reported it."""
    kinds = (SessionRewinding, SessionRewound, SessionLoaded)
    for envelope in reversed(list(events_of(envelopes, kinds))):
        match envelope.event:
            case SessionRewinding() as begun:
                return begun
            # The resume after it has already reported it.
            case SessionRewound() | SessionLoaded():
                return None
            case _:
                pass
    return None


class QueueFold:
    """The queue of one agent, by the events. A message that is gone keeps its place in case it is queued again."""

    def __init__(self) -> None:
        self._messages: dict[str, UserMessage] = {}
        self._steers: list[str] = []
        self._follow_ups: list[str] = []
        self._gone: set[str] = set()

    def apply(self, envelope: Envelope) -> None:
        """Apply one event."""
        match envelope.event:
            case SteeringQueued() as event:
                self._put(event.message or _queued_message(event, envelope.ts), event)
            case SteeringDropped(reason=reason) if reason == HELD_REASON:
                pass
            case SteeringDropped(message_id=message_id) | MessageEnded(message_id=message_id):
                self._gone.add(message_id)
            case SteeringRequeued(message_id=message_id):
                self._gone.discard(message_id)
            case _:
                pass

    def _put(self, message: UserMessage, event: SteeringQueued) -> None:
        """Put a message at the place that the event names, among those that are not gone."""
        self._gone.discard(event.message_id)
        for queue in (self._steers, self._follow_ups):
            if event.message_id in queue:
                queue.remove(event.message_id)
        self._messages[event.message_id] = message
        queue = self._follow_ups if event.kind == "follow_up" else self._steers
        here = [one for one in queue if one not in self._gone]
        place = queue.index(here[event.position]) if event.position < len(here) else len(queue)
        queue.insert(place, event.message_id)

    def waiting(self) -> tuple[UserMessage, ...]:
        """Return the messages that still wait: steering messages, then follow-ups, each in order of delivery."""
        return tuple(self._messages[one] for one in (*self._steers, *self._follow_ups) if one not in self._gone)


def _queued_message(event: SteeringQueued, timestamp: int) -> UserMessage:
    return UserMessage(content=(TextBlock(text=event.text),), id=event.message_id, kind=event.kind, timestamp=timestamp)


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A program whose call did not end before tui-agent was killed."""

    process: StartedProcess
    command: str
    """The call in one line, as its tool summarises it."""


class LostProcessFold:
    """State of the fold over a journal.

    A resume marks the calls of lost programs as interrupted, which does not end the programs: later resumes find them
    again.
    """

    def __init__(self) -> None:
        self._lost: dict[str, LostProcess] = {}
        self._commands: dict[str, str] = {}
        self._calls_of_tasks: dict[str, str] = {}
        self._ended: set[str] = set()

    def apply(self, event: AgentEvent) -> None:
        """Apply the next event."""
        match event:
            case ToolStarted(call_id=call_id, summary=summary, mark=mark):
                self._commands[call_id] = summary
                if mark:
                    # The program may run although its own event was lost.
                    self._lost[call_id] = LostProcess(StartedProcess(pid=0, started=0, mark=mark), summary)
            case ProcessStarted(call_id=call_id) as started:
                process = StartedProcess(**started.model_dump(include=set(StartedProcess.model_fields)))
                self._lost[call_id] = LostProcess(process, self._commands.get(call_id, ""))
            case ToolEnded(call_id=call_id, details={"task_id": str(task_id)}, name="bash") if (
                task_id not in self._ended
            ):
                self._calls_of_tasks[task_id] = call_id  # Its command runs on in the background.
            case ToolEnded(call_id=call_id, status=status) if status != "interrupted":
                self._lost.pop(call_id, None)
            case BackgroundEnded(task_id=task_id, status=status) if status != "unknown":
                self._ended.add(task_id)
                self._lost.pop(self._calls_of_tasks.get(task_id, ""), None)
            case SessionForked():
                self._lost.clear()  # The programs belong to the original session, which may be open.
            case _:
                pass

    def found(self) -> tuple[LostProcess, ...]:
        """Return the programs, oldest first."""
        return tuple(self._lost.values())
