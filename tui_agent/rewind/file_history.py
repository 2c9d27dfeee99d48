"""Changes of files and rewind points in the events of a session, without any I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ChangesKept,
    FileChanged,
    FileState,
    MessageEnded,
    MessageStarted,
    SessionRewound,
    ToolData,
    ToolEnded,
    ToolStarted,
)
from tui_agent.protocol.facts.change_facts import RewindPoint
from tui_agent.protocol.messages import UserMessage
from tui_agent.protocol.tool import EFFECTS_DATA
from tui_agent.session.active_branch import active_events
from tui_agent.session.history_fold import ROOT_AGENT


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """A change of a file, as the journal has it."""

    seq: int
    path: str
    call_id: str | None
    known: bool
    before: FileState | None
    after: FileState | None
    added: int = 0
    removed: int = 0


def changes_in(envelopes: Iterable[Envelope]) -> list[RecordedChange]:
    """Return all changes of files in order, including those of sub-agents and of earlier rewinds."""
    return [
        RecordedChange(
            envelope.seq, event.path, event.call_id, event.known, event.before, event.after, event.added, event.removed
        )
        for envelope in envelopes
        if isinstance(event := envelope.event, FileChanged)
    ]


def unobserved_commands(envelopes: Iterable[Envelope], after: int) -> int:
    """Return the number of commands after an event whose changes are unknown, because the tree was not compared."""
    unknown: set[str] = set()
    for envelope in envelopes:
        match envelope.event:
            case ToolEnded(call_id=call_id, details={"files_changed": None}) if envelope.seq > after:
                unknown.add(call_id)
            case ToolData(call_id=call_id, kind=kind, data={"files_changed": int()}) if kind == EFFECTS_DATA:
                unknown.discard(call_id)
            case _:
                pass
    return len(unknown)


def uncovered_targets(envelopes: Iterable[Envelope]) -> tuple[str, ...]:
    """Return what the commands of these events named and changed, and of which nothing was saved."""
    found: dict[str, None] = {}
    for envelope in envelopes:
        match envelope.event:
            case (
                ToolEnded(details={"not_covered": [*names]}) | ToolData(kind="effects", data={"not_covered": [*names]})
            ):
                found |= dict.fromkeys(map(str, names))
            case _:
                pass
    return tuple(found)


def interrupted_calls(envelopes: Iterable[Envelope], after: int) -> tuple[str, ...]:
    """Return tool and summary of each call after an event that was interrupted and may have changed something."""
    started: dict[str, ToolStarted] = {}
    untouched: set[str] = set()
    found: list[str] = []
    for envelope in envelopes:
        match envelope.event:
            case ToolStarted(read_only=False) as event if envelope.seq > after:
                started[event.call_id] = event
                # Of a trial nothing is in the workspace before it is kept.
                untouched |= {event.call_id} if event.place != "outside" else set()
            case ChangesKept(call_id=call_id):
                untouched.discard(call_id)
            case ToolEnded(status="interrupted", call_id=call_id) if call_id in untouched:
                pass
            case ToolEnded(status="interrupted", call_id=call_id) if call_id in started:
                begun = started.pop(call_id)
                found.append(f"{begun.name} {begun.summary}".strip())
            case _:
                pass
    return tuple(found)


def call_subtree(envelopes: Iterable[Envelope], call_id: str) -> frozenset[str]:
    """Return the ids of a call, of one that ran for it, of all calls of the sub-agents it started, and of theirs."""
    found = {call_id}
    for envelope in envelopes:
        if isinstance(envelope.event, ToolStarted) and envelope.event.call_id in found and envelope.event.adopted_from:
            found.add(envelope.event.adopted_from)
        own = getattr(envelope.event, "call_id", None)
        if isinstance(own, str) and envelope.origin.parent_call_id in found:
            found.add(own)
    return frozenset(found)


def rewind_points(envelopes: Sequence[Envelope]) -> tuple[RewindPoint, ...]:
    """Return the moments before each user message in the conversation and before each rewind, newest first."""
    points = [*_turns(active_events(envelopes)), *_rewinds(envelopes)]
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
    """Return the moments before the messages of the user."""
    begun: dict[str, int] = {}
    points: list[RewindPoint] = []
    for envelope in path:
        if envelope.origin.agent_id != ROOT_AGENT:
            continue
        match envelope.event:
            case MessageStarted(role="user", message_id=message_id):
                begun.setdefault(message_id, envelope.seq)
            case MessageEnded(message=UserMessage() as message) if message.is_from_user:
                seq = begun.get(message.id, envelope.seq) - 1
                points.append(RewindPoint(seq, envelope.ts, message.text))
            case _:
                pass
    return points


def _rewinds(envelopes: Iterable[Envelope]) -> list[RewindPoint]:
    """Return the moments before each rewind."""
    return [
        RewindPoint(event.from_seq, envelope.ts, event.text, is_turn=False)
        for envelope in envelopes
        if isinstance(event := envelope.event, SessionRewound)
    ]
