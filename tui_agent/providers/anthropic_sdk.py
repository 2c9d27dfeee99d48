"""The only module that imports the SDK, which takes half a second: it is loaded in a thread, never at start-up.

It reads the raw bytes of an answer instead of the SDK's event objects, which halves the cost of reading. The SDK still
handles addresses, credentials, headers, proxies, certificates and errors.
"""

import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Self, cast

import httpx2

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind
from tui_agent.protocol.messages import is_object

from .lean_import import hidden_package, load_names
from .provider_failures import BROKE_OFF, ErrorFactory
from .refused_fields import VERSION_FIELD, Refusal

# If aiohttp is installed, the SDK imports it, in a quarter of a second, for a client that is not used here. Most of its
# other modules are types of services that are not used either.
with hidden_package("aiohttp"):
    load_names("anthropic", ("AsyncAnthropic", "AsyncStream", "AnthropicError", "Omit"))
    from anthropic import (
        AnthropicError,
        APIConnectionError,
        APIStatusError,
        APITimeoutError,
        AsyncAnthropic,
        AsyncStream,
        Omit,
    )

_EVENT_STREAM = "text/event-stream"
_COUNT_SECONDS = 5.0
_NO_TOKEN = "none"
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class SdkClient:
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
        sends no credential but `auth_token`, and no header that the environment sets for another endpoint.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """
        failure: ProviderError | None = None
        sent = _isolated_headers(headers, auth_token) if isolated else headers
        try:
            self._client = AsyncAnthropic(
                api_key=api_key,
                # With a token, the SDK reads no credential of the environment.
                auth_token=auth_token or (_NO_TOKEN if isolated else None),
                base_url=base_url,
                default_headers=cast(Mapping[str, str], sent),
                max_retries=0,
                timeout=httpx2.Timeout(silence_timeout, connect=connect_timeout),
            )
        except (AnthropicError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory(_known(api_key, auth_token)).write("unavailable", _root_cause(error), advice=advice)
        if failure is not None:
            raise failure
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        known = _known(self._client.api_key, self._client.auth_token, *_secret_values(headers))
        self.errors = ErrorFactory(known, _address(self._client))
        """Writer of this client's errors, which knows its secrets."""

    @property
    def has_credentials(self) -> bool:
        """True if requests have a credential."""
        client = self._client
        named = {name.lower() for name in client.default_headers}
        return bool(client.api_key or client.auth_token or client.credentials or "authorization" in named)

    async def open(self, body: bytes, version: str | None = None) -> "SdkResponse | Refusal":
        """Send one request and wait for the headers of its answer.

        Args:
            body: the request, as JSON.
            version: value of the header `anthropic-version`; None for that of the client.

        Returns:
            The answer, or the refusal of a request that the server calls invalid.

        Raises:
            ProviderError: the request failed, or the answer is not an event stream.
        """
        try:
            # At run time this is the type that `cast_to` requests; the SDK's annotations follow `stream_cls`.
            response: object = await self._client.post(
                "/v1/messages",
                cast_to=httpx2.Response,
                content=body,
                stream=True,
                stream_cls=AsyncStream[object],
                # The SDK would follow up to 20 redirects an attempt, and send the conversation to any address.
                options={"follow_redirects": False, "headers": {} if version is None else {VERSION_FIELD: version}},
            )
        except APIStatusError as error:
            status, headers = error.status_code, error.response.headers
            location = headers.get("location", "") if 300 <= status < 400 else ""
            if location:
                failure = self.errors.of_redirect(status, str(error.request.url), location, headers)
            else:
                failure = self.errors.of_status(status, error.body, headers)
                if status in (400, 422) and failure.kind == "invalid_request":
                    return Refusal(failure, error.body)
        except APITimeoutError as error:
            if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
                failure = self.errors.write("network", f"no connection within {self._connect_timeout:g} s")
            else:
                failure = self.errors.write("timeout", f"nothing arrived for {self._silence_timeout:g} s")
        except (APIConnectionError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            lost = isinstance(error.__cause__, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError)
            what = f"The connection to the model's server at {self.errors.address} was lost" if lost else ""
            failure = self.errors.write("network", _root_cause(error), what=what)
        except ValueError as error:
            failure = self.errors.write("unavailable", _root_cause(error), advice="check the settings")
        except AnthropicError as error:
            failure = self.errors.write("authentication", _root_cause(error), what="No API key was found")
        else:
            return await self._checked(response)
        raise failure

    async def count_tokens(self, body: bytes) -> int | None:
        """Return the number of input tokens of a request as the server counts them; None if it does not."""
        try:
            counted: object = await self._client.post(
                "/v1/messages/count_tokens",
                cast_to=object,
                content=body,
                options={"follow_redirects": False, "timeout": _COUNT_SECONDS},
            )
        except (AnthropicError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
            return None
        tokens = counted.get("input_tokens") if is_object(counted) else None
        return tokens if isinstance(tokens, int) and tokens >= 0 else None

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _checked(self, response: object) -> "SdkResponse":
        if not isinstance(response, httpx2.Response):
            raise self.errors.write("bad_response", "the SDK returned no response")
        answer = SdkResponse(response, self.errors, self._silence_timeout)
        kind = str(response.headers.get("content-type", ""))
        if not kind.startswith(_EVENT_STREAM):
            await response.aclose()
            words = f"its content type is {kind or 'missing'}, not {_EVENT_STREAM}"
            raise answer.failure("bad_response", words)
        return answer


class SdkResponse:
    """The bytes of one answer. Leaving its context closes the connection, unless the answer was read to its end."""

    def __init__(self, response: httpx2.Response, errors: ErrorFactory, silence_timeout: float) -> None:
        self._response = response
        self._errors = errors
        self._silence_timeout = silence_timeout
        self.broken: ProviderError | None = None
        """The failure that cut the answer's HTTP body; None if it is whole."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._response.aclose()

    @property
    def request_id(self) -> str | None:
        """Id of this answer, for questions to the server's owner."""
        return self._response.headers.get("request-id")

    def failure(self, kind: ProviderErrorKind, words: str, what: str = "") -> ProviderError:
        """Return an error in the middle of this answer."""
        status = self._response.status_code
        return self._errors.write(kind, words, what=what, status=status, request_id=self.request_id)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive; if they are cut off, `broken` has the failure afterwards."""
        try:
            async with aclosing(self._response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except httpx2.TimeoutException:
            words = f"nothing arrived for {self._silence_timeout:g} s"
            self.broken = self.failure("timeout", words, BROKE_OFF)
        except httpx2.RemoteProtocolError:
            self.broken = self.failure("stream_cut", "the server closed the connection")
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            self.broken = self.failure("stream_cut", _root_cause(error))


def _isolated_headers(headers: Mapping[str, str], token: str | None) -> dict[str, str | Omit]:
    """Return the headers of a client that sends nothing of the environment, with its credential if it has one."""
    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    credential: str | Omit = f"Bearer {token}" if token else Omit()
    # The order matters: a later header replaces an earlier one of the same name in other letters.
    foreign = {line.partition(":")[0].strip(): Omit() for line in lines if ":" in line}
    return {**foreign, "Authorization": credential, **headers}


def _secret_values(headers: Mapping[str, str]) -> list[str]:
    """Return the values of the headers that may contain a credential."""
    return [value for name, value in headers.items() if _SECRET_NAME.search(name)]


def _known(*secrets: str | None) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if secret)


def _address(client: AsyncAnthropic) -> str:
    """Return the address of the client's requests, without user name and password."""
    url = client.base_url
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"


def _root_cause(error: BaseException) -> str:
    """Return the message of the innermost error: outer ones only say that something failed."""
    inner: BaseException | None = error
    while inner is not None:
        error, inner = inner, inner.__cause__ or inner.__context__
    if isinstance(error, ConnectionError) and error.errno:
        # The loop's own text repeats the address as a Python tuple.
        return os.strerror(error.errno)
    return str(error) or type(error).__name__
