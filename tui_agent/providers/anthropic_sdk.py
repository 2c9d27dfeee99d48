"""The only module that imports the SDK, which takes half a second: it is loaded in a thread, never at start-up.

It reads the raw bytes of an answer instead of the SDK's event objects, which halves the cost of reading. The SDK still
handles addresses, credentials, headers, proxies, certificates and errors.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import httpx2

from tui_agent.protocol.endpoint import DEFAULT_ADDRESS, is_own_api
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import is_object

from .connection import network_of, proxy_secrets, root_cause, secret_values
from .endpoint_client import LIST_SECONDS, EndpointClient, address_of
from .lean_import import hidden_package, load_names
from .model_catalog import ConnectionSettings
from .provider_failures import GATEWAY_KEY_ADVICE, ISOLATED_KEY_ADVICE, ErrorFactory
from .refused_fields import BETA_FIELD, VERSION_FIELD

_LATE = ("anthropic._error_classes", "anthropic.lib._tracing._api_call")
"""Modules that load nine tenths of the rest, for errors and for spans of calls that are not made here."""

# If aiohttp is installed, the SDK imports it, in a quarter of a second, for a client that is not used here. Most of its
# other modules are types of services that are not used either.
with hidden_package("aiohttp"):
    load_names(
        "anthropic", ("AsyncAnthropic", "AsyncStream", "AnthropicError", "DefaultAsyncHttpxClient", "Omit"), _LATE
    )
    from anthropic import (
        AnthropicError,
        APIConnectionError,
        APIStatusError,
        APITimeoutError,
        AsyncAnthropic,
        AsyncStream,
        DefaultAsyncHttpxClient,
        Omit,
    )

MESSAGES = "/v1/messages"
_NO_TOKEN = "none"


class SdkClient(EndpointClient):
    """One connection pool of the SDK. Without a credential, the SDK looks for one in its usual places."""

    sdk_error = AnthropicError
    status_error = APIStatusError
    timeout_error = APITimeoutError
    connection_error = APIConnectionError
    _client: AsyncAnthropic

    def _create(self, settings: ConnectionSettings) -> None:
        api_key, auth_token, headers = settings.api_key, settings.auth_token, settings.headers
        failure: ProviderError | None = None
        sent = _key_headers(headers, api_key)
        address = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_ADDRESS
        if settings.isolated:
            sent = isolated_headers(headers, auth_token, api_key, both=not is_own_api(address))
        self._network = network_of(address)
        try:
            self._client = AsyncAnthropic(
                api_key=None if settings.isolated else api_key,
                # With a token, the SDK reads no credential of the environment.
                auth_token=auth_token or (api_key or _NO_TOKEN if settings.isolated else None),
                # The SDK would take an empty variable for an address.
                base_url=address if os.environ.get("ANTHROPIC_BASE_URL") == "" else settings.base_url,
                default_headers=cast(Mapping[str, str], sent),
                # A retry is a decision of the loop, and an event on the screen.
                max_retries=0,
                timeout=self._timeout,
                http_client=DefaultAsyncHttpxClient(
                    timeout=self._timeout,
                    verify=self._network.context,
                    # `network_of` reads the environment, and entries of NO_PROXY that the HTTP library does not
                    # understand.
                    trust_env=False,
                    proxy=self._network.proxy_url,
                ),
            )
        except (AnthropicError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory(_known(api_key, auth_token)).write("unavailable", root_cause(error), advice=advice)
        # Raised here, so that it has no context, in which an error of the SDK could repeat the key.
        if failure is not None:
            raise failure
        known = _known(
            self._client.api_key,
            self._client.auth_token,
            *proxy_secrets(self._network.proxy),
            *secret_values(headers),
        )
        self.errors = ErrorFactory(known, address_of(self._client))
        if settings.isolated or not is_own_api(address):
            advice = ISOLATED_KEY_ADVICE if settings.isolated else GATEWAY_KEY_ADVICE
            self.errors = replace(self.errors, key_advice=advice)

    @property
    def has_credentials(self) -> bool:
        client = self._client
        named = {name.lower() for name in client.default_headers}
        return bool(client.api_key or client.auth_token or client.credentials or "authorization" in named)

    async def _send(self, body: bytes, version: str | None, betas: Iterable[str]) -> object:
        # At run time this is the type that `cast_to` requests; the SDK's annotations follow `stream_cls`.
        return await self._client.post(
            MESSAGES,
            cast_to=httpx2.Response,
            content=body,
            stream=True,
            stream_cls=AsyncStream[object],
            # The SDK would follow up to 20 redirects an attempt, and send the conversation to any address.
            options={"follow_redirects": False, "headers": self._request_headers(version, betas)},
        )

    def _unsent(self, error: Exception) -> ProviderError:
        if isinstance(error, ValueError):
            return super()._unsent(error)
        return self.errors.write("authentication", root_cause(error), what="No API key was found")

    async def count_tokens(self, body: bytes) -> int | None:
        try:
            counted: object = await self._client.post(
                "/v1/messages/count_tokens",
                cast_to=object,
                content=body,
                options={
                    "follow_redirects": False,
                    "timeout": LIST_SECONDS,
                    "headers": self._request_headers(),
                },
            )
        except (AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
            # The estimate serves without a count, so no failure of counting stops a request.
            return None
        tokens = counted.get("input_tokens") if is_object(counted) else None
        return tokens if isinstance(tokens, int) and tokens >= 0 else None

    async def _list(self, limit: int) -> object:
        # The SDK's `models.list` sends the same request, but would follow a redirect with the key.
        listed: object = await self._client.get(
            "/v1/models",
            cast_to=object,
            options={
                "follow_redirects": False,
                "timeout": LIST_SECONDS,
                "headers": self._request_headers(),
                "params": {"limit": limit},
            },
        )
        return listed

    def _request_headers(self, version: str | None = None, betas: Iterable[str] = ()) -> dict[str, str]:
        headers = {"X-Api-Key": self._key, "Authorization": f"Bearer {self._key}"} if self._key else {}
        headers |= {} if version is None else {VERSION_FIELD: version}
        return headers | ({BETA_FIELD: ",".join(betas)} if betas else {})


def _key_headers(headers: Mapping[str, str], key: str | None) -> dict[str, str | Omit]:
    """Return the headers of a client with those for its key, unless they or the environment set these themselves."""
    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    named = {name.lower() for name in (*headers, *(line.partition(":")[0].strip() for line in lines))}
    own: dict[str, str | Omit] = {} if key is None else {"X-Api-Key": key, "Authorization": Omit()}
    return {**{name: value for name, value in own.items() if name.lower() not in named}, **headers}


def isolated_headers(
    headers: Mapping[str, str], token: str | None, key: str | None = None, *, both: bool = True
) -> dict[str, str | Omit]:
    """Return the headers of a client that sends nothing of the environment, with its credential if it has one.

    With `both`, a key is also sent as a token: servers of other makers read the one or the other.
    """
    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    bearer = token or (key if both else None)
    credential: str | Omit = f"Bearer {bearer}" if bearer else Omit()
    # The order matters: a later header replaces an earlier one of the same name in other letters.
    foreign = {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
    own: dict[str, str | Omit] = {"X-Api-Key": key} if key else {}
    return {**foreign, **own, "Authorization": credential, **headers}


def _known(*secrets: str | None) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if secret)
