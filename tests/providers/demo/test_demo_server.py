"""The offline model through the real SDK: deterministic, private, and removed without a trace."""

import asyncio
import json
import stat
import urllib.error
import urllib.request
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path
from typing import Any

import pytest

from tests.support.stream_helpers import heard
from tests.support.table import table
from tui_agent.protocol.messages import Message, user_message
from tui_agent.protocol.provider import (
    ModelRequest,
)
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers import DEMO_MODEL, AnthropicProvider
from tui_agent.providers.demo import DemoServer, demo_server

TOOLS = tuple(
    ToolSpec(name=name, description=name, input_schema={"type": "object"})
    for name in ("read", "write", "edit", "bash", "glob", "grep")
)


def asking(demo: DemoServer) -> AbstractAsyncContextManager[AnthropicProvider]:
    return aclosing(AnthropicProvider(DEMO_MODEL, auth_token=demo.token, base_url=demo.base_url))


def prompt(words: str) -> ModelRequest:
    messages: tuple[Message, ...] = (user_message(words),)
    return ModelRequest(messages, tools=TOOLS)


def posted(demo: DemoServer, body: Any, path: str = "/v1/messages", **headers: str) -> tuple[int, bytes]:
    """Return the server's answer to a request made without the SDK."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"{demo.base_url}{path}", data, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


async def test_the_same_request_is_answered_with_the_same_bytes(tmp_path: Path) -> None:
    body = {
        "model": DEMO_MODEL,
        "max_tokens": 10,
        "stream": True,
        "messages": [{"role": "user", "content": "fix the failing test"}],
        "tools": [{"name": tool.name, "input_schema": {"type": "object"}} for tool in TOOLS],
    }
    answers = []
    for _ in range(2):
        async with demo_server(pace=0, sample_dir=tmp_path) as demo:
            for _ in range(2):
                authorization = f"Bearer {demo.token}"
                answers.append(await asyncio.to_thread(posted, demo, body, authorization=authorization))

    assert answers[0][0] == 200
    assert b"tool_use" in answers[0][1]
    assert len(set(answers)) == 1


@pytest.mark.slow
async def test_every_tour_begins_with_a_fresh_copy(tmp_path: Path) -> None:
    async with demo_server(pace=0, sample_dir=tmp_path) as demo, asking(demo) as provider:
        await heard(provider.stream(prompt("fix the failing test")))
        original = (tmp_path / "cart.py").read_text("utf-8")
        (tmp_path / "cart.py").write_text("broken", "utf-8")
        await heard(provider.stream(prompt("help")))
        kept = (tmp_path / "cart.py").read_text("utf-8")
        await heard(provider.stream(prompt("fix the failing test")))

    assert kept == "broken"
    assert (tmp_path / "cart.py").read_text("utf-8") == original


async def test_its_own_directory_and_token_are_private_and_gone_at_the_end() -> None:
    async with demo_server(pace=0) as demo, demo_server() as other:
        place = demo.sample_dir
        mode = stat.S_IMODE(place.stat().st_mode)

    assert mode == 0o700
    assert not place.exists()
    assert demo.token != other.token
    assert len(demo.token) >= 32
    assert demo.token not in repr(demo)


async def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    async with demo_server(pace=0, sample_dir=tmp_path / "file") as demo, asking(demo) as provider:
        _, error = await heard(provider.stream(prompt("fix the failing test")))

    assert error is not None
    assert not error.retryable
    assert "no sample project" in str(error)


@table("headers", [{}, {"authorization": "Bearer guess"}, {"x-api-key": "guess"}, {"authorization": "Bearer "}])
async def test_requests_without_the_token_are_refused(headers: dict[str, str]) -> None:
    async with demo_server(pace=0) as demo:
        status, answer = await asyncio.to_thread(lambda: posted(demo, {"messages": []}, **headers))

    assert status == 401
    assert demo.token.encode() not in answer


@table(
    ("body", "path", "status"),
    [
        (b"{", "/v1/messages", 400),
        (b"[" * 100_000, "/v1/messages", 400),
        ([], "/v1/messages", 400),
        ({"messages": []}, "/v1/messages", 400),
        ({"messages": [], "stream": True}, "/v1/messages", 400),
        ({"messages": [{"role": "user", "content": "hi"}]}, "/v1/messages", 400),
        ({}, "/v1/models", 404),
    ],
)
async def test_invalid_requests_are_refused_as_by_the_api(body: Any, path: str, status: int) -> None:
    async with demo_server(pace=0) as demo:
        answered, answer = await asyncio.to_thread(lambda: posted(demo, body, path, **{"x-api-key": demo.token}))

    assert answered == status
    assert json.loads(answer)["type"] == "error"
