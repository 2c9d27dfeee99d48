"""Events that are valid after rewinds, compared with a naive model, and in whole sessions."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.protocol.envelope import Envelope, Origin
from tui_agent.protocol.events import Noticed, SessionRewound
from tui_agent.protocol.messages import user_message
from tui_agent.session.event_folds import active_events


def back(to_seq: int, seq: int, *, conversation: bool = True, says: str = "") -> SessionRewound:
    notice = user_message(says, "notice") if says else None
    return SessionRewound(to_seq=to_seq, from_seq=seq - 1, text="x", conversation=conversation, notice=notice)


def told(goings_back: Sequence[int | None]) -> list[Envelope]:
    """Return one event a number: a rewind to that number, or any other event."""
    return [
        Envelope(
            Noticed(code="x", text="x") if to_seq is None else back(to_seq, seq),
            seq=seq,
            ts=0,
            mono=0.0,
            origin=Origin(),
        )
        for seq, to_seq in enumerate(goings_back, start=1)
    ]


def naive(goings_back: Sequence[int | None]) -> list[int]:
    """Return the valid numbers, stored for every moment."""
    states: list[list[int]] = [[]]
    for seq, to_seq in enumerate(goings_back, start=1):
        before = states[-1] if to_seq is None or not 0 <= to_seq < seq else states[to_seq]
        states.append([*before, seq])
    return states[-1]


@given(st.lists(st.none() | st.integers(0, 12), max_size=14))
def test_the_path_equals_that_of_a_naive_reader(goings_back: list[int | None]) -> None:
    assert [one.seq for one in active_events(told(goings_back))] == naive(goings_back)


def test_a_rewind_of_files_alone_keeps_the_conversation() -> None:
    envelopes = [*told([None, None]), Envelope(back(0, 3, conversation=False), 3, 0, 0.0, Origin())]

    assert active_events(envelopes) == envelopes
