"""The only module that imports the SDK, which takes a second: it is loaded in a thread, never at start-up.

It reads the raw bytes of an answer instead of the SDK's event objects, which halves the cost of reading. The SDK still
handles addresses, credentials, headers, proxies, certificates and errors.
"""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from types import TracebackType
from typing import Self

import httpx2
from anthropic import AnthropicError, APIConnectionError, APIStatusError, APITimeoutError, AsyncAnthropic, AsyncStream

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind

from .provider_failures import BROKE_OFF, ErrorFactory

_EVENT_STREAM = "text/event-stream"


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
    ) -> None:
        """Create the SDK's client; send nothing.

        Without `api_key` and `auth_token` the SDK looks for credentials in its usual places.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """
        failure: ProviderError | None = None
        try:
            self._client = AsyncAnthropic(
                api_key=api_key,
                auth_token=auth_token,
                base_url=base_url,
                default_headers=headers,
                max_retries=0,
                timeout=httpx2.Timeout(silence_timeout, connect=connect_timeout),
            )
        except (AnthropicError, httpx2.InvalidURL, ValueError, OSError) as error:
            advice = "check the key and the base URL"
            failure = ErrorFactory(_known(api_key, auth_token)).write("unavailable", _root_cause(error), advice=advice)
        if failure is not None:
            raise failure
        self._connect_timeout, self._silence_timeout = connect_timeout, silence_timeout
        self.errors = ErrorFactory(_known(self._client.api_key, self._client.auth_token), _address(self._client))
        """Writer of this client's errors, which knows its secrets."""

    @property
    def has_credentials(self) -> bool:
        """True if requests have a credential."""
        client = self._client
        named = {name.lower() for name in client.default_headers}
        return bool(client.api_key or client.auth_token or client.credentials or "authorization" in named)

    async def open(self, body: bytes) -> "SdkResponse":
        """Send one request and wait for the headers of its answer.

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
                options={"follow_redirects": False},
            )
        except APIStatusError as error:
            status, headers = error.status_code, error.response.headers
            location = headers.get("location", "") if 300 <= status < 400 else ""
            if location:
                failure = self.errors.of_redirect(status, str(error.request.url), location, headers)
            else:
                failure = self.errors.of_status(status, error.body, headers)
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
