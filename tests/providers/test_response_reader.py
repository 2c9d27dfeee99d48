"""Conversion of the API's events into the engine's, including broken streams."""

from typing import Any

from tests.support.stream_helpers import calls_of
from tests.support.table import table
from tui_agent.protocol.messages import JsonObject, ToolCall, Usage
from tui_agent.protocol.provider import (
    StreamEvent,
    StreamStarted,
    TextDelta,
    UsageReported,
)
from tui_agent.providers.response_reader import ResponseReader


def started(**usage: int) -> JsonObject:
    return {"type": "message_start", "message": {"id": "msg_1", "model": "some-model", "usage": usage}}


def opened(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: int, kind: str, **fields: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def closed(index: int) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str | None, details: JsonObject | None = None, **usage: Any) -> JsonObject:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_details": details}, "usage": usage}


STOP: JsonObject = {"type": "message_stop"}


def text_block(index: int, text: str) -> list[JsonObject]:
    return [opened(index, "text", text=""), delta(index, "text_delta", text=text), closed(index)]


def call_block(index: int, call_id: str, name: str, raw: str) -> list[JsonObject]:
    return [opened(index, "tool_use", id=call_id, name=name, input={}), arguments(index, raw), closed(index)]


def arguments(index: int, raw: str) -> JsonObject:
    return delta(index, "input_json_delta", partial_json=raw)


def told(*events: JsonObject, taken: tuple[str, ...] = ()) -> list[StreamEvent]:
    """Return the facts that the events contain."""
    reader = ResponseReader(lambda call_id: call_id in taken)
    return [fact for event in events for fact in reader.read(event)]


def test_usage_counts_the_cache_and_keeps_what_is_not_reported_again() -> None:
    facts = told(
        started(input_tokens=3, cache_read_input_tokens=500, cache_creation_input_tokens=40, output_tokens=1),
        stopped("end_turn", output_tokens=9, input_tokens=None),
    )

    assert facts[-1] == UsageReported(
        Usage(input_tokens=3, output_tokens=9, cache_read_tokens=500, cache_write_tokens=40)
    )


@table("later", [opened(1, "text", text=""), stopped("tool_use"), STOP])
def test_a_malformed_call_is_reported_with_the_next_event(later: JsonObject) -> None:
    block = call_block(0, "c", "t", '{"a"')

    assert calls_of(told(*block)) == []
    assert [call.malformed is not None for call in calls_of(told(*block, later))] == [True]


def test_deltas_of_interleaved_calls_reach_their_own_call() -> None:
    facts = told(
        opened(0, "tool_use", id="a", name="t"),
        opened(1, "tool_use", id="b", name="t"),
        arguments(0, '{"x":'),
        arguments(1, '{"y":'),
        arguments(0, "1}"),
        arguments(1, "2}"),
        closed(1),
        closed(0),
    )

    assert calls_of(facts) == [
        ToolCall(id="b", name="t", arguments={"y": 2}),
        ToolCall(id="a", name="t", arguments={"x": 1}),
    ]
    newest = told(opened(3, "tool_use", id="a", name="t"), arguments(9, '{"x":1}'), closed(3))
    assert calls_of(newest) == [ToolCall(id="a", name="t", arguments={"x": 1})], "a wrong index means the newest call"


def test_missing_repeated_and_taken_ids_are_made_unique() -> None:
    events = [
        event for index, call_id in enumerate(["", "a", "a", "old"]) for event in call_block(index, call_id, "t", "{}")
    ]

    ids = [call.id for call in calls_of(told(*events, taken=("old",)))]

    assert len(set(ids)) == 4
    assert ids[1] == "a"
    assert "old" not in ids
    assert all(ids)


def test_unknown_events_are_skipped() -> None:
    facts = told(
        {"type": "ping"},
        {"type": "brand_new_event", "x": 1},
        {"type": {"odd": 1}},
        opened(0, "server_tool_use", id="s", name="web_search"),
        arguments(0, '{"q": 1}'),
        closed(0),
        delta(4, "citations_delta", citation={}),
        *text_block(1, "hi"),
        {"type": "content_block_delta"},
        {"type": "message_start", "message": None},
    )

    assert [fact for fact in facts if not isinstance(fact, StreamStarted)] == [TextDelta("hi", 1)]
