"""An HTTP transport that ends a response whose next message is too long, before it takes memory."""

import ssl
from collections.abc import AsyncGenerator, Callable

import httpx2

from .stdio_transport import LONGEST_MESSAGE

TOO_LONG = f"it sent a message of more than {LONGEST_MESSAGE // 1024**2} MiB"
ENCODED = "it sent a compressed answer, which it was asked not to do"


class LimitedTransport(httpx2.AsyncHTTPTransport):
    """Counts the bytes of each message: of a whole response, or of one event of a stream of events."""

    def __init__(self, verify: ssl.SSLContext, fail: Callable[[str], object]) -> None:
        """
        Args:
            verify: the certificates to trust.
            fail: called with the reason when a response is ended.
        """
        super().__init__(verify=verify)
        self._fail = fail

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of its response is limited."""
        # The size of a compressed message is known only once it takes the memory.
        request.headers["Accept-Encoding"] = "identity"
        response = await super().handle_async_request(request)
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            await response.aclose()
            self._fail(ENCODED)
            raise httpx2.ReadError(ENCODED, request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_events = response.headers.get("Content-Type", "").lower().startswith("text/event-stream")
        response.stream = _LimitedStream(response.stream, request, self._fail, is_events=is_events)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(
        self, stream: httpx2.AsyncByteStream, request: httpx2.Request, fail: Callable[[str], object], *, is_events: bool
    ) -> None:
        self._stream = stream
        self._request = request
        self._fail = fail
        self._is_events = is_events

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        size, end = 0, b""
        async for chunk in self._stream:
            size += len(chunk)
            if self._is_events:
                # An empty line ends an event; it may come in two chunks.
                seen = (end + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                end = chunk[-3:]
                if (place := seen.rfind(b"\n\n")) >= 0:
                    size = len(seen) - place
            if size > LONGEST_MESSAGE:
                self._fail(TOO_LONG)
                raise httpx2.ReadError(TOO_LONG, request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
