"""The scripted server itself: it refuses what the API refuses, and can be controlled by a test or over HTTP."""

from typing import Any

import pytest

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.stream_helpers import HELLO, asking, heard
from tests.support.table import table
from tests.support.wire_rules import problems_of, read_body
from tui_agent.protocol.provider import ModelRequest

TEXT = {"type": "text", "text": "hi"}
CALL = {"type": "tool_use", "id": "c1", "name": "read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [TEXT]}


def message(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def body(*messages: Any, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 10, "messages": list(messages), **fields}


GOOD = [
    body({"role": "user", "content": "hi"}),
    body(message("user", TEXT), message("assistant", TEXT, CALL), message("user", RESULT, TEXT)),
    body(
        message("user", TEXT),
        message("assistant", {"type": "thinking", "thinking": "", "signature": "s"}, CALL),
        message("user", {**RESULT, "content": "text"}),
    ),
]
BAD = [
    [],
    body(),
    body(message("assistant", TEXT)),
    body(message("user", TEXT), message("assistant", TEXT)),
    body(message("user", TEXT), message("user", TEXT)),
    body(message("user")),
    body(message("user", {"type": "text", "text": " "})),
    body(message("user", TEXT), message("assistant", CALL), message("user", TEXT)),
    body(message("user", TEXT), message("assistant", CALL), message("user", RESULT, RESULT)),
    body(message("user", TEXT), message("assistant", CALL), message("user", TEXT, RESULT)),
    body(message("user", RESULT)),
    body(message("user", TEXT), message("assistant", {**CALL, "id": "c:1"}), message("user", RESULT)),
    body(message("user", TEXT), message("assistant", {**CALL, "name": "bad name"}), message("user", RESULT)),
    body(message("user", TEXT), message("assistant", {**CALL, "input": []}), message("user", RESULT)),
    body(message("user", TEXT), message("assistant", CALL), message("user", {**RESULT, "content": []})),
    body(
        message("user", TEXT),
        message("assistant", CALL),
        message("user", RESULT),
        message("assistant", CALL),
        message("user", RESULT),
    ),
    body(
        message("user", TEXT), message("assistant", {"type": "thinking", "thinking": "x"}, TEXT), message("user", TEXT)
    ),
    body(message("user", *[{**TEXT, "cache_control": {"type": "ephemeral"}}] * 5)),
    body(message("user", TEXT), system=[]),
    body(message("user", TEXT), system=[{"type": "text", "text": ""}]),
    body(message("user", TEXT), tools=[]),
    body(message("user", TEXT), tools=[{"name": "a", "input_schema": {}}]),
    body(message("user", TEXT), tools=[{"name": "a", "input_schema": {"type": "object"}}] * 2),
    body(message("user", TEXT), thinking={"type": "enabled", "budget_tokens": 5}),
    body(message("user", TEXT), thinking={"type": "enabled", "budget_tokens": 2000}),
    body(message("user", TEXT), max_tokens=0),
    body(message("user", TEXT), model=""),
    body(message("user", TEXT), surprise=1),
]


@table("good", GOOD)
def test_good_requests_have_no_problem(good: Any) -> None:
    assert problems_of(good) == []


@table("bad", BAD)
def test_bad_requests_have_one(bad: Any) -> None:
    assert problems_of(bad)


@table("raw", [b"\xff", b"{", b'{"a": NaN}'])
def test_bodies_that_are_not_json_are_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_body(raw)


async def test_a_bad_request_is_answered_as_the_api_would() -> None:
    async with ScriptedMessagesServer([{}]) as server, asking(server) as provider:
        _, error = await heard(provider.stream(ModelRequest(())))

        assert error is not None
        assert error.kind == "invalid_request"
        assert server.problems == ["request 0: messages: at least one message is required"]
        assert server.left == 1


async def test_a_wrong_token_and_a_used_up_script_are_refused() -> None:
    async with ScriptedMessagesServer() as server, asking(server) as provider:
        _, used_up = await heard(provider.stream(HELLO))
        server.token = "another"
        _, unknown = await heard(provider.stream(HELLO))

    assert used_up is not None
    assert "used up" in str(used_up)
    assert unknown is not None
    assert unknown.kind == "authentication"
