"""The SDK's clients for clouds. Only this module imports them and the clouds' own libraries, in a thread.

The SDK finds the credentials where the tools of each cloud have them, and signs the requests.
"""

import base64
import json
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, ClassVar, cast

import httpx2

from tui_agent.protocol.endpoint import Endpoint
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import JsonObject
from tui_agent.providers.anthropic_sdk import MESSAGES, SdkClient, isolated_headers
from tui_agent.providers.connection import network_of, root_cause, secret_values
from tui_agent.providers.endpoint_client import EndpointClient, SdkResponse, address_of
from tui_agent.providers.error_details import ErrorDetails
from tui_agent.providers.lean_import import hidden_package
from tui_agent.providers.model_catalog import ConnectionSettings
from tui_agent.providers.provider_failures import ErrorFactory

with hidden_package("aiohttp"):
    from anthropic import AnthropicError, AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient

_EVENT_STREAM = "application/vnd.amazon.eventstream"
_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK")


class CloudClient(SdkClient):
    """One connection pool of a client for a cloud."""

    endpoint: ClassVar[Endpoint]
    key_advice: ClassVar[str]
    """Advice about credentials that are missing or refused."""
    what: ClassVar[str] = "No credentials were found"

    def _create(self, settings: ConnectionSettings) -> None:
        key = settings.api_key or settings.auth_token
        secrets = tuple(filter(None, (key, *map(os.environ.get, _SECRETS), *secret_values(settings.headers))))
        self.errors = ErrorFactory(secrets, key_advice=self.key_advice)
        common: dict[str, Any] = {
            "base_url": settings.base_url,
            "default_headers": isolated_headers(settings.headers, None),
            "max_retries": 0,
            "timeout": self._timeout,
        }
        try:
            # The address is the SDK's choice, and the proxy depends on it.
            self._network = network = network_of(str(self.make_client(key, common).base_url))
            http = DefaultAsyncHttpxClient(
                timeout=self._timeout, verify=network.context, trust_env=False, proxy=network.proxy_url
            )
            self._client = cast(AsyncAnthropic, self.make_client(key, {**common, "http_client": http}))
        except self.failures() as error:
            raise self._no_credentials(error) from None
        self.errors = ErrorFactory(secrets, address_of(self._client), self.key_advice)

    def make_client(self, key: str | None, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        raise NotImplementedError

    @classmethod
    def failures(cls) -> tuple[type[Exception], ...]:
        """Return the errors of the SDK and of the cloud's library about credentials and settings."""
        return (AnthropicError, httpx2.InvalidURL, ValueError, OSError, RuntimeError)

    @property
    def has_credentials(self) -> bool:
        """True: the SDK looks for them with the first request."""
        return True

    async def _send(self, body: bytes, version: str | None, betas: Iterable[str]) -> object:
        """Send one request; the SDK makes the address from its fields, and signs it."""
        fields: JsonObject = json.loads(body)
        if version:
            fields["anthropic_version"] = version
        try:
            return await self._client.post(
                MESSAGES,
                cast_to=httpx2.Response,
                body=fields,
                stream=True,
                stream_cls=AsyncStream[object],
                options={"follow_redirects": False, "headers": self._request_headers(None, betas)},
            )
        except (AnthropicError, httpx2.HTTPError):
            raise
        except self.failures() as error:
            raise self._no_credentials(error) from None

    async def list_models(self, limit: int) -> tuple[str, ...]:
        """Raise an error: these endpoints have no list.

        Raises:
            ProviderError: always.
        """
        del limit
        raise self.errors.write("invalid_request", what="The endpoint has no list of models")

    def _no_credentials(self, error: Exception) -> ProviderError:
        return self.errors.write("authentication", root_cause(error).split("\n")[0], what=self.what)


class BedrockClient(CloudClient):
    """Client for Amazon Bedrock."""

    key_advice = (
        "check AWS_PROFILE, AWS_ACCESS_KEY_ID or AWS_BEARER_TOKEN_BEDROCK, and the region in AWS_REGION or "
        "`providers.bedrock.region`"
    )
    what = "Amazon Bedrock cannot be asked"

    def make_client(self, key: str | None, common: dict[str, Any]) -> Any:
        from anthropic.lib.bedrock import AsyncAnthropicBedrock

        return AsyncAnthropicBedrock(api_key=key, aws_region=self.endpoint.region, **common)

    @classmethod
    def failures(cls) -> tuple[type[Exception], ...]:
        from botocore.exceptions import BotoCoreError

        return (*super().failures(), BotoCoreError)

    async def count_tokens(self, body: bytes) -> int | None:
        """Return None: Bedrock does not count."""
        del body
        return None

    def _answer(self, response: httpx2.Response) -> SdkResponse:
        return _BedrockResponse(response, self.errors, self._silence_timeout)


class VertexClient(CloudClient):
    """Client for Google Vertex AI."""

    key_advice = (
        "log in with `gcloud auth application-default login` or set GOOGLE_APPLICATION_CREDENTIALS, and check "
        "CLOUD_ML_REGION and ANTHROPIC_VERTEX_PROJECT_ID, or `region` and `project` of `[providers.vertex]`"
    )
    what = "Google Vertex AI cannot be asked"

    def make_client(self, key: str | None, common: dict[str, Any]) -> Any:
        from anthropic.lib.vertex import AsyncAnthropicVertex

        places = {"region": self.endpoint.region, "project_id": self.endpoint.project}
        given = {name: value for name, value in places.items() if value}
        return AsyncAnthropicVertex(access_token=key, **given, **common)

    @classmethod
    def failures(cls) -> tuple[type[Exception], ...]:
        from google.auth.exceptions import GoogleAuthError

        return (*super().failures(), GoogleAuthError)


class FoundryClient(CloudClient):
    """Client for Microsoft Foundry."""

    key_advice = (
        "check ANTHROPIC_FOUNDRY_API_KEY, and the resource in ANTHROPIC_FOUNDRY_RESOURCE or its address in "
        "`providers.foundry.base_url`; `key_command` may print an Entra token"
    )
    what = "Microsoft Foundry cannot be asked"

    def make_client(self, key: str | None, common: dict[str, Any]) -> Any:
        from anthropic.lib.foundry import AsyncAnthropicFoundry

        # A key that a command prints is set for each request.
        return AsyncAnthropicFoundry(api_key=key or ("none" if self.endpoint.key_command else None), **common)


_CLIENTS: dict[str, type[CloudClient]] = {
    "bedrock": BedrockClient,
    "vertex": VertexClient,
    "foundry": FoundryClient,
}


def client_for(endpoint: Endpoint) -> type[EndpointClient]:
    """Return the class of the clients for an endpoint in a cloud."""
    kind = _CLIENTS[endpoint.kind]
    return type(kind.__name__, (kind,), {"endpoint": endpoint})


class _BedrockResponse(SdkResponse):
    """An answer in frames of AWS, which the SDK takes apart."""

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the events as text as they arrive; if they are cut off, `broken` has the failure afterwards."""
        if not self.content_type.startswith(_EVENT_STREAM):
            async with aclosing(super().chunks()) as plain:
                async for chunk in plain:
                    yield chunk
            return
        from botocore.eventstream import EventStreamBuffer, ParserError

        frames = EventStreamBuffer()
        try:
            async with aclosing(super().chunks()) as chunks:
                async for chunk in chunks:
                    frames.add_data(chunk)  # pyright: ignore[reportUnknownMemberType] — untyped library
                    for frame in frames:
                        yield _event_of(cast(JsonObject, frame.to_response_dict()))
        except (ParserError, ValueError, KeyError) as error:
            self.broken = self.failure("bad_response", f"a frame is not valid ({root_cause(error)})")


def _event_of(frame: JsonObject) -> bytes:
    """Return a frame as an event of the Messages API."""
    headers: JsonObject = frame["headers"]
    kind = headers.get(":exception-type") or headers.get(":error-code")
    if kind is None:
        return b"data: " + base64.b64decode(json.loads(frame["body"]).get("bytes", "")) + b"\n\n"
    message = headers.get(":error-message") or ErrorDetails.of(frame["body"].decode("utf-8", "replace")).words
    error = {"type": "error", "error": {"type": kind, "message": message}}
    return f"event: error\ndata: {json.dumps(error)}\n\n".encode()
