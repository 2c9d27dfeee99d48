"""Growing requests: nothing is encoded twice, and the result equals a request built at once."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.conversations import conversations
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from tui_agent.providers import request_builder
from tui_agent.providers.request_builder import WireConversation


def joined(conversation: WireConversation, messages: list[Message]) -> bytes:
    return b"".join(conversation.to_json(messages))


def sent(conversation: WireConversation, messages: list[Message]) -> list[dict]:
    return json.loads(b"[" + joined(conversation, messages) + b"]")


def answer(*calls: str, text: str = "so") -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text), *(ToolCall(id=call, name="read") for call in calls)))


def result(call_id: str, text: str = "done") -> ToolResultMessage:
    return ToolResultMessage(call_id=call_id, tool_name="read", content=(TextBlock(text=text),))


@pytest.mark.slow
@given(conversations(max_turns=5))
def test_a_growing_conversation_is_sent_as_one_built_at_once(messages: list[Message]) -> None:
    growing = WireConversation()
    for length in range(1, len(messages) + 1):
        step = joined(growing, messages[:length])

        assert step == joined(WireConversation(), messages[:length])


@pytest.mark.slow
@given(conversations(max_turns=4), conversations(max_turns=4), st.data())
def test_a_changed_conversation_is_built_anew(old: list[Message], new: list[Message], data: st.DataObject) -> None:
    conversation = WireConversation()
    joined(conversation, old)
    kept = old[: data.draw(st.integers(0, len(old)))]

    assert joined(conversation, kept + new) == joined(WireConversation(), kept + new)
    assert joined(conversation, old) == joined(WireConversation(), old)


def test_a_message_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = request_builder.blocks_of
    monkeypatch.setattr(request_builder, "blocks_of", lambda message: seen.append(message.id) or real(message))
    messages: list[Message] = [user_message("go")]
    conversation = WireConversation()

    for step in range(30):
        messages += [answer(f"c{step}"), result(f"c{step}")]
        joined(conversation, messages)

    assert sorted(seen) == sorted(message.id for message in messages)


def test_adjacent_user_messages_become_one_with_results_first() -> None:
    messages = [user_message("a"), user_message("b", "steer"), answer("x", "y"), result("x"), result("y")]

    wire = sent(WireConversation(), [*messages, user_message("also this", "steer")])

    assert [message["role"] for message in wire] == ["user", "assistant", "user"]
    assert [block["text"] for block in wire[0]["content"]] == ["a", "b"]
    assert [block["type"] for block in wire[2]["content"]] == ["tool_result", "tool_result", "text"]


def test_the_two_newest_user_turns_carry_cache_marks() -> None:
    messages = [user_message("a"), answer("x"), result("x"), answer("y"), result("y"), answer("z"), result("z")]

    wire = sent(WireConversation(), messages)

    marked = [n for n, message in enumerate(wire) for block in message["content"] if "cache_control" in block]
    assert marked == [4, 6]
    assert wire[6]["content"][-1]["cache_control"] == {"type": "ephemeral"}
