"""The past of a session without what nobody sees any more: a long session is back sooner, and looks the same."""

from collections.abc import Sequence

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import (
    ContextUsage,
    MessageDelta,
    MessageDiscarded,
    MessageEnded,
    RequestBuilt,
    StatusChanged,
)
from tui_agent.protocol.messages import FrozenModel

LAST_COUNTS: frozenset[type[FrozenModel]] = frozenset((StatusChanged, ContextUsage, RequestBuilt))
"""Of these, the newest that the root agent told replaces all others."""


def drop_superseded(past: Sequence[Envelope]) -> list[Envelope]:
    """The events that a later one does not replace, in order: calls being written, and states that were left again."""
    kept: list[Envelope] = []
    known: set[type[FrozenModel]] = set()
    complete: set[str] = set()
    for envelope in reversed(past):
        event = envelope.event
        match event:
            case MessageDelta(kind="toolcall", message_id=message_id) if message_id in complete:
                continue
            case MessageEnded(message_id=message_id) | MessageDiscarded(message_id=message_id):
                complete.add(message_id)
            case _ if type(event) in LAST_COUNTS:
                if envelope.origin.depth or type(event) in known:
                    continue
                known.add(type(event))
            case _:
                pass
        kept.append(envelope)
    kept.reverse()
    return kept
