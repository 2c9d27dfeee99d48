"""One answer of a model's server, as bytes; imported with an SDK, never at start-up."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Self, cast

import httpx2

from tui_agent.protocol.errors import ProviderError, ProviderErrorKind

from .connection import root_cause
from .provider_failures import BROKE_OFF, ErrorFactory


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
        """Id of this answer, for questions to the server's owner."""
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
