"""The events that are still valid after rewinds. A journal only grows; a rewind starts a branch at an earlier event."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionLoaded, SessionRewinding, SessionRewound
from tui_agent.protocol.past_session import events_of


def active_events(envelopes: Iterable[Envelope]) -> Sequence[Envelope]:
    """Return the events without those that a rewind removed, in order.

    A rewind names an earlier event, from which the events after it continue. Rewinding to a moment before an earlier
    rewind restores what that one removed. A rewind that names no earlier event removes nothing.
    """
    told = envelopes if isinstance(envelopes, Sequence) else tuple(envelopes)
    if not any(_is_turn_back(one) for one in events_of(told, (SessionRewound,))):
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
    """Return a rewind that began and never ended, unless an earlier resume already reported it."""
    kinds = (SessionRewinding, SessionRewound, SessionLoaded)
    for envelope in reversed(list(events_of(envelopes, kinds))):
        match envelope.event:
            case SessionRewinding() as begun:
                return begun
            case SessionRewound() | SessionLoaded():
                return None
            case _:
                pass
    return None


def _is_turn_back(envelope: Envelope) -> bool:
    return isinstance(envelope.event, SessionRewound) and envelope.event.conversation
