"""What the events of a session say of files, and the moments one can go back to. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    FileChanged,
    FileState,
    MessageEnded,
    MessageStarted,
    SessionRewound,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.messages import UserMessage
from tui_agent.session.active_branch import active_events
from tui_agent.session.history_fold import ROOT_AGENT

from .rewind_plan import RewindPoint


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change of a file, as it was told."""

    seq: int
    path: str
    call_id: str | None
    known: bool
    before: FileState | None
    after: FileState | None
    added: int = 0
    removed: int = 0


def changes_in(envelopes: Iterable[Envelope]) -> list[RecordedChange]:
    """Every change of a file, also those of sub-agents and of earlier goings back, in order."""
    return [
        RecordedChange(
            envelope.seq, event.path, event.call_id, event.known, event.before, event.after, event.added, event.removed
        )
        for envelope in envelopes
        if isinstance(event := envelope.event, FileChanged)
    ]


def unobserved_commands(envelopes: Iterable[Envelope], after: int) -> int:
    """How many commands after an event changed nobody knows what, because nobody could look."""
    ends = (envelope.event for envelope in envelopes if envelope.seq > after)
    details = (event.details for event in ends if isinstance(event, ToolEnded))
    return sum(told is not None and "files_changed" in told and told["files_changed"] is None for told in details)


def interrupted_calls(envelopes: Iterable[Envelope], after: int) -> tuple[str, ...]:
    """Calls after an event that may have changed something when the program ended in their middle, in words."""
    started: dict[str, ToolStarted] = {}
    found: list[str] = []
    for envelope in envelopes:
        match envelope.event:
            case ToolStarted(read_only=False) as event if envelope.seq > after:
                started[event.call_id] = event
            case ToolEnded(status="interrupted", call_id=call_id) if call_id in started:
                begun = started.pop(call_id)
                found.append(f"{begun.name} {begun.summary}".strip())
            case _:
                pass
    return tuple(found)


def call_subtree(envelopes: Iterable[Envelope], call_id: str) -> frozenset[str]:
    """A call with all calls of the sub-agents it started, and of theirs."""
    found = {call_id}
    for envelope in envelopes:
        own = getattr(envelope.event, "call_id", None)
        if isinstance(own, str) and envelope.origin.parent_call_id in found:
            found.add(own)
    return frozenset(found)


def rewind_points(envelopes: Sequence[Envelope]) -> tuple[RewindPoint, ...]:
    """The moments before each thing that was said and is part of the conversation, and before each going back; the
    newest first."""
    points = [*_turns(active_events(envelopes)), *_rewind_moments(envelopes)]
    points.sort(key=lambda point: point.seq, reverse=True)
    changes = changes_in(envelopes)
    counted: list[RewindPoint] = []
    paths: set[str] = set()
    added = removed = 0
    for point in points:
        while changes and changes[-1].seq > point.seq:
            change = changes.pop()
            paths.add(change.path)
            added += change.added
            removed += change.removed
        counted.append(RewindPoint(point.seq, point.time, point.text, point.is_turn, len(paths), added, removed))
    return tuple(counted)


def _turns(path: Iterable[Envelope]) -> list[RewindPoint]:
    """The moments before what a person said."""
    begun: dict[str, int] = {}
    points: list[RewindPoint] = []
    for envelope in path:
        if envelope.origin.agent_id != ROOT_AGENT:
            continue
        match envelope.event:
            case MessageStarted(role="user", message_id=message_id):
                begun.setdefault(message_id, envelope.seq)
            case MessageEnded(message=UserMessage() as said) if said.is_from_user:
                seq = begun.get(said.id, envelope.seq) - 1
                points.append(RewindPoint(seq, envelope.ts, said.text))
            case _:
                pass
    return points


def _rewind_moments(envelopes: Iterable[Envelope]) -> list[RewindPoint]:
    """The moments before each going back."""
    return [
        RewindPoint(event.from_seq, envelope.ts, event.text, is_turn=False)
        for envelope in envelopes
        if isinstance(event := envelope.event, SessionRewound)
    ]
