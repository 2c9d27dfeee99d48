"""Downloads of pages with limits on time, size and redirects; without cookies and credentials."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx2

from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.visible_text import escaped
from tui_agent.protocol.web_address import find_proxy, host_of

from .public_transport import PublicTransport, RefusedAddressError

LARGEST_PAGE = 5 * 1024 * 1024
"""Most bytes of a page, after decompression."""

MOST_REDIRECTS = 8

_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; tui-agent)",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1",
    "Accept-Encoding": "gzip",
}
_REDIRECTS = (301, 302, 303, 307, 308)
_SECONDS_WITHOUT_DATA = 10.0
_LONGEST_WORDS = 100
_GZIP = zlib.MAX_WBITS | 32

MakeTransport = Callable[[str, ssl.SSLContext], httpx2.AsyncBaseTransport]
"""Returns the connections for a URL; the context checks certificates."""


@dataclass(frozen=True, slots=True)
class Page:
    """A response of a web server."""

    url: str
    """Address that answered, after redirects."""
    status: int
    media_type: str
    """In lower case, without parameters; empty if the server named none."""
    charset: str
    """Character set that the server named; it may be empty or unknown."""
    data: bytes
    is_cut: bool = False
    """True if the page is larger than `LARGEST_PAGE`; `data` is its beginning."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect that was not followed, because its target needs an approval of its own."""

    url: str
    """Address that redirects."""
    target: str


def transport_to_public_hosts(url: str, tls: ssl.SSLContext) -> httpx2.AsyncBaseTransport:
    """Return connections to public addresses, through the proxy of the environment if there is one for the URL."""
    try:
        found = find_proxy(url).proxy
    except ConfigurationError as error:
        raise ToolError(f"cannot fetch {url}: {error}") from error
    proxy = None if found is None else found.url
    inner = httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy, limits=httpx2.Limits(max_keepalive_connections=0))
    return PublicTransport(inner, by_proxy=proxy is not None)


class Downloader:
    """Downloads pages; each request has a connection of its own."""

    def __init__(self, make_transport: MakeTransport = transport_to_public_hosts) -> None:
        self._make_transport = make_transport
        self._tls: ssl.SSLContext | None = None

    async def download(self, url: str, may_follow: Callable[[str], bool]) -> Page | Redirect:
        """Get a page.

        Args:
            url: http or https.
            may_follow: True if a redirect to this address, of another host or without encryption, may be followed.

        Raises:
            ToolError: the host has no address or not a public one, the server does not answer, its answer cannot be
                read, or there are too many redirects.
        """
        if self._tls is None:
            # Reads the certificates of all authorities.
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        url = urldefrag(url).url
        try:
            for _ in range(MOST_REDIRECTS + 1):
                answer = await self._get(url, self._tls)
                if isinstance(answer, Page):
                    return answer
                if host_of(answer.target) is None:
                    return answer
                if not _stays(url, answer.target) and not may_follow(answer.target):
                    return answer
                url = answer.target
        except RefusedAddressError as error:
            raise ToolError(
                f"not fetched: {error}. For a server on this machine or in this network, use a command such as curl."
            ) from error
        except httpx2.HTTPError as error:
            raise ToolError(f"cannot fetch {url}: {_words(error)}") from error
        except (httpx2.InvalidURL, OverflowError, ValueError, zlib.error) as error:
            # Addresses that cannot be read raise ValueError.
            raise ToolError(f"cannot fetch {url}: {clipped(str(error))}") from error
        raise ToolError(f"cannot fetch {url}: more than {MOST_REDIRECTS} redirects")

    async def _get(self, url: str, tls: ssl.SSLContext) -> Page | Redirect:
        """Send one request; cookies of the answer are dropped with the client."""
        async with (
            httpx2.AsyncClient(
                transport=self._make_transport(url, tls),
                headers=_HEADERS,
                timeout=_SECONDS_WITHOUT_DATA,
                trust_env=False,
            ) as client,
            client.stream("GET", url, follow_redirects=False) as response,
        ):
            target = response.headers.get("location")
            if response.status_code in _REDIRECTS and target is not None:
                # Written out in ASCII: the address is shown outside the frame of the page.
                return Redirect(url, str(httpx2.URL(urldefrag(urljoin(url, target)).url)))
            data = await _body(response)
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        charset = response.charset_encoding or ""
        return Page(url, response.status_code, media_type, charset, data[:LARGEST_PAGE], len(data) > LARGEST_PAGE)


async def _body(response: httpx2.Response) -> bytes:
    """Return the body, at most one byte more than `LARGEST_PAGE`: compressed data can be a thousand times larger.

    Raises:
        httpx2.DecodingError: it is compressed in a way that was not asked for.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip", "deflate"):
        raise httpx2.DecodingError(f"its content is compressed as {clipped(encoding)}")
    unpack = None if encoding == "identity" else zlib.decompressobj(_GZIP)
    data = bytearray()
    chunks: AsyncIterator[bytes] = response.aiter_raw()
    async for chunk in chunks:
        room = LARGEST_PAGE + 1 - len(data)
        data += chunk[:room] if unpack is None else unpack.decompress(chunk, room)
        if len(data) > LARGEST_PAGE:
            break
    return bytes(data)


def _stays(url: str, target: str) -> bool:
    """True if a redirect stays on its host, and encrypted if it was."""
    before, after = urlsplit(url), urlsplit(target)
    return (before.hostname, before.port) == (after.hostname, after.port) and after.scheme in (before.scheme, "https")


def _words(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "the server does not answer"
    return clipped(str(error)) or type(error).__name__


def clipped(text: str) -> str:
    """Return words of a server for a message outside the frame of the page: short, on one line, hidden characters
    as escapes."""
    line = escaped(" ".join(text.split()))
    return line if len(line) <= _LONGEST_WORDS else f"{line[:_LONGEST_WORDS]}…"
