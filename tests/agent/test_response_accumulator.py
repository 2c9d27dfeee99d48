"""The fold of a stream into one answer (S4-14, S4-47 … S4-55)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from tui_agent.agent.response_accumulator import (
    StepState,
    accumulate,
    build_message,
    finalize_unended_tool_calls,
)
from tui_agent.protocol.events import MessageDelta
from tui_agent.protocol.messages import (
    ToolCall,
    parse_tool_call,
)
from tui_agent.protocol.provider import (
    StreamEnded,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
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


def test_blank_text_is_not_sent_back() -> None:
    state, _ = _folded(TextDelta(" \n"), ThinkingDelta("  ", 1), *_call("c1"))

    assert [block.type for block in build_message(state).content] == ["tool_call"]


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
