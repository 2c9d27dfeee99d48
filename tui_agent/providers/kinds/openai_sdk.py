"""The only module that imports the SDK of OpenAI: it is loaded in a thread, never at start-up.

As with the other SDK, answers are read as raw bytes, and one call is one attempt.
"""

import os
from collections.abc import Iterable, Mapping
from typing import cast

import httpx2

from tui_agent.protocol.errors import ProviderError
from tui_agent.protocol.messages import is_array, is_object
from tui_agent.providers.connection import connection_failure, network_of, root_cause, secret_values
from tui_agent.providers.endpoint_client import EndpointClient
from tui_agent.providers.lean_import import hidden_package, load_names
from tui_agent.providers.provider_failures import ISOLATED_KEY_ADVICE, ErrorFactory
from tui_agent.providers.refused_fields import Refusal
from tui_agent.providers.sdk_response import SdkResponse

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

_LIST_SECONDS = 5.0
_AUTHORIZATION = "Authorization"
_NO_KEY = "none"
OWN_HOST = "api.openai.com"
"""Host of the API itself, which gets the organisation and the headers of the environment."""


class OpenAiClient(EndpointClient):
    """One connection pool of the SDK."""

    path = "/chat/completions"
    """Path of requests, below the address."""
    api = "the Chat Completions API"

    def __init__(
        self,
        *,
        api_key: str | None,
        auth_token: str | None,
        base_url: str | None,
        headers: Mapping[str, str],
        connect_timeout: float,
        silence_timeout: float,
        isolated: bool = True,
    ) -> None:
        """Create the SDK's client, which sends `auth_token` or no credential; send nothing.

        Raises:
            ProviderError: the address is invalid.
        """
        failure: ProviderError | None = None
        timeout = httpx2.Timeout(silence_timeout, connect=connect_timeout)
        address = base_url or f"https://{OWN_HOST}/v1"
        network = network_of(address)
        proxy = None if network.proxy is None else network.proxy.url
        key = api_key or auth_token
        try:
            self._client = AsyncOpenAI(
                # Without one, the SDK reads that of the environment. The headers below say what is sent.
                api_key=key or _NO_KEY,
                base_url=address,
                default_headers=cast(Mapping[str, str], _headers_for(address, headers, key)),
                max_retries=0,
                timeout=timeout,
                http_client=DefaultAsyncHttpxClient(
                    timeout=timeout, verify=network.context, trust_env=False, proxy=proxy
                ),
            )
        except (OpenAIError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory((key,) if key else ()).write("unavailable", root_cause(error), advice=advice)
        if failure is not None:
            raise failure
        if self._client.base_url.host != OWN_HOST:
            self._client.organization = self._client.project = None
        self.warnings = network.warnings
        self._proxy = network.proxy
        self._is_open = key is None and "authorization" not in {name.lower() for name in headers}
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        known = tuple(filter(None, (key, proxy, *secret_values(headers))))
        url = self._client.base_url
        origin = f"{url.scheme}://{url.host}{f':{url.port}' if url.port else ''}"
        self.errors = ErrorFactory(known, origin, ISOLATED_KEY_ADVICE, self.api)

    async def open(self, body: bytes, version: str | None = None, betas: Iterable[str] = ()) -> SdkResponse | Refusal:
        """Send one request and wait for the headers of its answer.

        Args:
            body: the request, as JSON.
            version, betas: of the Messages API; not used.

        Returns:
            The answer, or the refusal of a request that the server calls invalid.

        Raises:
            ProviderError: the request failed.
        """
        try:
            # At run time this is the type that `cast_to` requests; the SDK's annotations follow `stream_cls`.
            response: object = await self._client.post(
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
        except APIStatusError as error:
            failure = self._status_failure(error)
            if error.status_code in (400, 422) and failure.kind == "invalid_request":
                return Refusal(failure, error.body)
        except (OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = self._failure(error, self._silence_timeout)
        else:
            if isinstance(response, httpx2.Response):
                return SdkResponse(response, self.errors, self._silence_timeout)
            failure = self.errors.write("bad_response", "the SDK returned no response")
        raise failure

    async def list_models(self, limit: int) -> tuple[str, ...]:
        """Return the ids of the models that the server lists, in its order, at most `limit`.

        Raises:
            ProviderError: the server does not list them.
        """
        try:
            listed: object = await self._client.get(
                "/models",
                cast_to=object,
                options={"follow_redirects": False, "timeout": _LIST_SECONDS, "headers": self._key_header()},
            )
        except APIStatusError as error:
            failure = self._status_failure(error)
            if 300 <= error.status_code < 400 or error.status_code in (404, 405, 501):
                what = "The endpoint has no list of models"
                failure = self.errors.write("invalid_request", what=what, status=error.status_code)
        except (OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            failure = self._failure(error, _LIST_SECONDS)
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

    def _key_header(self) -> dict[str, str | Omit]:
        if self._key:
            return {_AUTHORIZATION: f"Bearer {self._key}"}
        # The SDK sends no request without a credential, unless each leaves it out.
        return {_AUTHORIZATION: Omit()} if self._is_open else {}

    def _status_failure(self, error: APIStatusError) -> ProviderError:
        status, headers = error.status_code, error.response.headers
        location = headers.get("location", "") if 300 <= status < 400 else ""
        if location:
            return self.errors.of_redirect(status, str(error.request.url), location, headers)
        return self.errors.of_status(status, error.body, headers)

    def _failure(self, error: Exception, seconds: float) -> ProviderError:
        """Return the error for a request that got no answer."""
        if isinstance(error, APITimeoutError):
            if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
                through = "" if self._proxy is None else f" through the proxy {self._proxy}"
                return self.errors.write("network", f"no connection within {self._connect_timeout:g} s{through}")
            return self.errors.write("timeout", f"nothing arrived for {seconds:g} s")
        if isinstance(error, APIConnectionError | httpx2.HTTPError | httpx2.InvalidURL | OSError):
            return connection_failure(self.errors, error, self._proxy)
        return self.errors.write("unavailable", root_cause(error), advice="check the settings")


class ResponsesClient(OpenAiClient):
    """The same for the Responses API."""

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
