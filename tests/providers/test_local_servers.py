"""`tui-agent doctor --probe` finds model servers, and asks no one unless told to."""

import asyncio
import socket
from typing import Any

import pytest

from tests.support.fussy_server import FussyServer
from tests.support.table import table
from tui_agent.cli.installation_checks import findings_text, probe_findings
from tui_agent.providers import local_servers
from tui_agent.providers.local_servers import found_servers

OPENAI = {"data": [{"id": "qwen3", "owned_by": "me"}, {"id": "other", "owned_by": "me"}, {"id": "bad\x1b[31m\n"}, 7]}


def owned_by(owner: str) -> dict[str, Any]:
    return {"data": [{"id": "qwen3", "owned_by": owner}]}


@table(
    ("pages", "found"),
    [
        ({"/v1/models": OPENAI, "/api/version": {"version": "0.14.1"}}, "ollama"),
        ({"/v1/models": owned_by("llamacpp")}, "llamacpp"),
        ({"/v1/models": owned_by("vllm")}, "vllm"),
        ({"/v1/models": owned_by("sglang")}, "sglang"),
        ({"/v1/models": OPENAI, "/api/v0/models": {"data": []}}, "lmstudio"),
        ({"/v1/models": OPENAI, "/health/liveliness": '"I\'m alive!"'}, "litellm"),
        ({"/v1/models": OPENAI}, None),
        ({"/v1/models": "<html>"}, None),
        ({}, None),
    ],
)
async def test_a_server_is_known_by_what_it_says(pages: dict[str, Any], found: str | None) -> None:
    async with FussyServer(pages=pages) as server:
        servers = await asyncio.to_thread(found_servers, [server.port])

    assert [one.profile.name for one in servers] == ([found] if found else [])
    assert all("authorization" not in headers for headers in server.headers)
    if servers:
        assert servers[0].models[0] == "qwen3"
        assert servers[0].needs_address


@table(
    ("models", "command"),
    [
        (OPENAI, "qwen3 and 1 more. Use it: tui-agent --model ollama/qwen3"),
        ({"data": [{"id": "x; touch y"}]}, "Use it: tui-agent --model 'ollama/x; touch y'"),
    ],
)
async def test_the_doctor_says_how_to_use_a_server(
    models: dict[str, Any], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with FussyServer(pages={"/v1/models": models, "/api/version": {"version": "0.14.1"}}) as server:
        found = await asyncio.to_thread(found_servers, [server.port])
        monkeypatch.setattr(local_servers, "found_servers", lambda: found)
        text = findings_text(list(probe_findings()))

    assert f"Ollama at {found[0].address}: " in text
    assert command in text
    assert "OLLAMA_CONTEXT_LENGTH" in text


def test_a_silent_port_is_given_up_soon() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        closed.close()
        assert found_servers([listener.getsockname()[1], port]) == ()
