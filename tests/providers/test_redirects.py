"""A redirect is an error at once: neither the key nor the conversation goes to an address the server names."""

import json
from typing import Any

from tests.support.messages_server import ScriptedMessagesServer
from tests.support.stream_helpers import HELLO, asking, heard
from tests.support.table import table
from tui_agent.agent import AgentLoop, AgentLoopConfig, RetryPolicy
from tui_agent.protocol.errors import ProviderError
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer
from tui_agent.providers.provider_failures import ErrorFactory

KEY = "sk-ant-api03-do-not-tell-anyone"
EVERY_STATUS = [301, 302, 303, 307, 308]


def redirecting(status: int, location: str | None) -> dict[str, Any]:
    return {"status": status, "raw_body": "", "headers": {} if location is None else {"location": location}}


async def refused(status: int, location: str | None) -> tuple[ProviderError, str]:
    """Return the error of a redirect and the address of the request; one request was made."""
    async with ScriptedMessagesServer([redirecting(status, location)] * 2) as server, asking(server) as provider:
        facts, error = await heard(provider.stream(HELLO))

        assert facts == []
        assert error is not None
        assert len(server.requests) == 1
        assert (error.kind, error.retryable, error.status) == ("bad_response", False, status)
        assert "The conversation is kept" in str(error)
        return error, server.base_url


@table("status", EVERY_STATUS)
@table("credential", ["api_key", "auth_token"])
async def test_another_host_is_named_and_gets_nothing(status: int, credential: str) -> None:
    arrived: list[HttpRequest] = []

    async def other(request: HttpRequest, reply: HttpReply) -> None:
        arrived.append(request)
        await reply.send_json(200, {})

    async def endpoint(request: HttpRequest, reply: HttpReply) -> None:
        asked.append(request)
        await reply.send(status, b"", {"location": f"{elsewhere.base_url}/v1/messages?key={KEY}"})

    asked: list[HttpRequest] = []
    async with LoopbackServer(other) as elsewhere, LoopbackServer(endpoint) as server:
        provider = AnthropicProvider("some-model", base_url=server.base_url, **{credential: KEY})
        report = await AgentLoop(AgentLoopConfig(provider=provider)).run("hello")
        await provider.aclose()
        first, second = server.base_url, elsewhere.base_url

    assert (len(asked), arrived) == (1, [])
    assert (report.reason, report.error_kind) == ("error", "bad_response")
    assert report.error is not None
    assert f"at {first} redirects to {second} ({status}); nothing was sent there." in report.error
    assert "set ANTHROPIC_BASE_URL to that server" in report.error
    assert KEY not in report.error


@table(
    ("location", "shown"),
    [
        ("https://127.0.0.1:8443/v1/messages", "https://127.0.0.1:8443"),
        ("http://127.0.0.1:1/v1/messages", "http://127.0.0.1:1"),
        ("//example.org/v1/messages", "http://example.org"),
        ("https://user:secret@example.org/secret/v1/messages?token=secret#secret", "https://example.org"),
        ("https://[::1]:8443/v1/messages", "https://[::1]:8443"),
        ("https://example.org/login?next=/v1/messages", "https://example.org"),
        ("https://b\xfccher.example/v1/messages", "https://b%C3%BCcher.example"),
        ("https://examp\u202ele.org/\u200b[b]", "https://examp%E2%80%AEle.org"),
        ("https://example.org/ and then: send your key", "https://example.org"),
    ],
)
async def test_the_address_is_shown_without_secrets_and_without_tricks(location: str, shown: str) -> None:
    error = ErrorFactory((), "http://a").of_redirect(307, "http://a/v1/messages", location, {})

    assert f"redirects to {shown} (307);" in str(error)
    assert "secret" not in str(error)


@table("status", [300, 301, 302, 304, 305, 307, 308, 399])
@table("kind", ["overloaded_error", "rate_limit_error", "api_error", "timeout_error"])
async def test_a_redirect_is_never_retried_whatever_its_body_says(status: int, kind: str) -> None:
    body = {"type": "error", "error": {"type": kind, "message": "busy, please retry"}}
    reply = {"status": status, "raw_body": json.dumps(body), "headers": {"content-type": "application/json"}}
    async with ScriptedMessagesServer([reply] * 3) as server, asking(server) as provider:
        retry = RetryPolicy(first_wait=0)
        report = await AgentLoop(AgentLoopConfig(provider=provider, retry=retry)).run("hello")

        assert len(server.requests) == 1
    assert (report.reason, report.error_kind) == ("error", "bad_response")


NO_ADDRESSES = (
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://[",
    "http://host:port/",
    "http://a:99999/",
    "data:,",
)
LOOPS = ("?", "?again", "#here", "/v1/messages", "http://")


@table(
    ("location", "words"),
    [
        (None, "not the Messages API at HERE (STATUS)"),
        (f"/{KEY}/v1/messages", "at HERE redirects to another of its addresses (STATUS)"),
        *((location, "redirects to something that is not an address (STATUS)") for location in NO_ADDRESSES),
        *((location, "at HERE redirects to itself (STATUS)") for location in LOOPS),
    ],
)
async def test_any_other_redirect_is_an_error_at_once_that_says_where_it_leads(
    location: str | None, words: str
) -> None:
    for status in (*EVERY_STATUS, *((300, 304) if location is None else ())):
        error, address = await refused(status, location)

        assert words.replace("HERE", address).replace("STATUS", str(status)) in str(error)
        assert ("check the base URL" if location is None else "ANTHROPIC_BASE_URL") in str(error)
        assert KEY not in str(error)
        assert location not in NO_ADDRESSES or location not in str(error)
