"""Key and endpoint: read as by the SDK, and never shown."""

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.fussy_server import FussyServer
from tests.support.stream_helpers import HELLO, heard, text_of
from tests.support.table import table
from tui_agent.protocol.endpoint import Endpoint, environment_credential
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.provider import StreamEvent
from tui_agent.providers import AnthropicProvider
from tui_agent.providers.demo.demo_server import error_body
from tui_agent.settings import Settings
from tui_agent.workbench.build_provider import ProviderBuilder
from tui_agent.workbench.configuration.effective_settings import Credentials

CANARY = "sk-ant-canary-1234"


def test_representation_and_host_contain_no_secret() -> None:
    found = Credentials.of_environment(
        {"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": f"https://me:{CANARY}@host:8443/{CANARY}?k={CANARY}"}, None
    )

    assert found.api_key == CANARY
    assert found.host == "https://host:8443"
    assert CANARY not in f"{found!r} {found.key_source} {found.host}"


def test_a_key_in_place_of_the_endpoint_is_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="ANTHROPIC_BASE_URL is not a URL") as raised:
        Credentials.of_environment({"ANTHROPIC_BASE_URL": CANARY}, None)

    assert CANARY not in str(raised.value)


GATEWAY = "http://gateway.example"
OTHER = "http://other.example"
BOTH = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "t"}
CHOICES: tuple[tuple[dict[str, str], str | None, tuple[str | None, str | None]], ...] = (
    ({"ANTHROPIC_API_KEY": "k"}, None, ("k", None)),
    ({"ANTHROPIC_AUTH_TOKEN": "t"}, None, (None, "t")),
    (BOTH, None, ("k", None)),
    (BOTH, "https://api.anthropic.com", ("k", None)),
    (BOTH | {"ANTHROPIC_BASE_URL": "https://api.anthropic.com/"}, None, ("k", None)),
    ({"ANTHROPIC_API_KEY": "k"}, GATEWAY, ("k", None)),
    (BOTH, GATEWAY, (None, "t")),
    (BOTH | {"ANTHROPIC_BASE_URL": GATEWAY}, None, (None, "t")),
    (BOTH | {"ANTHROPIC_BASE_URL": GATEWAY}, f"{GATEWAY}:80/", (None, "t")),
    (BOTH | {"ANTHROPIC_BASE_URL": GATEWAY}, OTHER, ("k", None)),
    (BOTH | {"ANTHROPIC_BASE_URL": GATEWAY}, "https://api.anthropic.com", ("k", None)),
    ({"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_BASE_URL": GATEWAY}, "https://api.anthropic.com", (None, None)),
    (BOTH, "http://anthropic.com.evil.example", (None, "t")),
    ({}, GATEWAY, (None, None)),
)


def test_each_address_gets_the_credential_that_is_meant_for_it() -> None:
    found = [(environment, url, environment_credential(url, environment)) for environment, url, _ in CHOICES]

    assert found == list(CHOICES)


async def asked(server: FussyServer, settings: dict[str, Any]) -> tuple[str, str]:
    """Return the answer to a request of the program's own provider, and the error."""
    async with AsyncExitStack() as stack:
        provider = ProviderBuilder(stack).build(Settings(model="m", base_url=server.base_url, **settings))
        facts, error = await heard(provider.stream(HELLO))
        return text_of(facts), str(error or "")


async def test_keys_are_sent_as_keys_and_tokens_as_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = "ANTHROPIC_CUSTOM_HEADERS"
    cases: tuple[tuple[dict[str, str], dict[str, str | None]], ...] = (
        ({"ANTHROPIC_API_KEY": "k"}, {"x-api-key": "k", "authorization": None}),
        ({"ANTHROPIC_AUTH_TOKEN": "t"}, {"x-api-key": None, "authorization": "Bearer t"}),
        (BOTH, {"x-api-key": None, "authorization": "Bearer t"}),
        ({"ANTHROPIC_AUTH_TOKEN": "t", custom: "x-api-key: c"}, {"x-api-key": "c", "authorization": "Bearer t"}),
        ({"ANTHROPIC_API_KEY": "k", custom: "Authorization: x"}, {"x-api-key": "k", "authorization": "x"}),
        ({"ANTHROPIC_API_KEY": "k", custom: "X-API-KEY: c"}, {"x-api-key": "c"}),
    )
    wrong: list[object] = []
    async with FussyServer() as server:
        for environment, headers in cases:
            with monkeypatch.context() as patch:
                for name, value in environment.items():
                    patch.setenv(name, value)
                answer = await asked(server, {})
                async with AsyncExitStack() as stack:
                    library = AnthropicProvider("m", base_url=server.base_url)
                    stack.push_async_callback(library.aclose)
                    await heard(library.stream(HELLO))
            sent = [{name: one.get(name) for name in headers} for one in server.headers[-2:]]
            if answer[0] != "Hello." or sent != [headers, headers]:
                wrong.append((environment, answer, sent))

    assert wrong == []


@table(
    ("variable", "key", "bearer"), [("BOX_API_KEY", "secret", "Bearer secret"), ("BOX_TOKEN", None, "Bearer secret")]
)
async def test_a_named_endpoint_gets_a_token_as_a_token_and_a_key_in_both_headers(
    monkeypatch: pytest.MonkeyPatch, variable: str, key: str | None, bearer: str
) -> None:
    monkeypatch.setenv(variable, "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "other")
    async with FussyServer() as server, AsyncExitStack() as stack:
        providers = {"box": Endpoint(base_url=server.base_url, key_env=variable)}
        provider = ProviderBuilder(stack).build(Settings(model="box/m", providers=providers))
        await heard(provider.stream(HELLO))

        assert [(one.get("x-api-key"), one.get("authorization")) for one in server.headers] == [(key, bearer)]


async def test_a_gateway_that_refuses_the_key_names_the_ways_to_send_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t")
    refused = error_body("authentication_error", "no key")
    async with FussyServer(refuses=lambda _: (401, refused)) as server:
        _, error = await asked(server, {})

    assert "ANTHROPIC_CUSTOM_HEADERS='NAME: VALUE'" in error


class KeyedServer(FussyServer):
    """Refuses every key but one, which changes."""

    valid = "key-1"
    status = 401

    async def _answer_request(self, request: Any, reply: Any) -> None:
        keys = {request.headers.get("x-api-key"), request.headers.get("authorization", "").removeprefix("Bearer ")}
        refusal = (self.status, error_body("authentication_error", "token expired"))
        self.refuses = lambda _: None if keys == {self.valid} else refusal
        await super()._answer_request(request, reply)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_command_prints_the_key_and_runs_again_once_when_it_expires(tmp_path: Path, status: int) -> None:
    runs, answers = tmp_path / "runs", list[tuple[list[StreamEvent], object]]()
    settings: dict[str, Any] = {"key_command": f"echo run >> {runs}; echo key-$(wc -l < {runs})"}
    async with KeyedServer() as server, AsyncExitStack() as stack:
        server.status = status
        provider = ProviderBuilder(stack).build(Settings(model="m", base_url=server.base_url, **settings))
        for valid in ("key-1", "key-1", "key-2", "key-9"):
            server.valid = valid
            answers.append(await heard(provider.stream(HELLO)))
        requests = len(server.bodies)

    assert [(text_of(facts), error is None) for facts, error in answers] == [("Hello.", True)] * 3 + [("", False)]
    assert runs.read_text().count("run") == 3, "first, after the key had expired, and once more in vain"
    assert requests == 1 + 1 + 2 + 2
    assert "key-3" not in str(answers[-1][1])


@table(("lifetime", "keys"), [(1e-9, ["key-1", "key-2"]), (3600.0, ["key-1", "key-1"])])
async def test_a_key_with_a_lifetime_is_printed_anew_before_it_is_refused(
    tmp_path: Path, lifetime: float, keys: list[str]
) -> None:
    command = f"echo run >> {tmp_path}/runs; echo key-$(wc -l < {tmp_path}/runs)"
    (tmp_path / "runs").unlink(missing_ok=True)
    async with FussyServer() as server, AsyncExitStack() as stack:
        chosen = Settings(model="m", base_url=server.base_url, key_command=command, key_lifetime=lifetime)
        provider = ProviderBuilder(stack).build(chosen)
        for _ in keys:
            await heard(provider.stream(HELLO))

        assert [one.get("x-api-key") for one in server.headers] == keys


@table(
    ("command", "words"),
    [
        ("echo no login >&2; exit 3", "exit code 3: no login"),
        ("true", "must print the key and nothing else"),
        ("echo two words", "must print the key and nothing else"),
    ],
)
async def test_a_command_without_a_key_says_why_and_nothing_is_sent(command: str, words: str) -> None:
    async with FussyServer() as server:
        answer = await asked(server, {"key_command": command})

        assert server.bodies == []
    assert words in answer[1]


def test_a_command_of_another_agent_is_named_and_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text('{"apiKeyHelper": "touch ran"}')
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(ConfigurationError, match="is not used, use `key_command`"):
        Credentials.require({}, None)
