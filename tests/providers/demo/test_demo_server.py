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

from tests.support.stream_helpers import calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.messages import Message, user_message
from tui_agent.protocol.provider import (
    ModelRequest,
    StreamEnded,
    StreamStarted,
    ThinkingEnded,
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


@pytest.mark.slow
async def test_the_tour_begins_through_the_real_sdk() -> None:
    async with demo_server(pace=0) as demo, asking(demo) as provider:
        facts, error = await heard(provider.stream(prompt("fix the failing test")))
        copied = sorted(path.name for path in demo.sample_dir.iterdir())

    assert error is None
    assert facts[0] == StreamStarted(DEMO_MODEL, facts[0].usage)
    assert any(isinstance(fact, ThinkingEnded) for fact in facts)
    assert "not a language model" in text_of(facts)
    assert [call.arguments["path"] for call in calls_of(facts)] == [
        str(demo.sample_dir / name) for name in ("README.md", "cart.py", "test_cart.py")
    ]
    assert facts[-1] == StreamEnded("tool_use")
    assert copied == ["README.md", "cart.py", "prices.py", "pyproject.toml", "test_cart.py"]


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


async def test_its_own_directory_is_private_and_gone_at_the_end() -> None:
    async with demo_server(pace=0) as demo:
        place = demo.sample_dir
        mode = stat.S_IMODE(place.stat().st_mode)

    assert mode == 0o700
    assert not place.exists()


async def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    async with demo_server(pace=0, sample_dir=tmp_path / "file") as demo, asking(demo) as provider:
        _, error = await heard(provider.stream(prompt("fix the failing test")))

    assert error is not None
    assert not error.retryable
    assert "no sample project" in str(error)


async def test_its_one_rule_allows_the_command_that_runs_the_samples_tests() -> None:
    async with demo_server(pace=0) as demo:
        ((verdict, rule),) = demo.rules

    assert verdict == "allow"
    assert rule.startswith("bash(python3 -m ")
    assert str(demo.sample_dir) in rule


@table("headers", [{}, {"authorization": "Bearer guess"}, {"x-api-key": "guess"}, {"authorization": "Bearer "}])
async def test_requests_without_the_token_are_refused(headers: dict[str, str]) -> None:
    async with demo_server(pace=0) as demo:
        status, answer = await asyncio.to_thread(lambda: posted(demo, {"messages": []}, **headers))

    assert status == 401
    assert demo.token.encode() not in answer


async def test_tokens_are_random_and_shown_nowhere() -> None:
    async with demo_server() as one, demo_server() as other:
        pass

    assert one.token != other.token
    assert len(one.token) >= 32
    assert one.token not in repr(one)


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


async def test_it_ends_in_the_middle_of_an_answer_and_leaves_nothing() -> None:
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "help"}]}).encode()
    async with demo_server(pace=60.0) as demo:
        host = demo.base_url.removeprefix("http://")
        head = f"POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx-api-key: {demo.token}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200")
    assert await reader.read() == b""
    writer.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
