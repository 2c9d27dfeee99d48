"""Past events that a screen can leave out, because later ones supersede them."""

from collections.abc import Iterator, Sequence

from .envelope import Envelope
from .event_lines import kind_at
from .events import ContextUsage, MessageDelta, MessageDiscarded, MessageEnded, RequestBuilt, StatusChanged
from .messages import FrozenModel

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
