"""A session's past: its events, and the open calls and compactions that a resumed agent continues.

Events are kept as their lines of JSON, a fifth of their size in memory, and parsed when they are read. A screen can
leave out those that later ones supersede."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, overload

from .envelope import Envelope, event_classes, read_envelope
from .events import ContextUsage, MessageDelta, MessageDiscarded, MessageEnded, RequestBuilt, StatusChanged
from .messages import FrozenModel, Message, ToolResultMessage, UserMessage
from .permissions import ApprovalDecision, ApprovalRequest
from .tool import ToolResult

PADDING = b"\0 \t\r\n"
"""Bytes around the event of a line."""


class LazyEvents(Sequence[Envelope]):
    """The events of a journal's bytes. Each access parses: iterate once, or over the kinds that matter."""

    def __init__(self, data: bytes) -> None:
        """Begin without events; `add` adds one for each line of `data` that holds one."""
        self._data = data
        self._starts = array("Q")
        self._kinds = array("H")
        self._names = tuple(event_classes().values())
        self._numbers: dict[type[FrozenModel], int] = {kind: number for number, kind in enumerate(self._names)}

    def add(self, start: int, envelope: Envelope) -> None:
        """Add the event of the line that begins at byte `start` of the data; in order."""
        self._starts.append(start)
        self._kinds.append(self._numbers[type(envelope.event)])

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> Envelope: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Envelope]: ...
    def __getitem__(self, place: int | slice) -> Envelope | Sequence[Envelope]:
        if isinstance(place, slice):
            return tuple(map(self._parse, self._starts[place]))
        return self._parse(self._starts[place])

    def __iter__(self) -> Iterator[Envelope]:
        return map(self._parse, self._starts)

    def kind_at(self, place: int) -> type[FrozenModel]:
        """Return the class of an event without parsing it."""
        return self._names[self._kinds[place]]

    def of(self, kinds: Collection[type[FrozenModel]]) -> Iterator[Envelope]:
        """Yield the events of some classes; the others are not parsed."""
        numbers = frozenset(self._numbers[kind] for kind in kinds)
        return (self._parse(start) for start, kind in zip(self._starts, self._kinds, strict=True) if kind in numbers)

    def _parse(self, start: int) -> Envelope:
        end = self._data.find(b"\n", start)
        line = self._data[start:] if end < 0 else self._data[start:end]
        envelope = read_envelope(line.strip(PADDING))
        assert envelope is not None, "only lines with an event are added"
        return envelope


def events_of(envelopes: Iterable[Envelope], kinds: Collection[type[FrozenModel]]) -> Iterator[Envelope]:
    """Yield the events of some classes, in order."""
    if isinstance(envelopes, LazyEvents):
        return envelopes.of(kinds)
    return (one for one in envelopes if type(one.event) in kinds)


def kind_at(envelopes: Sequence[Envelope], place: int) -> type[FrozenModel]:
    """Return the class of one of the events."""
    return envelopes.kind_at(place) if isinstance(envelopes, LazyEvents) else type(envelopes[place].event)


LAST_COUNTS: frozenset[type[FrozenModel]] = frozenset((StatusChanged, ContextUsage, RequestBuilt))
"""Events of which only the newest one of the root agent counts."""


def drop_superseded(past: Sequence[Envelope]) -> Iterator[Envelope]:
    """Yield the events without streamed arguments of complete calls and without superseded states, in order."""
    last = set(_last_states(past))
    held: list[Envelope] = []
    """Events from the first streamed argument whose message may still end."""
    open_messages: set[str] = set()
    for place in range(len(past)):
        if kind_at(past, place) in LAST_COUNTS and place not in last:
            continue
        envelope = past[place]
        match envelope.event:
            case MessageDelta(kind="toolcall", message_id=message_id):
                open_messages.add(message_id)
            case MessageEnded(message_id=message_id) | MessageDiscarded(message_id=message_id) if (
                message_id in open_messages
            ):
                open_messages.discard(message_id)
                held = [one for one in held if not _is_argument_of(one, message_id)]
            case _:
                pass
        if open_messages:
            held.append(envelope)
            continue
        yield from held
        held.clear()
        yield envelope
    yield from held


def _last_states(past: Sequence[Envelope]) -> Iterator[int]:
    """Yield the place of the newest event of the root agent of each class of `LAST_COUNTS`."""
    wanted = set(LAST_COUNTS)
    for place in range(len(past) - 1, -1, -1):
        if not wanted:
            return
        kind = kind_at(past, place)
        if kind in wanted and not past[place].origin.depth:
            wanted.discard(kind)
            yield place


def _is_argument_of(envelope: Envelope, message_id: str) -> bool:
    event = envelope.event
    return isinstance(event, MessageDelta) and event.kind == "toolcall" and event.message_id == message_id


Fate = Literal["not_started", "in_trial", "outcome_unknown", "finished"]
"""The known state of a call whose run broke off; `in_trial`: it started in a trial, and none of its changes
were kept."""


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call of the last answer that had no result when its process ended."""

    call_id: str
    fate: Fate
    result: ToolResult | None = None
    """Its result if it had finished."""
    request: ApprovalRequest | None = None
    """Its approval request if it waited for the user."""
    answer: ApprovalDecision | None = None
    """Answer of the user about its changes, which the program no longer carried out."""
    layer_of: str = ""
    """Id of the call under which its layer waits; empty if none does."""


@dataclass(frozen=True, slots=True)
class PastCompaction:
    """A compaction of an earlier process with the messages it removed, so that it can still be undone."""

    strategy: str
    removed: tuple[Message, ...]
    replacement: UserMessage | None
    cut: tuple[tuple[ToolResultMessage, ToolResultMessage], ...]
    """Results that were shortened: before and after."""
    tokens_before: int = 0
    tokens_after: int = 0
    """Estimated tokens of the conversation; 0 if they are not known."""
    length: int = 0
    """Number of messages right after it."""
