"""The fold of a stream into one answer (S4-14, S4-47 … S4-55)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agent.response_accumulator import (
    StepState,
    accumulate,
    build_message,
    build_partial,
    finalize_unended_tool_calls,
)
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import (
    TextBlock,
    ThinkingBlock,
    ToolCall,
    parse_tool_call,
)
from tui_agent.protocol.provider import (
    StreamEnded,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingEnded,
    ToolCallDelta,
    ToolCallEnded,
    ToolCallStarted,
)


def _folded(*events: StreamEvent, state: StepState | None = None) -> tuple[StepState, list[MessageDelta | ToolCall]]:
    """Return the state after the events, and their output: text to show and calls to run."""
    state = state or StepState(message_id="m")
    given_out = [accumulate(state, event) for event in events]
    return state, [item for item in given_out if item is not None]


def _call(call_id: str, name: str = "read", raw: str = "{}", *, block: int = 0) -> list[StreamEvent]:
    """Return the events of one whole call."""
    return [
        ToolCallStarted(call_id, name, block),
        ToolCallDelta(call_id, raw, block),
        ToolCallEnded(parse_tool_call(call_id, name, raw), block),
    ]


def test_a_split_surrogate_pair_is_joined_and_half_a_pair_is_replaced() -> None:
    state = StepState()

    shown = [accumulate(state, TextDelta(piece)) for piece in ("a\ud83d", "\ude00b", "\ude00c\ud83d")]

    assert [delta.delta for delta in shown if isinstance(delta, MessageDelta)] == [
        "a",
        "\N{GRINNING FACE}b",
        "\N{REPLACEMENT CHARACTER}c",
    ]
    assert build_message(state).text == "a\N{GRINNING FACE}b\N{REPLACEMENT CHARACTER}c\N{REPLACEMENT CHARACTER}"


def test_arguments_of_a_foreign_provider_that_are_not_json_are_dropped() -> None:
    state = StepState()

    call = accumulate(state, ToolCallEnded(ToolCall(id="c1", name="look", arguments={"at": {1}})))

    assert isinstance(call, ToolCall)
    assert (call.arguments, call.malformed) == ({}, "arguments are not JSON")


def test_two_consecutive_thinking_blocks_stay_two() -> None:
    first, second = ThinkingBlock(thinking="a", signature="1"), ThinkingBlock(thinking="", redacted="2")
    state, _ = _folded(ThinkingDelta("a"), ThinkingEnded(first), ThinkingEnded(second), TextDelta("x"))

    assert build_message(state).content[:2] == (first, second)


def test_calls_with_empty_and_repeated_ids_stay_distinct() -> None:
    events = [*_call("", raw='{"n": 1}'), *_call("", raw='{"n": 2}'), *_call("0", raw='{"n": 3}'), *_call("used")]

    state, given_out = _folded(*events, state=StepState(is_taken=lambda call_id: call_id == "used"))

    calls = [item for item in given_out if isinstance(item, ToolCall)]
    assert [call.arguments.get("n") for call in calls] == [1, 2, 3, None]
    assert len({call.id for call in calls}) == 4
    assert calls[2].id == "0"
    assert calls[3].id != "used"
    assert build_message(state).tool_calls == tuple(calls)


def test_blank_text_is_not_sent_back() -> None:
    state, _ = _folded(TextDelta(" \n"), ThinkingDelta("  ", 1), *_call("c1"))

    assert [block.type for block in build_message(state).content] == ["tool_call"]


def test_a_partial_answer_keeps_text_finished_calls_and_signed_thinking() -> None:
    signed = ThinkingBlock(thinking="a", signature="s")
    state, _ = _folded(
        ThinkingDelta("a"),
        ThinkingEnded(signed),
        TextDelta("I will look", 1),
        *_call("c1", block=2),
        ToolCallStarted("c2", "edit", 3),
        ToolCallDelta("c2", '{"pa', 3),
        ThinkingDelta("unfinished", 4),
    )

    partial = build_partial(state)

    assert partial is not None
    assert partial.id == "m"
    assert partial.content == (signed, TextBlock(text="I will look"), ToolCall(id="c1", name="read"))


pieces = st.lists(st.text(max_size=6), max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["text", "thinking", "call"]), pieces), max_size=6))
def test_the_shown_text_adds_up_to_the_message(blocks: list[tuple[str, list[str]]]) -> None:
    events: list[StreamEvent] = []
    for index, (kind, parts) in enumerate(blocks):
        if kind == "text":
            events += [TextDelta(part, index) for part in parts]
        elif kind == "thinking":
            events += [ThinkingDelta(part, index) for part in parts]
        else:
            raw = json.dumps({"text": "".join(parts)})
            events += _call(f"c{index}", raw=raw, block=index)

    state, given_out = _folded(*events, StreamEnded("end_turn"))

    message = build_message(state)
    shown = [item for item in given_out if isinstance(item, MessageDelta)]
    texts = ["".join(parts) for kind, parts in blocks if kind == "text"]
    assert "".join(item.delta for item in shown if item.kind == "text") == "".join(texts) == state.text
    assert [call.arguments["text"] for call in message.tool_calls] == [
        "".join(parts) for kind, parts in blocks if kind == "call"
    ]
    assert [item for item in given_out if isinstance(item, ToolCall)] == list(message.tool_calls)
    assert finalize_unended_tool_calls(state) == ()
