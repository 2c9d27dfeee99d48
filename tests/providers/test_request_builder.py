"""The fields of a request around its conversation."""

import json
from typing import Any

import pytest
from hypothesis import given

from tests.support.conversations import conversations
from tests.support.table import table
from tests.support.wire_rules import problems_of, read_body
from tui_agent.protocol.messages import Message, user_message
from tui_agent.protocol.provider import ModelRequest, SystemPart
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.request_builder import RequestBuilder, RequestSettings

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
