"""Requests are those of the SDK, without the SDK: headers, addresses, proxies and credentials."""

import json
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import pytest

from tests.support.messages_server import RecordedRequest, ScriptedMessagesServer
from tests.support.stream_helpers import HELLO, asking, heard
from tui_agent.protocol.errors import ProviderError
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer

TOKEN = "a-profile-token"


def headers_of(request: RecordedRequest) -> dict[str, str]:
    """Return the headers, except those that name the program that sends them."""
    return {
        name: value
        for name, value in request.headers.items()
        if not name.startswith("x-stainless") and name not in ("user-agent", "content-length", "host")
    }


@pytest.mark.slow
async def test_the_headers_are_those_of_the_sdk() -> None:
    from anthropic import AsyncAnthropic

    async with ScriptedMessagesServer([{}, {}]) as server, asking(server, model="m") as provider:
        await heard(provider.stream(HELLO))
        sdk = AsyncAnthropic(auth_token=server.token, base_url=server.base_url)
        message = {"role": "user", "content": "hello"}
        async with sdk.messages.stream(model="m", max_tokens=1, messages=[message]) as answer:
            await answer.until_done()
        await sdk.close()
        ours, theirs = server.requests

    assert headers_of(ours) == headers_of(theirs)
    assert "x-stainless-os" not in ours.headers


@pytest.mark.slow
def test_a_program_with_a_key_does_not_load_the_sdk() -> None:
    code = (
        "import asyncio, sys; from tui_agent.providers import AnthropicProvider\n"
        "asyncio.run(AnthropicProvider('m', api_key='x').prepare())\n"
        "print(sorted({'anthropic', 'httpx2', 'opentelemetry'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "['httpx2']"


async def test_the_environment_adds_headers_and_the_program_overrides_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue: green\nX-Tier:gold\nnonsense")
    async with ScriptedMessagesServer([{}]) as server, asking(server, headers={"x-tier": "iron"}) as provider:
        await heard(provider.stream(HELLO))
        (request,) = server.requests

    assert (request.headers["x-team"], request.headers["x-tier"]) == ("blue: green", "iron")


@pytest.mark.parametrize("exception", ["", "example.org", "127.0.0.1", "*"])
async def test_a_proxy_is_used_except_for_its_exceptions(monkeypatch: pytest.MonkeyPatch, exception: str) -> None:
    async with ScriptedMessagesServer([{}]) as server, asking(server) as provider:
        for name in ("http_proxy", "HTTP_PROXY"):
            # Nothing listens there.
            monkeypatch.setenv(name, "127.0.0.1:1")
        for name in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(name, exception)
        _, error = await heard(provider.stream(HELLO))

    assert (error is None) is (exception in ("127.0.0.1", "*"))


@pytest.mark.parametrize(("base", "path"), [("", ""), ("/", ""), ("/a b/", "/a%20b")])
async def test_the_address_may_have_a_path(base: str, path: str) -> None:
    asked: list[str] = []

    async def answer(request: HttpRequest, reply: HttpReply) -> None:
        asked.append(request.target)
        await reply.send_json(200, {})

    async with LoopbackServer(answer) as server:
        provider = AnthropicProvider("m", base_url=server.base_url + base, api_key="x")
        await heard(provider.stream(HELLO))
        await provider.aclose()

    assert asked == [f"{path}/v1/messages"]


# --- profiles of the SDK ----------------------------------------------------------------------------------------------


async def with_profile(monkeypatch: pytest.MonkeyPatch, folder: Path, credentials: str) -> tuple[
    list[RecordedRequest], ProviderError | None
]:  # fmt: skip
    """Return the requests, and the error if any, of a program without a key that has a profile."""
    async with ScriptedMessagesServer([{}]) as server:
        server.token = TOKEN
        config = {"authentication": {"type": "user_oauth"}, "base_url": server.base_url, "workspace_id": "w1"}
        for name, content in (("configs", json.dumps(config)), ("credentials", credentials)):
            (folder / name).mkdir()
            (folder / name / "default.json").write_text(content)
            (folder / name / "default.json").chmod(0o600)
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(folder))
        async with aclosing(AnthropicProvider("m")) as provider:
            _, error = await heard(provider.stream(HELLO))
        return server.requests, error


@pytest.mark.slow
async def test_without_a_key_a_profile_gives_token_address_and_headers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (request,), error = await with_profile(monkeypatch, tmp_path, json.dumps({"access_token": TOKEN}))

    assert error is None
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["anthropic-workspace-id"] == "w1"
    assert "oauth" in request.headers["anthropic-beta"]


@pytest.mark.slow
async def test_a_profile_that_cannot_be_read_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    requests, error = await with_profile(monkeypatch, tmp_path, "{}")

    assert requests == []
    assert error is not None
    assert error.kind == "authentication"
    assert "profile" in str(error)
