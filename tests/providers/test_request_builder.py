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


def test_tools_are_sent_in_order_and_the_last_is_marked() -> None:
    tools = body_of(ModelRequest(PROMPT, tools=TOOLS))["tools"]

    assert [tool["name"] for tool in tools] == ["read", "edit"]
    assert [tool.get("cache_control") for tool in tools] == [None, MARK]
    assert tools[0]["input_schema"] == {"type": "object"}


def test_stable_parts_of_the_system_prompt_come_first_and_end_with_a_mark() -> None:
    parts = (SystemPart("a"), SystemPart("now", stable=False), SystemPart("b"), SystemPart("  "))

    system = body_of(ModelRequest(PROMPT, system=parts))["system"]

    assert [part["text"] for part in system] == ["a", "b", "now"]
    assert [part.get("cache_control") for part in system] == [None, MARK, None]


def test_every_mark_of_a_request_has_the_same_lifetime() -> None:
    request = ModelRequest(PROMPT, system=(SystemPart("a"),), tools=TOOLS)

    text = json.dumps(body_of(request, cache="1h"))

    assert (text.count('"cache_control"'), text.count('"ttl": "1h"')) == (3, 3)


def test_a_cache_of_an_hour_costs_twice_the_input_to_write() -> None:
    usual = AnthropicProvider("claude-opus-5-5", api_key="k").model
    hour = AnthropicProvider("claude-opus-5-5", api_key="k", cache="1h").model

    assert usual.input_price is not None
    assert hour.cache_write_price == 2 * usual.input_price


@pytest.mark.parametrize(("budget", "sent"), [(1, 1024), (5000, 5000)])
def test_a_budget_is_at_least_the_smallest_and_leaves_room_for_the_answer(budget: int, sent: int) -> None:
    body = body_of(ModelRequest(PROMPT, thinking_tokens=budget), thinking_form="budget")

    assert body["thinking"] == {"type": "enabled", "budget_tokens": sent}
    assert body["max_tokens"] > sent


@table(("budget", "effort"), [(1, "low"), (2048, "low"), (8000, "medium"), (20_000, "high"), (90_000, "max")])
def test_models_without_a_budget_get_an_effort(budget: int, effort: str) -> None:
    body = body_of(ModelRequest(PROMPT, thinking_tokens=budget), thinking_form="adaptive")

    assert body["thinking"] == {"type": "adaptive"}
    assert body["output_config"] == {"effort": effort}


def test_no_budget_at_all_switches_reasoning_off_where_that_is_possible() -> None:
    request = ModelRequest(PROMPT, thinking_tokens=0)

    assert body_of(request, thinking_form="budget")["thinking"] == {"type": "disabled"}
    assert body_of(request, thinking_form="adaptive")["thinking"] == {"type": "disabled"}
    assert body_of(request, thinking_form="always")["output_config"] == {"effort": "low"}


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
