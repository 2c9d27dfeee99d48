"""The only module that imports the SDK of OpenAI: it is loaded in a thread, never at start-up.

As with the other SDK, answers are read as raw bytes, and one call is one attempt.
"""

import os
from collections.abc import Iterable, Mapping
from typing import cast

import httpx2

from tui_agent.protocol.errors import ProviderError
from tui_agent.providers.connection import network_of, proxy_secrets, root_cause, secret_values
from tui_agent.providers.endpoint_client import LIST_SECONDS, EndpointClient, address_of
from tui_agent.providers.lean_import import hidden_package, load_names
from tui_agent.providers.model_catalog import ConnectionSettings
from tui_agent.providers.provider_failures import ISOLATED_KEY_ADVICE, ErrorFactory

with hidden_package("aiohttp"):
    load_names("openai", ("AsyncOpenAI", "AsyncStream", "OpenAIError", "DefaultAsyncHttpxClient", "Omit"))
    from openai import (
        APIConnectionError,
        APIStatusError,
        APITimeoutError,
        AsyncOpenAI,
        AsyncStream,
        DefaultAsyncHttpxClient,
        Omit,
        OpenAIError,
    )

_AUTHORIZATION = "Authorization"
_NO_KEY = "none"
OWN_HOST = "api.openai.com"
"""Host of the API itself, which gets the organisation and the headers of the environment."""


class OpenAiClient(EndpointClient):
    """One connection pool of the SDK, which sends the key as a token, or no credential."""

    sdk_error = OpenAIError
    status_error = APIStatusError
    timeout_error = APITimeoutError
    connection_error = APIConnectionError
    refusal_statuses = (400, 422)
    path = "/chat/completions"
    api = "the Chat Completions API"
    _client: AsyncOpenAI

    def _create(self, settings: ConnectionSettings) -> None:
        failure: ProviderError | None = None
        address = settings.base_url or f"https://{OWN_HOST}/v1"
        self._network = network_of(address)
        key, headers = settings.api_key or settings.auth_token, settings.headers
        try:
            self._client = AsyncOpenAI(
                # Without one, the SDK reads that of the environment. The headers below say what is sent.
                api_key=key or _NO_KEY,
                base_url=address,
                default_headers=cast(Mapping[str, str], _headers_for(address, headers, key)),
                max_retries=0,
                timeout=self._timeout,
                http_client=DefaultAsyncHttpxClient(
                    timeout=self._timeout,
                    verify=self._network.context,
                    trust_env=False,
                    proxy=self._network.proxy_url,
                ),
            )
        except (OpenAIError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory((key,) if key else ()).write("unavailable", root_cause(error), advice=advice)
        # Raised here, so that it has no context, in which an error of the SDK could repeat the key.
        if failure is not None:
            raise failure
        if self._client.base_url.host != OWN_HOST:
            self._client.organization = self._client.project = None
        self._is_open = key is None and "authorization" not in {name.lower() for name in headers}
        known = tuple(filter(None, (key, *proxy_secrets(self._network.proxy), *secret_values(headers))))
        self.errors = ErrorFactory(known, address_of(self._client), ISOLATED_KEY_ADVICE, self.api)

    async def _send(self, body: bytes, version: str | None, betas: Iterable[str]) -> object:
        # At run time this is the type that `cast_to` requests; the SDK's annotations follow `stream_cls`.
        return await self._client.post(
            self.path,
            cast_to=httpx2.Response,
            content=body,
            stream=True,
            stream_cls=AsyncStream[object],
            options={
                "follow_redirects": False,
                "headers": {"Content-Type": "application/json", **self._key_header()},
            },
        )

    async def _list(self, limit: int) -> object:
        listed: object = await self._client.get(
            "/models",
            cast_to=object,
            options={"follow_redirects": False, "timeout": LIST_SECONDS, "headers": self._key_header()},
        )
        return listed

    def _key_header(self) -> dict[str, str | Omit]:
        if self._key:
            return {_AUTHORIZATION: f"Bearer {self._key}"}
        # The SDK sends no request without a credential, unless each leaves it out.
        return {_AUTHORIZATION: Omit()} if self._is_open else {}


class ResponsesClient(OpenAiClient):
    """One connection pool of the SDK for the Responses API."""

    path = "/responses"
    api = "the Responses API"


def _headers_for(address: str, headers: Mapping[str, str], key: str | None) -> dict[str, str | Omit]:
    """Return the headers of a client; those that the environment sets for the API itself go to no other host."""
    foreign: dict[str, str | Omit] = {}
    if httpx2.URL(address).host != OWN_HOST:
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
        foreign = {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
    # The order matters: a later header replaces an earlier one of the same name in other letters.
    return {**foreign, _AUTHORIZATION: f"Bearer {key}" if key else Omit(), **headers}
