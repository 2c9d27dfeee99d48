"""The only module that imports the SDK, which takes half a second: it is loaded in a thread, never at start-up.

It reads the raw bytes of an answer instead of the SDK's event objects, which halves the cost of reading. The SDK still
handles addresses, credentials, headers, proxies, certificates and errors.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

import httpx2

from tui_agent.protocol.environment_key import DEFAULT_ADDRESS, is_own_api
from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import is_array, is_object

from .connection import connection_failure, network_of, proxy_secrets, root_cause, secret_values
from .endpoint_client import EndpointClient
from .lean_import import hidden_package, load_names
from .provider_failures import GATEWAY_KEY_ADVICE, ISOLATED_KEY_ADVICE, ErrorFactory
from .refused_fields import BETA_FIELD, VERSION_FIELD, Refusal
from .sdk_response import SdkResponse

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
_COUNT_SECONDS = 5.0
_NO_TOKEN = "none"


class SdkClient(EndpointClient):
    """One connection pool of the SDK, without retries: one call is one attempt."""

    def __init__(
        self,
        *,
        api_key: str | None,
        auth_token: str | None,
        base_url: str | None,
        headers: Mapping[str, str],
        connect_timeout: float,
        silence_timeout: float,
        isolated: bool = False,
    ) -> None:
        """Create the SDK's client; send nothing.

        Without `api_key` and `auth_token` the SDK looks for credentials in its usual places. An `isolated` client
        sends no credential but its own, and no header that the environment sets for another endpoint.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """
        failure: ProviderError | None = None
        sent = _key_headers(headers, api_key)
        timeout = httpx2.Timeout(silence_timeout, connect=connect_timeout)
        address = base_url or os.environ.get("ANTHROPIC_BASE_URL") or DEFAULT_ADDRESS
        if isolated:
            sent = isolated_headers(headers, auth_token, api_key, both=not is_own_api(address))
        network = network_of(address)
        proxy = None if network.proxy is None else network.proxy.url
        try:
            self._client = AsyncAnthropic(
                api_key=None if isolated else api_key,
                # With a token, the SDK reads no credential of the environment.
                auth_token=auth_token or (api_key or _NO_TOKEN if isolated else None),
                # The SDK would take an empty variable for an address.
                base_url=address if os.environ.get("ANTHROPIC_BASE_URL") == "" else base_url,
                default_headers=cast(Mapping[str, str], sent),
                # A retry is a decision of the loop, and an event on the screen.
                max_retries=0,
                timeout=timeout,
                http_client=DefaultAsyncHttpxClient(
                    timeout=timeout, verify=network.context, trust_env=False, proxy=proxy
                ),
            )
        except (AnthropicError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory(_known(api_key, auth_token)).write("unavailable", root_cause(error), advice=advice)
        if failure is not None:
            raise failure
        self.warnings = network.warnings
        """Sentences for the user about variables that could not be used in whole."""
        self._proxy = network.proxy
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        known = _known(
            self._client.api_key, self._client.auth_token, *proxy_secrets(network.proxy), *secret_values(headers)
        )
        self.errors = ErrorFactory(known, address_of(self._client))
        if isolated or not is_own_api(address):
            advice = ISOLATED_KEY_ADVICE if isolated else GATEWAY_KEY_ADVICE
            self.errors = replace(self.errors, key_advice=advice)
        """Writer of this client's errors, which knows its secrets."""

    @property
    def has_credentials(self) -> bool:
        """True if requests have a credential."""
        client = self._client
        named = {name.lower() for name in client.default_headers}
        return bool(client.api_key or client.auth_token or client.credentials or "authorization" in named)

    async def open(self, body: bytes, version: str | None = None, betas: Iterable[str] = ()) -> "SdkResponse | Refusal":
        """Send one request and wait for the headers of its answer.

        Args:
            body: the request, as JSON.
            version: value of the header `anthropic-version`; None for that of the client.
            betas: values of the header `anthropic-beta`.

        Returns:
            The answer, or the refusal of a request that the server calls invalid.

        Raises:
            ProviderError: the request failed.
        """
        headers = self._request_headers()
        headers |= {} if version is None else {VERSION_FIELD: version}
        headers |= {BETA_FIELD: ",".join(betas)} if betas else {}
        try:
            response = await self._send(body, headers)
        except APIStatusError as error:
            status, headers = error.status_code, error.response.headers
            location = headers.get("location", "") if 300 <= status < 400 else ""
            if location:
                failure = self.errors.of_redirect(status, str(error.request.url), location, headers)
            else:
                failure = self.errors.of_status(status, error.body, headers)
                if failure.kind == "invalid_request":
                    return Refusal(failure, error.body)
        except APITimeoutError as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
                through = "" if self._proxy is None else f" through the proxy {self._proxy}"
                words = f"no connection within {self._connect_timeout:g} s{through}"
                failure = self.errors.write("network", words)
            else:
                failure = self.errors.write("timeout", f"nothing arrived for {self._silence_timeout:g} s")
        except (APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = connection_failure(self.errors, error, self._proxy)
        except ValueError as error:
            failure = self.errors.write("unavailable", root_cause(error), advice="check the settings")
        except AnthropicError as error:
            failure = self.errors.write("authentication", root_cause(error), what="No API key was found")
        else:
            if isinstance(response, httpx2.Response):
                return self._answer(response)
            failure = self.errors.write("bad_response", "the SDK returned no response")
        raise failure

    async def _send(self, body: bytes, headers: Mapping[str, str]) -> object:
        """Send one request and return the answer, an `httpx2.Response`."""
        # At run time this is the type that `cast_to` requests; the SDK's annotations follow `stream_cls`.
        return await self._client.post(
            MESSAGES,
            cast_to=httpx2.Response,
            content=body,
            stream=True,
            stream_cls=AsyncStream[object],
            # The SDK would follow up to 20 redirects an attempt, and send the conversation to any address.
            options={"follow_redirects": False, "headers": headers},
        )

    def _answer(self, response: httpx2.Response) -> SdkResponse:
        return SdkResponse(response, self.errors, self._silence_timeout)

    async def count_tokens(self, body: bytes) -> int | None:
        """Return the number of input tokens of a request as the server counts them; None if it does not."""
        try:
            counted: object = await self._client.post(
                "/v1/messages/count_tokens",
                cast_to=object,
                content=body,
                options={
                    "follow_redirects": False,
                    "timeout": _COUNT_SECONDS,
                    "headers": self._request_headers(),
                },
            )
        except (AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
            return None
        tokens = counted.get("input_tokens") if is_object(counted) else None
        return tokens if isinstance(tokens, int) and tokens >= 0 else None

    async def list_models(self, limit: int) -> tuple[str, ...]:
        """Return the ids of the models that the server lists, in its order.

        Args:
            limit: most models to ask for.

        Raises:
            ProviderError: the server does not list them.
        """
        try:
            # The SDK's `models.list` sends the same request, but would follow a redirect with the key.
            listed: object = await self._client.get(
                "/v1/models",
                cast_to=object,
                options={
                    "follow_redirects": False,
                    "timeout": _COUNT_SECONDS,
                    "headers": self._request_headers(),
                    "params": {"limit": limit},
                },
            )
        except APIStatusError as error:
            status, headers = error.status_code, error.response.headers
            failure = self.errors.of_status(status, error.body, headers)
            if 300 <= status < 400 or status in (404, 405, 501):
                what = "The endpoint has no list of models"
                failure = self.errors.write("invalid_request", what=what, status=status)
        except APITimeoutError:
            failure = self.errors.write("timeout", f"no answer within {_COUNT_SECONDS:g} s")
        except (APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = connection_failure(self.errors, error, self._proxy)
        except (AnthropicError, ValueError) as error:
            failure = self.errors.write("bad_response", root_cause(error))
        else:
            models: object = listed.get("data") if is_object(listed) else None
            if is_array(models):
                ids = (one.get("id") for one in models if is_object(one))
                return tuple(dict.fromkeys(name for name in ids if isinstance(name, str) and name.strip()))[:limit]
            failure = self.errors.write("bad_response", "the answer is not a list of models")
        raise failure

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    def _request_headers(self) -> dict[str, str]:
        return {"X-Api-Key": self._key, "Authorization": f"Bearer {self._key}"} if self._key else {}


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


def address_of(client: AsyncAnthropic) -> str:
    """Return the address of the client's requests, without user name and password."""
    url = client.base_url
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"
