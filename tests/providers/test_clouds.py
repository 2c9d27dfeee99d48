"""Bedrock, Vertex and Foundry through the clients of the real SDK, against a server that plays a script."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.cloud_server import AWS_STREAM, ScriptedCloudServer, event_frame, exception_frame
from tests.support.stream_helpers import HELLO, calls_of, heard, text_of
from tests.support.table import table
from tui_agent.protocol.errors import ConfigurationError
from tui_agent.protocol.messages import ToolCall
from tui_agent.protocol.provider import ModelRequest, StreamEnded
from tui_agent.protocol.tool import ToolSpec
from tui_agent.providers import AnthropicProvider
from tui_agent.settings import Settings
from tui_agent.workbench.build_provider import ProviderBuilder

READ = ToolSpec(name="read", description="Reads a file.", input_schema={"type": "object"})
ASKED = ModelRequest(HELLO.messages, tools=(READ,), thinking_tokens=4_096)
SCRIPT = {
    "blocks": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Hello 🙂"},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
    ]
}
IN_FRAMES = {**SCRIPT, "headers": AWS_STREAM}
BEDROCK = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
VERTEX = "vertex/claude-sonnet-4-5@20250929"
FOUNDRY = "foundry/claude-sonnet-5-5"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """No credentials but those of a test; none from files or the machine."""
    for name in ("AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "no-credentials"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-another-host")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Other: of-another-host")
    return monkeypatch


@asynccontextmanager
async def asking(model: str, **endpoint: Any) -> AsyncIterator[AnthropicProvider]:
    """Yield the provider that the settings of a user build."""

    settings = Settings.model_validate({"model": model, "providers": {model.partition("/")[0]: endpoint}})
    async with AsyncExitStack() as stack:
        provider = ProviderBuilder(stack).build(settings)
        assert isinstance(provider, AnthropicProvider)
        yield provider


def is_the_whole_answer(facts: list[Any], error: Any) -> None:
    assert error is None
    assert text_of(facts) == "Hello 🙂"
    assert calls_of(facts) == [ToolCall(id="c1", name="read", arguments={"path": "a"})]
    assert facts[-1] == StreamEnded("tool_use")


def sent_to(server: ScriptedCloudServer) -> Mapping[str, str]:
    """Return the headers of the only request, which has nothing of another endpoint."""
    assert server.problems == []
    (request,) = server.requests
    assert "of-another-host" not in str(request.headers)
    return request.headers


async def test_bedrock_with_an_access_key(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-aws")
    environment.setenv("AWS_SESSION_TOKEN", "session-of-aws")
    async with ScriptedCloudServer([IN_FRAMES]) as server:
        async with asking(BEDROCK, base_url=server.base_url, region="eu-west-1", betas=["some-beta"]) as provider:
            is_the_whole_answer(*await heard(provider.stream(ASKED)))
            assert await provider.count_tokens(ASKED) is None

        headers = sent_to(server)
        assert server.asked_for == [f"/model/{BEDROCK.partition('/')[2]}/invoke-with-response-stream"]
        assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert "/eu-west-1/bedrock/aws4_request" in headers["authorization"]
        assert headers["x-amz-security-token"] == "session-of-aws"
        body = server.requests[0].body
        assert body["anthropic_beta"] == ["some-beta"]
        assert (body["thinking"]["type"], body["tools"][0]["name"]) == ("enabled", "read")


async def test_bedrock_with_a_key_of_its_own_and_byte_by_byte(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-of-aws")
    environment.setenv("AWS_REGION", "us-east-1")
    async with ScriptedCloudServer([{**IN_FRAMES, "byte_by_byte": True}]) as server:
        async with asking(BEDROCK, base_url=server.base_url) as provider:
            is_the_whole_answer(*await heard(provider.stream(ASKED)))

        assert sent_to(server)["authorization"] == "Bearer bearer-of-aws"


async def test_vertex_with_a_service_account(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    file = tmp_path / "account.json"
    environment.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    environment.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "my-project")
    async with ScriptedCloudServer([SCRIPT]) as server:
        account = {"type": "service_account", "client_email": "a@b.example", "private_key": pem}
        file.write_text(json.dumps({**account, "token_uri": f"{server.base_url}/token", "project_id": "other"}))
        async with asking(VERTEX, base_url=f"{server.base_url}/v1", region="europe-west4") as provider:
            is_the_whole_answer(*await heard(provider.stream(ASKED)))

        assert sent_to(server)["authorization"] == "Bearer ya29.of-google"
        place = "/v1/projects/my-project/locations/europe-west4/publishers/anthropic/models"
        assert server.asked_for == [f"{place}/claude-sonnet-4-5@20250929:streamRawPredict"]
        assert server.tokens == 1


async def test_foundry_with_a_key(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("MY_FOUNDRY_KEY", "key-of-foundry")
    async with ScriptedCloudServer([SCRIPT]) as server:
        async with asking(FOUNDRY, base_url=server.base_url, key_env="MY_FOUNDRY_KEY") as provider:
            is_the_whole_answer(*await heard(provider.stream(ASKED)))

        assert sent_to(server)["x-api-key"] == "key-of-foundry"


CUT = event_frame(b'{"type": "message_start", "message": {}}')
IN_STREAM = {
    "throttled": (CUT + exception_frame("throttlingException", "Too many tokens"), "rate_limit"),
    "overloaded": (exception_frame("serviceUnavailableException", "Bedrock is busy"), "overloaded"),
    "full": (exception_frame("validationException", "Input is too long for requested model."), "context_exceeded"),
    "cut": (CUT, "stream_cut"),
    "damaged": (CUT[:-1] + b"x", "bad_response"),
}


@table("name", IN_STREAM)
async def test_failures_in_the_frames_of_bedrock(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-of-aws")
    body, kind = IN_STREAM[name]
    parts = [{"type": "bytes", "text": body.decode("latin-1")}]
    async with (
        RawCloudServer([{"blocks": parts, "headers": AWS_STREAM, "ending": "no_message_stop"}]) as server,
        asking(BEDROCK, base_url=server.base_url, region="us-east-1") as provider,
    ):
        _, error = await heard(provider.stream(ASKED))

    assert error is not None
    assert error.kind == kind


class RawCloudServer(ScriptedCloudServer):
    """Server that sends only the bytes of its script."""

    def _items(self, scripted: Any) -> Any:
        for part in scripted.blocks:
            yield part.text.encode("latin-1")


MISSING: dict[str, tuple[str, dict[str, Any], str]] = {
    "no AWS credentials": (BEDROCK, {"region": "us-east-1"}, "AWS_ACCESS_KEY_ID"),
    "no AWS region": (BEDROCK, {}, "AWS_REGION"),
    "unknown AWS profile": (BEDROCK, {"region": "us-east-1"}, "AWS_PROFILE"),
    "no Google credentials": (VERTEX, {"region": "global", "project": "p"}, "gcloud auth application-default login"),
    "no Google region": (VERTEX, {"project": "p"}, "CLOUD_ML_REGION"),
    "no Google project": (VERTEX, {"region": "global"}, "ANTHROPIC_VERTEX_PROJECT_ID"),
    "no Foundry resource": (FOUNDRY, {"key_command": "echo k"}, "ANTHROPIC_FOUNDRY_RESOURCE"),
}


@table("name", MISSING)
async def test_missing_credentials_and_places_are_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, endpoint, named = MISSING[name]
    if "profile" in name:
        monkeypatch.setenv("AWS_PROFILE", "nobody")
    async with asking(model, **endpoint) as provider:
        _, error = await heard(provider.stream(ASKED))

    assert error is not None
    assert (error.kind, error.retryable) == ("authentication", False)
    assert named in str(error)
    assert "ANTHROPIC_API_KEY" not in str(error)


@table(
    ("model", "module", "extra"),
    [(BEDROCK, "boto3", "bedrock"), (VERTEX, "google.auth", "vertex"), ("openai/x", "openai", "openai")],
)
async def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    model: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.delitem(sys.modules, "tui_agent.providers.kinds.openai_sdk", raising=False)
    monkeypatch.setattr("tui_agent.providers.kinds.other_providers.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, module, None)
    async with asking(model) as provider:
        _, error = await heard(provider.stream(ASKED))

    assert error is not None
    assert error.kind == "unavailable"
    assert f"needs the extra `{extra}`, which is not installed" in str(error)
    assert f"[{extra}]" in str(error)


def test_foundry_without_a_key_is_refused_at_the_start(environment: pytest.MonkeyPatch) -> None:

    environment.delenv("ANTHROPIC_FOUNDRY_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="ANTHROPIC_FOUNDRY_API_KEY"):
        ProviderBuilder(AsyncExitStack()).build(Settings(model=FOUNDRY))
