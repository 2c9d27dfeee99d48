"""Which events a conversation rests on once a person went back: the journal only grows, what counts is a path in it."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from tui_agent.protocol.envelope import Envelope
from tui_agent.protocol.events import SessionLoaded, SessionRewinding, SessionRewound


def active_events(envelopes: Iterable[Envelope]) -> list[Envelope]:
    """The events without those that a person went back over, in order.

    A going back names an earlier event; what follows goes on from there. To go back to a moment before another going
    back brings back what that one took away. One that names no earlier event takes nothing away.
    """
    told = list(envelopes)
    if not any(_is_turn_back(one) for one in told):
        return told
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
    """The going back that was begun and never ended, where no one who went on with the session was told yet."""
    for envelope in reversed(envelopes):
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
