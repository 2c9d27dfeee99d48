"""The fields of a request around its conversation, and growing requests, in which nothing is encoded twice."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.conversations import conversations
from tests.support.table import table
from tests.support.wire_rules import problems_of, read_body
from tui_agent.protocol.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    user_message,
)
from tui_agent.protocol.provider import ModelRequest, SystemPart
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers import AnthropicProvider, request_builder
from tui_agent.providers.request_builder import RequestBuilder, RequestSettings, WireConversation

MARK = {"type": "ephemeral"}
PROMPT = (user_message("hello"),)
TOOLS = tuple(
    ToolSpec(name=name, description=f"{name} it", input_schema={"type": "object"}) for name in ("read", "edit")
)


def body_of(request: ModelRequest, **settings: Any) -> dict[str, Any]:
    return json.loads(RequestBuilder(RequestSettings("some-model", 1000, **settings)).build(request))


def test_stable_parts_of_the_system_prompt_come_first_and_they_and_the_tools_end_with_a_mark() -> None:
    parts = (SystemPart("a"), SystemPart("now", stable=False), SystemPart("b"), SystemPart("  "))
    request = ModelRequest(PROMPT, system=parts, tools=TOOLS)

    body, for_an_hour = body_of(request), json.dumps(body_of(request, cache="1h"))

    assert [part["text"] for part in body["system"]] == ["a", "b", "now"]
    assert [part.get("cache_control") for part in body["system"]] == [None, MARK, None]
    assert [(tool["name"], tool.get("cache_control")) for tool in body["tools"]] == [("read", None), ("edit", MARK)]
    assert body["tools"][0]["input_schema"] == {"type": "object"}
    assert (for_an_hour.count('"cache_control"'), for_an_hour.count('"ttl": "1h"')) == (3, 3)


def test_a_cache_of_an_hour_costs_twice_the_input_to_write() -> None:
    usual = AnthropicProvider("claude-opus-5-5", api_key="k").model
    hour = AnthropicProvider("claude-opus-5-5", api_key="k", cache="1h").model

    assert usual.input_price is not None
    assert hour.cache_write_price == 2 * usual.input_price


@table(
    ("form", "budget", "thinking", "effort"),
    [
        ("budget", 1, {"type": "enabled", "budget_tokens": 1024}, None),
        ("budget", 5000, {"type": "enabled", "budget_tokens": 5000}, None),
        ("budget", 0, {"type": "disabled"}, None),
        ("adaptive", 0, {"type": "disabled"}, None),
        ("adaptive", 1, {"type": "adaptive"}, "low"),
        ("adaptive", 2048, {"type": "adaptive"}, "low"),
        ("adaptive", 8000, {"type": "adaptive"}, "medium"),
        ("adaptive", 20_000, {"type": "adaptive"}, "high"),
        ("adaptive", 90_000, {"type": "adaptive"}, "max"),
        ("always", 0, None, "low"),
    ],
)
def test_a_budget_of_reasoning_is_sent_in_the_form_of_the_model(
    form: str, budget: int, thinking: object, effort: str | None
) -> None:
    body = body_of(ModelRequest(PROMPT, thinking_tokens=budget), thinking_form=form)

    assert thinking in (None, body["thinking"])
    assert body.get("output_config") == (None if effort is None else {"effort": effort})
    assert body["max_tokens"] > body.get("thinking", {}).get("budget_tokens", 0), "room for the answer"


@pytest.mark.slow
@given(conversations(), conversations())
def test_conversations_do_not_mix(first: list[Message], second: list[Message]) -> None:
    builder = RequestBuilder(RequestSettings("m", 10))
    one, two = ModelRequest(first, conversation_id="one"), ModelRequest(second, conversation_id="two")
    for length in range(1, len(first) + 1):
        builder.build(ModelRequest(first[:length], conversation_id="one"))
        builder.build(two)

    assert builder.build(one) == RequestBuilder(RequestSettings("m", 10)).build(one)


def test_many_conversations_are_forgotten_and_built_again() -> None:
    builder = RequestBuilder(RequestSettings("m", 10))
    requests = [ModelRequest((user_message(str(n)),), conversation_id=str(n)) for n in range(40)]
    bodies = [builder.build(request) for request in requests]

    assert [builder.build(request) for request in requests] == bodies


@given(conversations())
def test_every_request_keeps_the_rules_of_the_api(messages: list[Message]) -> None:
    request = ModelRequest(messages, system=(SystemPart("a"), SystemPart("b", stable=False)), tools=TOOLS)
    body = RequestBuilder(RequestSettings("m", 10)).build(request)

    assert problems_of(read_body(body), resuming=messages[-1].role == "assistant") == []


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


def test_the_two_newest_user_turns_carry_cache_marks() -> None:
    messages = [user_message("a"), answer("x"), result("x"), answer("y"), result("y"), answer("z"), result("z")]

    wire = sent(WireConversation(), messages)

    marked = [n for n, message in enumerate(wire) for block in message["content"] if "cache_control" in block]
    assert marked == [4, 6]
    assert wire[6]["content"][-1]["cache_control"] == {"type": "ephemeral"}
