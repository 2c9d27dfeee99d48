"""Connection pools of one endpoint, whatever SDK they have; imported with an SDK, never at start-up."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import httpx2

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind
from tui_agent.protocol.messages import is_array, is_object

from .connection import Network, connection_failure, root_cause
from .model_catalog import ConnectionSettings
from .provider_failures import BROKE_OFF, ErrorFactory
from .refused_fields import Refusal

if TYPE_CHECKING:
    # That of the other SDK has the same fields.
    from anthropic import APIStatusError


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
    def content_type(self) -> str:
        """Media type in lower case; empty if the server named none."""
        return str(self._response.headers.get("content-type", "")).lower()

    @property
    def request_id(self) -> str | None:
        """Id of this answer, for questions to the server's owner; None if the server named none."""
        headers = self._response.headers
        return headers.get("request-id") or headers.get("x-request-id")

    def failure(self, kind: ProviderErrorKind, words: str, what: str = "") -> ProviderError:
        """Return an error in the middle of this answer."""
        status = self._response.status_code
        return self._errors.write(kind, words, what=what, status=status, request_id=self.request_id)

    def _body(self) -> AsyncGenerator[bytes, None]:
        if "content-encoding" in self._response.headers:
            return self._response.aiter_bytes()
        # Without the response's two layers, which decode and count: each token passes here.
        return cast(AsyncGenerator[bytes, None], aiter(cast(httpx2.AsyncByteStream, self._response.stream)))

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the bytes as they arrive; if they are cut off, `broken` has the failure afterwards."""
        try:
            async with aclosing(self._body()) as chunks:
                async for chunk in chunks:
                    yield chunk
        except httpx2.TimeoutException:
            words = f"nothing arrived for {self._silence_timeout:g} s"
            self.broken = self.failure("timeout", words, BROKE_OFF)
        except httpx2.RemoteProtocolError:
            self.broken = self.failure("stream_cut", "the server closed the connection")
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            self.broken = self.failure("stream_cut", root_cause(error))


LIST_SECONDS = 5.0
"""Seconds to wait for the list of models, and for a count of tokens."""


class EndpointClient(ABC):
    """Connections to one endpoint, without retries: one call is one attempt."""

    sdk_error: ClassVar[type[Exception]]
    """Class of all errors of the SDK; the next three are classes below it."""
    status_error: ClassVar[type[Exception]]
    timeout_error: ClassVar[type[Exception]]
    connection_error: ClassVar[type[Exception]]
    refusal_statuses: ClassVar[Collection[int]] = range(300, 600)
    """Statuses with which the server refuses fields of a request."""

    errors: ErrorFactory
    """Writer of this client's errors, which knows its secrets."""
    warnings: tuple[str, ...] = ()
    """Sentences for the user about variables that could not be used in whole."""
    _client: Any
    _network: Network
    _key: str | None = None

    def __init__(self, settings: ConnectionSettings) -> None:
        """Create the SDK's client; send nothing.

        Raises:
            ProviderError: there are no credentials, or the address is invalid.
        """
        self._connect_timeout, self._silence_timeout = settings.connect_timeout, settings.silence_timeout
        self._timeout = httpx2.Timeout(settings.silence_timeout, connect=settings.connect_timeout)
        self._create(settings)
        self.warnings = self._network.warnings

    @abstractmethod
    def _create(self, settings: ConnectionSettings) -> None:
        """Set the SDK's client, the network and the writer of errors."""

    @property
    def has_credentials(self) -> bool:
        """True if requests can be sent."""
        return True

    @property
    def key(self) -> str | None:
        """The key of `use_key`; None before its first call."""
        return self._key

    def use_key(self, key: str) -> None:
        """Send this key from now on."""
        self._key = key
        # The earlier keys stay known: a server may repeat one late.
        self.errors = replace(self.errors, secrets=(*self.errors.secrets, key))

    async def open(self, body: bytes, version: str | None = None, betas: Iterable[str] = ()) -> SdkResponse | Refusal:
        """Send one request and wait for the headers of its answer.

        Args:
            body: the request as JSON.
            version: value of the header `anthropic-version`; None: the SDK's.
            betas: values of the header `anthropic-beta`.

        Returns:
            The answer, which the caller must close; a `Refusal` if the server calls the request invalid.

        Raises:
            ProviderError: the request failed.
        """
        try:
            response = await self._send(body, version, betas)
        except self.status_error as error:
            answer = cast("APIStatusError", error)
            failure = self._status_failure(answer)
            if failure.kind == "invalid_request" and answer.status_code in self.refusal_statuses:
                return Refusal(failure, answer.body)
        except self.timeout_error as error:
            # The SDK has one error for both timeouts.
            if isinstance(error.__cause__, httpx2.ConnectTimeout | httpx2.PoolTimeout):
                proxy = self._network.proxy
                through = "" if proxy is None else f" through the proxy {proxy}"
                failure = self.errors.write("network", f"no connection within {self._connect_timeout:g} s{through}")
            else:
                failure = self.errors.write("timeout", f"nothing arrived for {self._silence_timeout:g} s")
        except (self.connection_error, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = connection_failure(self.errors, error, self._network.proxy)
        except (self.sdk_error, ValueError) as error:
            failure = self._unsent(error)
        else:
            if isinstance(response, httpx2.Response):
                return self._answer(response)
            failure = self.errors.write("bad_response", "the SDK returned no response")
        # Outside of the handlers, so that it has no context: an error of the SDK could repeat the key.
        raise failure

    @abstractmethod
    async def _send(self, body: bytes, version: str | None, betas: Iterable[str]) -> object:
        """Send one request and return the answer, an `httpx2.Response`."""

    def _unsent(self, error: Exception) -> ProviderError:
        """Return the error for a request that the SDK did not send."""
        return self.errors.write("unavailable", root_cause(error), advice="check the settings")

    def _answer(self, response: httpx2.Response) -> SdkResponse:
        return SdkResponse(response, self.errors, self._silence_timeout)

    def _status_failure(self, error: "APIStatusError") -> ProviderError:
        status, headers = error.status_code, error.response.headers
        location = headers.get("location", "") if 300 <= status < 400 else ""
        if location:
            return self.errors.of_redirect(status, str(error.request.url), location, headers)
        return self.errors.of_status(status, error.body, headers)

    async def count_tokens(self, body: bytes) -> int | None:
        """Return the number of input tokens of a request as the server counts them; None if it does not."""
        del body
        return None

    async def list_models(self, limit: int) -> tuple[str, ...]:
        """Return the ids of the models that the server lists, in its order, at most `limit`.

        Raises:
            ProviderError: the server does not list them.
        """
        try:
            listed = await self._list(limit)
        except self.status_error as error:
            answer = cast("APIStatusError", error)
            status = answer.status_code
            # Servers without such a list answer in any of these ways.
            if 300 <= status < 400 or status in (404, 405, 501):
                what = "The endpoint has no list of models"
                failure = self.errors.write("invalid_request", what=what, status=status)
            else:
                failure = self._status_failure(answer)
        except self.timeout_error:
            failure = self.errors.write("timeout", f"no answer within {LIST_SECONDS:g} s")
        except (self.connection_error, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = connection_failure(self.errors, error, self._network.proxy)
        except (self.sdk_error, ValueError) as error:
            failure = self.errors.write("bad_response", root_cause(error))
        else:
            models: object = listed.get("data") if is_object(listed) else None
            if is_array(models):
                ids = (one.get("id") for one in models if is_object(one))
                return tuple(dict.fromkeys(name for name in ids if isinstance(name, str) and name.strip()))[:limit]
            failure = self.errors.write("bad_response", "the answer is not a list of models")
        raise failure

    @abstractmethod
    async def _list(self, limit: int) -> object:
        """Return the server's answer to a request for its list of models, as JSON."""

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()


def address_of(client: Any) -> str:
    """Return the address of the requests of an SDK's client, without user name and password."""
    url: httpx2.URL = client.base_url
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}"
