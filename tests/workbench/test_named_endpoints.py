"""Models of named endpoints: which endpoint a name means, what it costs, and which key is sent where."""

import re
import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.fussy_server import FussyServer
from tests.support.stream_helpers import HELLO, heard, text_of
from tests.support.table import table
from tui_agent.protocol.endpoint import Endpoint
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import Usage
from tui_agent.providers import AnthropicProvider
from tui_agent.settings import Settings
from tui_agent.workbench.build_provider import ProviderBuilder
from tui_agent.workbench.configuration.model_list import listed_models
from tui_agent.workbench.configuration.named_endpoints import missing_extra, target_of

CANARIES = {
    "ANTHROPIC_API_KEY": "sk-canary-key",
    "ANTHROPIC_AUTH_TOKEN": "sk-canary-token",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Api-Key: sk-canary-a\nauthorization: Bearer sk-canary-b\nX-Corp: sk-canary-c",
    "OTHER_KEY": "sk-canary-other",
}


def settings(**values: Any) -> Settings:
    return Settings.model_validate(values)


@pytest.mark.parametrize("own_key", [None, "BOX_KEY"])
async def test_an_endpoint_gets_its_own_key_and_none_of_another(
    own_key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**CANARIES, "BOX_KEY": "sk-of-box"}.items():
        monkeypatch.setenv(name, value)
    async with FussyServer(counts_tokens=True) as server, AsyncExitStack() as stack:
        box = {"base_url": server.base_url, "headers": {"X-Title": "me"}, **({"key_env": own_key} if own_key else {})}
        provider = ProviderBuilder(stack).build(settings(model="box/qwen3", providers={"box": box}))
        facts, problem = await heard(provider.stream(HELLO))
        assert isinstance(provider, AnthropicProvider)
        await provider.count_tokens(HELLO)

    assert (text_of(facts), problem) == ("Hello.", None)
    assert server.bodies[0]["model"] == "qwen3"
    assert len(server.headers) == 2
    for headers in server.headers:
        assert "canary" not in str(headers)
        assert headers.get("authorization") == ("Bearer sk-of-box" if own_key else None)
        assert headers["x-title"] == "me"


def test_an_address_of_ones_own_does_not_get_the_key_of_the_profile() -> None:
    target = target_of(settings(model="openrouter/x", providers={"openrouter": {"base_url": "http://box:1"}}), {})

    assert target is not None
    assert target.endpoint.key_env is None
    assert target.endpoint.base_url == "http://box:1"


@table(
    ("model", "environment", "found"),
    [
        ("claude-sonnet-5-5", {}, None),
        ("ollama/qwen3:8b", {}, ("ollama", "qwen3:8b", "http://localhost:11434")),
        ("openrouter/qwen/qwen3-coder", {}, ("openrouter", "qwen/qwen3-coder", "https://openrouter.ai/api")),
        ("box/m", {}, ("box", "m", "http://localhost:9")),
        ("near/m", {}, ("near", "m", "http://localhost:7")),
        # The user's own address may know names with a slash.
        ("ollama/qwen3:8b", {"ANTHROPIC_BASE_URL": "http://gateway:1"}, None),
        ("box/m", {"ANTHROPIC_BASE_URL": "http://gateway:1"}, ("box", "m", "http://localhost:9")),
    ],
)
def test_the_first_part_of_a_name_is_its_endpoint(
    model: str, environment: dict[str, str], found: tuple[str, str, str] | None
) -> None:
    providers = {
        "box": {"base_url": "http://localhost:9"},
        "near": {"profile": "vllm", "base_url": "http://localhost:7", "anthropic_version": "2026-10-21"},
    }
    target = target_of(settings(model=model, providers=providers), environment)

    assert (target and (target.provider, target.name, target.endpoint.base_url)) == found
    if target is not None and target.provider == "near":
        assert "output_config" in target.endpoint.drop, "the profile's"
        assert target.endpoint.anthropic_version == "2026-10-21", "its own"


@table(
    ("model", "providers", "words"),
    [
        ("olama/x", {}, "no provider 'olama' for the model 'olama/x'; did you mean ollama/x?"),
        ("ollama/", {}, "the model 'ollama/' has no name"),
        ("box/x", {"box": {}}, "`base_url` is missing"),
        ("box/x", {"box": {"profile": "olama"}}, "no profile 'olama'; there are anthropic, ollama"),
    ],
)
def test_an_unknown_endpoint_is_an_error(model: str, providers: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        target_of(settings(model=model, providers=providers), {})

    assert words in str(raised.value)


def test_window_price_and_thinking_come_from_the_settings() -> None:
    entry = {"name": "m", "window": 8_192, "input_price": 1.0, "output_price": 4.0, "cache_read_price": 0.5}
    other = {"name": "free", "max_output": 100, "thinking": "none"}
    chosen = settings(model="box/m", providers={"box": {"base_url": "http://h:1", "models": [entry, other]}})
    target = target_of(chosen, {})
    assert target is not None
    usage = Usage(
        input_tokens=1_000_000, cache_read_tokens=1_000_000, cache_write_tokens=1_000_000, output_tokens=10**6
    )

    assert target.info.name == "box/m"
    assert target.info.context_window == 8_192
    assert target.info.max_output_tokens == 1_024
    assert target.info.cost_of(usage) == pytest.approx(1.0 + 0.5 + 1.25 + 4.0)
    free = target_of(chosen.model_copy(update={"model": "box/free"}), {})
    assert free is not None
    assert (free.info.max_output_tokens, free.info.thinking, free.info.cost_of(usage)) == (100, "none", None)
    rows = [(fact.provider, fact.name, fact.price, fact.is_current) for fact in listed_models(chosen, target.info)]
    assert rows[:2] == [("box", "box/m", "$1.00 in, $4.00 out", True), ("box", "box/free", "no price", False)]


@table(
    ("name", "endpoint", "message"),
    [
        (
            "box",
            {"base_url": "http://box:1", "region": "eu"},
            "`providers.box.region` has no effect with the kind 'mess",
        ),
        ("openai", {"betas": ["x"]}, "`providers.openai.betas` has no effect with the kind 'openai'"),
        ("bedrock", {"project": "x"}, "`providers.bedrock.project` has no effect with the kind 'bedrock'"),
    ],
)
def test_a_setting_without_effect_on_the_kind_is_refused(name: str, endpoint: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        target_of(settings(model=f"{name}/m", providers={name: endpoint}), {})


def test_a_known_server_of_another_kind_keeps_only_its_address_and_key() -> None:
    target = target_of(settings(model="vllm/m", providers={"vllm": {"kind": "openai"}}), {})

    assert target is not None
    assert target.endpoint == Endpoint(kind="openai", base_url="http://localhost:8000/v1")
    assert target.info.thinking == "adaptive"


@table(("kind", "library"), [("openai", "openai"), ("bedrock", "boto3"), ("vertex", "google"), ("foundry", "none")])
def test_a_missing_library_of_a_kind_is_named_by_its_extra(
    kind: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = Endpoint.model_validate({"kind": kind})
    assert missing_extra(endpoint) == ""

    monkeypatch.setattr("sys.path", [])
    for name in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)

    assert missing_extra(endpoint) == ("" if kind == "foundry" else kind)
