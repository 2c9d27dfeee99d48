"""Events are the same whatever pieces their bytes arrive in."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_agent.providers import response_decoder
from tui_agent.providers.response_decoder import ServerSentEvent, SseReader

STREAM = (
    b": a comment\n\n"
    b'event: message_start\ndata: {"a":1}\n\n'
    b"event: ping\ndata:{}\n\n"
    b"data: two\r\ndata: lines\r\n\r\n"
    b"event: nothing\n\n\n"
    b"id: 7\rretry: 3\revent: old\rdata: mac\r\r"
    b"data: \xe2\x80\xa8line separator\xc2\x85next line\n\n"
    b"data: cut off"
)
EVENTS = [
    ServerSentEvent("message_start", '{"a":1}'),
    ServerSentEvent("ping", "{}"),
    ServerSentEvent("", "two\nlines"),
    ServerSentEvent("old", "mac"),
    ServerSentEvent("", "\u2028line separator\u0085next line"),
]


def read_all(*chunks: bytes) -> list[ServerSentEvent]:
    reader = SseReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_any_pieces_give_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]

    assert read_all(*(STREAM[a:b] for a, b in pairwise(places))) == EVENTS


def test_an_endless_event_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_decoder, "LONGEST_EVENT", 1000)

    with pytest.raises(ValueError, match="too long"):
        read_all(b"data: ", b"x" * 2000)
