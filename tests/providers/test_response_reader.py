"""Conversion of the API's events into the engine's, including broken streams."""

from typing import get_args

import pytest

from tests.support.stream_helpers import calls_of
from tests.support.table import table
from tests.support.wire_events import (
    STOP,
    arguments,
    call_block,
    closed,
    delta,
    opened,
    started,
    stopped,
    text_block,
    told,
)
from tui_agent.protocol.messages import JsonObject, StopReason, ThinkingBlock, ToolCall, Usage
from tui_agent.protocol.provider import (
    StreamEnded,
    StreamStarted,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
    UsageReported,
)


def test_text_is_reported_as_it_arrives() -> None:
    facts = told(
        started(input_tokens=3, output_tokens=1),
        opened(0, "text", text="He"),
        delta(0, "text_delta", text="llo"),
        closed(0),
        stopped("end_turn", output_tokens=9),
        STOP,
    )

    assert facts == [
        StreamStarted("some-model", Usage(input_tokens=3, output_tokens=1)),
        TextDelta("He", 0),
        TextDelta("llo", 0),
        UsageReported(Usage(input_tokens=3, output_tokens=9)),
        StreamEnded("end_turn"),
    ]


def test_usage_counts_the_cache_and_keeps_what_is_not_reported_again() -> None:
    facts = told(
        started(input_tokens=3, cache_read_input_tokens=500, cache_creation_input_tokens=40, output_tokens=1),
        stopped("end_turn", output_tokens=9, input_tokens=None),
    )

    assert facts[-1] == UsageReported(
        Usage(input_tokens=3, output_tokens=9, cache_read_tokens=500, cache_write_tokens=40)
    )


def test_reasoning_keeps_its_signature() -> None:
    facts = told(
        opened(0, "thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="let me "),
        delta(0, "thinking_delta", thinking="see"),
        delta(0, "signature_delta", signature="c2ln"),
        closed(0),
        opened(1, "redacted_thinking", data="ZW5j"),
        closed(1),
    )

    assert facts == [
        ThinkingDelta("let me ", 0),
        ThinkingDelta("see", 0),
        ThinkingEnded(ThinkingBlock(thinking="let me see", signature="c2ln"), 0),
        ThinkingEnded(ThinkingBlock(thinking="", redacted="ZW5j"), 1),
    ]


def test_reasoning_that_is_not_shown_still_keeps_its_signature() -> None:
    facts = told(opened(0, "thinking", thinking=""), delta(0, "signature_delta", signature="c2ln"), closed(0))

    assert facts == [ThinkingEnded(ThinkingBlock(thinking="", signature="c2ln"), 0)]


def test_a_call_is_reported_at_the_end_of_its_block() -> None:
    facts = told(
        opened(1, "tool_use", id="c1", name="read", input={}),
        arguments(1, ""),
        arguments(1, '{"path"'),
        arguments(1, ': "a"}'),
    )
    assert facts == [
        ToolCallStarted("c1", "read", 1),
        ToolCallDelta("c1", '{"path"', 1),
        ToolCallDelta("c1", ': "a"}', 1),
    ]

    ended = told(*call_block(1, "c1", "read", '{"path": "a"}'))

    assert ended[-1] == ToolCallEnded(ToolCall(id="c1", name="read", arguments={"path": "a"}), 1)


@table(
    ("raw", "arguments_read"),
    [("", {}), ("  ", {}), ("null", {}), ("{}", {}), ('"{\\"a\\": 1}"', {"a": 1}), ('{"a": 1}', {"a": 1})],
)
def test_arguments_are_read_in_every_form_that_means_an_object(raw: str, arguments_read: JsonObject) -> None:
    (call,) = calls_of(told(*call_block(0, "c", "t", raw), stopped("tool_use"), STOP))

    assert call == ToolCall(id="c", name="t", arguments=arguments_read)


@table("raw", ['{"a": ', "[1]", "7", "not json", '"text"'])
def test_arguments_that_are_not_an_object_make_a_malformed_call(raw: str) -> None:
    (call,) = calls_of(told(*call_block(0, "c", "t", raw), stopped("tool_use"), STOP))

    assert call.malformed
    assert not call.cut
    assert call.arguments == {}


@table("later", [opened(1, "text", text=""), stopped("tool_use"), STOP])
def test_a_malformed_call_is_reported_with_the_next_event(later: JsonObject) -> None:
    block = call_block(0, "c", "t", '{"a"')

    assert calls_of(told(*block)) == []
    assert [call.malformed is not None for call in calls_of(told(*block, later))] == [True]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
def test_the_output_limit_cuts_the_call_it_hit(reason: str) -> None:
    facts = told(
        *call_block(0, "whole", "write", '{"path": "a"}'),
        *call_block(1, "cut", "write", '{"path": "a.py", "content": "x'),
        stopped(reason),
        STOP,
    )

    assert calls_of(facts) == [
        ToolCall(id="whole", name="write", arguments={"path": "a"}),
        ToolCall(id="cut", name="write", cut=True),
    ]
    assert facts[-1] == StreamEnded(reason)  # type: ignore[arg-type]


@table("reason", ["max_tokens", "tool_use", "refusal"])
def test_a_call_whose_block_never_ended_is_cut(reason: str) -> None:
    facts = told(*call_block(0, "c", "write", '{"path": "a"}', ended=False), stopped(reason), STOP)

    assert calls_of(facts) == [ToolCall(id="c", name="write", cut=True)]


def test_a_call_of_a_stream_that_broke_off_never_surfaces() -> None:
    facts = told(started(), *call_block(0, "c", "write", '{"path": "a"}', ended=False))

    assert calls_of(facts) == []
    assert not any(isinstance(fact, StreamEnded) for fact in facts)


def test_the_end_of_a_call_is_reported_once() -> None:
    facts = told(*call_block(0, "c", "t", "{}"), closed(0), closed(7), stopped("tool_use"), STOP, STOP)

    assert len(calls_of(facts)) == 1
    assert sum(isinstance(fact, StreamEnded) for fact in facts) == 1


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


def test_a_delta_with_a_wrong_index_goes_to_the_newest_open_call() -> None:
    facts = told(opened(3, "tool_use", id="a", name="t"), arguments(9, '{"x":1}'), closed(3))

    assert calls_of(facts) == [ToolCall(id="a", name="t", arguments={"x": 1})]


def test_arguments_in_the_start_of_a_block_are_used() -> None:
    facts = told(opened(0, "tool_use", id="a", name="t", input={"x": 1}), closed(0))

    assert calls_of(facts) == [ToolCall(id="a", name="t", arguments={"x": 1})]


def test_missing_repeated_and_taken_ids_are_made_unique() -> None:
    events = [
        event for index, call_id in enumerate(["", "a", "a", "old"]) for event in call_block(index, call_id, "t", "{}")
    ]

    ids = [call.id for call in calls_of(told(*events, taken=("old",)))]

    assert len(set(ids)) == 4
    assert ids[1] == "a"
    assert "old" not in ids
    assert all(ids)


@table("reason", [reason for reason in get_args(StopReason) if reason != "other"])
def test_every_stop_reason_of_the_api_is_reported(reason: StopReason) -> None:
    assert told(started(), stopped(reason), STOP)[-1] == StreamEnded(reason)


def test_an_unknown_stop_reason_is_reported_with_its_name() -> None:
    assert told(stopped("solar_flare"), STOP)[-1] == StreamEnded("other", "solar_flare")


def test_a_stop_without_reason_is_reported() -> None:
    assert told(stopped(None), STOP)[-1] == StreamEnded("other", "the model gave no reason for stopping")


@table(
    ("details", "words"),
    [({"explanation": "I may not.", "category": "cyber"}, "I may not."), ({"category": "cyber"}, "cyber"), (None, "")],
)
def test_a_refusal_is_reported_with_the_models_explanation(details: JsonObject | None, words: str) -> None:
    assert told(stopped("refusal", details), STOP)[-1] == StreamEnded("refusal", words)


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
