"""Removal of past events that no longer affect the screen, so that a long session is restored sooner."""

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
"""Events of which only the newest one of the root agent counts."""


def drop_superseded(past: Sequence[Envelope]) -> list[Envelope]:
    """Return the events without streamed arguments of complete calls and without superseded states, in order."""
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
