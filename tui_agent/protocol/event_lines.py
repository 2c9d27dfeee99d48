"""Events kept as their lines of JSON, a fifth of their size in memory, and parsed when they are read."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import overload

from .envelope import Envelope, event_classes, read_envelope
from .messages import FrozenModel

PADDING = b"\0 \t\r\n"
"""Bytes around the event of a line."""


class EventLines(Sequence[Envelope]):
    """The events of a journal's bytes. Each access parses: iterate once, or over the kinds that matter."""

    def __init__(self, data: bytes) -> None:
        """Begin without events; `add` adds one for each line of `data` that holds one."""
        self._data = data
        self._starts = array("Q")
        self._kinds = array("H")
        self._names = tuple(event_classes().values())
        self._numbers: dict[type[FrozenModel], int] = {kind: number for number, kind in enumerate(self._names)}

    def add(self, start: int, envelope: Envelope) -> None:
        """Add the event of the line at an offset."""
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
    if isinstance(envelopes, EventLines):
        return envelopes.of(kinds)
    return (one for one in envelopes if type(one.event) in kinds)


def kind_at(envelopes: Sequence[Envelope], place: int) -> type[FrozenModel]:
    """Return the class of one of the events."""
    return envelopes.kind_at(place) if isinstance(envelopes, EventLines) else type(envelopes[place].event)
