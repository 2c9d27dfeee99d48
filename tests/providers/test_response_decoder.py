"""Whatever bytes a server sends, in whatever pieces, an answer is events and then at most one `ProviderError`."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stream_helpers import folded
from tui_agent.protocol.provider import StreamEnded, StreamEvent
from tui_agent.providers import response_decoder
from tui_agent.providers.demo.demo_server import (
    block_frames,
    closing_frames,
    opening_frames,
)
from tui_agent.providers.provider_failures import ErrorFactory
from tui_agent.providers.response_decoder import ResponseDecoder, ServerSentEvent, SseReader

BLOCKS = (
    {"type": "thinking", "thinking": "hm", "signature": "c2lnbmF0dXJl"},
    {"type": "text", "text": "hello 🙂 world"},
    {"type": "tool_use", "id": "c1", "name": "read", "input": json.dumps({"path": "a"})},
)
RECORDED = b"".join(
    [
        *opening_frames("m1", "model", {"input_tokens": 1}),
        *(frame for index, block in enumerate(BLOCKS) for frame in block_frames(index, block)),
        *closing_frames("tool_use", 20),
    ]
)


def fold() -> ResponseDecoder:
    return ResponseDecoder(ErrorFactory(), "req_1", lambda call_id: False)


def facts_of(*chunks: bytes) -> list[StreamEvent]:
    one = fold()
    return [fact for chunk in chunks for fact in one.facts(chunk)]


@given(st.lists(st.integers(0, len(RECORDED)), max_size=8))
def test_pieces_of_any_size_give_the_same_events(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(RECORDED)]

    assert facts_of(*(RECORDED[a:b] for a, b in pairwise(places))) == facts_of(RECORDED)


@given(st.lists(st.tuples(st.integers(0, len(RECORDED) - 1), st.binary(max_size=4)), min_size=1, max_size=6))
def test_a_damaged_answer_is_events_and_at_most_a_provider_error(damages: list[tuple[int, bytes]]) -> None:
    damaged = bytearray(RECORDED)
    for place, data in damages:
        damaged[place : place + len(data)] = data

    seen, error = folded(fold().facts(bytes(damaged)))

    assert error is None or error.kind in ("bad_response", "server")
    assert sum(isinstance(fact, StreamEnded) for fact in seen) <= 1


@given(st.integers(0, len(RECORDED)))
def test_wherever_an_answer_ends_it_is_complete_once_its_reason_for_stopping_is_there(end: int) -> None:
    one = fold()
    told = list(one.facts(RECORDED[:end]))
    told += one.finish()

    has_reason = end >= RECORDED.index(b"event: message_stop")
    assert one.complete is has_reason
    assert sum(isinstance(fact, StreamEnded) for fact in told) == has_reason


@given(st.binary(max_size=200))
def test_noise_is_never_another_error(noise: bytes) -> None:
    _, error = folded(fold().facts(noise + b"\n\n"))

    assert error is None or error.kind in ("bad_response", "server")


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
