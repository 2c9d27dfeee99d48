"""Downloads of pages from public addresses only, with limits on time, size and redirects; and the text of pages."""

import asyncio
import codecs
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import httpx2

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ConfigurationError, ToolError
from tui_agent.protocol.visible_text import escaped
from tui_agent.protocol.web_address import find_proxy, host_of
from tui_agent.tools.processes.process import run_worker
from tui_agent.tools.search.file_listing import BoundedBytes

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and a port; raises OSError if there are none."""

# Each that does not answer costs seconds of the call.
MOST_ADDRESSES = 4

_WITH_IPV4_AT_THE_END = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"), IPv6Network("::ffff:0:0:0/96"))
_LOCAL = (IPv6Network("64:ff9b:1::/48"), IPv6Network("fec0::/10"))
"""Local translation to IPv4, and site-local addresses, which Python counts as global."""
_OF_PROVIDERS = tuple(
    IPv4Network(text)
    for text in ("168.63.129.16/32", "161.26.0.0/16", "166.8.0.0/14", "199.36.153.0/28", "192.0.0.0/24")
)
"""Addresses that only the provider of a virtual machine answers, though they look public: Azure's wire server, IBM's
services, Google's private access, and Oracle's metadata in a range for protocols."""


class RefusedAddressError(Exception):
    """A host has an address that is not public."""

    def __init__(self, host: str, address: str) -> None:
        found = "" if host == address else f" has the address {address}, which"
        super().__init__(f"{host}{found} is not public")


def is_public_address(text: str) -> bool:
    """True for an address that every machine of the Internet can reach: not private, loopback, link-local, multicast,
    reserved or of a provider's own services, and not a form of an IPv4 address that is one of these."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        is_provider = any(address in network for network in _OF_PROVIDERS)
        return address.is_global and not address.is_multicast and not is_provider
    if address.ipv4_mapped is not None:
        return is_public_address(str(address.ipv4_mapped))
    embedded = [address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _WITH_IPV4_AT_THE_END):
        embedded.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    is_local = any(address in network for network in _LOCAL)
    is_reachable = address.is_global and not address.is_multicast and not is_local
    return is_reachable and all(is_public_address(str(inner)) for inner in embedded if inner is not None)


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, in the order in which the system prefers them.

    Raises:
        OSError: it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicTransport(httpx2.AsyncBaseTransport):
    """Looks up each request's host itself and connects to the address that it checked.

    A second answer of the name server therefore changes nothing. One address that is not public is enough to refuse.
    """

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        *,
        by_proxy: bool = False,
        resolver: Resolver = resolve,
        is_allowed: Callable[[str], bool] = is_public_address,
    ) -> None:
        """Store what makes the connections, and is closed with this one.

        With `by_proxy`, it leaves it to a proxy to find hosts. Then a host that is not known here passes.
        """
        self._inner = inner
        self._by_proxy = by_proxy
        self._resolver = resolver
        self._is_allowed = is_allowed

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request.

        Raises:
            RefusedAddressError: the host has an address that is not public; nothing was sent.
            httpx2.TransportError: it has none, or none answers.
        """
        addresses = await self._addresses(request.url)
        if self._by_proxy:
            return await self._inner.handle_async_request(request)
        problem = httpx2.ConnectError(f"{request.url.host} has no address")
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return await self._inner.handle_async_request(_sent_to(request, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                problem = error
        raise problem

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            addresses = await self._resolver(url.host, port)
        except (OSError, UnicodeError) as error:
            if self._by_proxy:
                # Only the proxy may know a name, for example one of another network.
                return ()
            raise httpx2.ConnectError(f"{url.host} was not found") from error
        for address in addresses:
            if not self._is_allowed(address):
                raise RefusedAddressError(url.host, address)
        return addresses

    async def aclose(self) -> None:
        await self._inner.aclose()


def _sent_to(request: httpx2.Request, address: str) -> httpx2.Request:
    """Return the request to an address; the certificate and the `Host` header are still those of the host."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address.partition("%")[0]),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )


LARGEST_PAGE = 5 * 1024 * 1024
"""Most bytes of a page, after decompression."""

MOST_REDIRECTS = 8

_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; tui-agent)",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.1",
    # Only what this module unpacks itself, within the limit.
    "Accept-Encoding": "gzip",
}
_REDIRECTS = (301, 302, 303, 307, 308)
_SECONDS_WITHOUT_DATA = 10.0
_LONGEST_WORDS = 100
# With 32, zlib finds out by itself which of its two headers there is.
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
    # A kept connection would belong to an address and be used for another host with the same one.
    inner = httpx2.AsyncHTTPTransport(verify=tls, proxy=proxy, limits=httpx2.Limits(max_keepalive_connections=0))
    return PublicTransport(inner, by_proxy=proxy is not None)


class Downloader:
    """Downloads pages; each request has a connection of its own."""

    def __init__(self, make_transport: MakeTransport = transport_to_public_hosts) -> None:
        self._make_transport = make_transport
        self._tls: ssl.SSLContext | None = None

    async def download(self, url: str, may_follow: Callable[[str], bool]) -> Page | Redirect:
        """Get a page over http or https.

        A redirect to another host, or without encryption, is followed if `may_follow` is True for its address.

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
    """Return the body, at most one byte more than `LARGEST_PAGE`: compressed data can be a thousand times larger."""
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


_WORKER = Path(__file__).with_name("html_worker.py")
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = (
    "application/json",
    "application/ld+json",
    "application/xml",
    "application/javascript",
    "application/x-javascript",
    "application/x-sh",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-ndjson",
    "application/sql",
    "image/svg+xml",
)
_ERRORS_SIZE = 4_000
_UNSAFE_CODECS = ("idna", "punycode", "raw_unicode_escape", "undefined", "unicode_escape", "utf_7")
"""Codecs that take time with the square of the size, or make lone surrogates, which no request can contain."""


def is_html(page: Page) -> bool:
    """Return True for HTML, also if the server names no type."""
    if page.media_type:
        return page.media_type in _HTML
    return page.data[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


def is_text(page: Page) -> bool:
    """Return True for text of any kind, HTML included; without a type, for data that begins without a NUL."""
    kind = page.media_type
    return (
        kind.startswith("text/")
        or kind in _TEXT
        or kind.endswith(("+json", "+xml", "+yaml"))
        or (not kind and b"\0" not in page.data[:8_192])
    )


def plain_text(page: Page) -> str:
    """Decode a text page other than HTML; invalid bytes become U+FFFD."""
    try:
        return page.data.decode(_charset(page) or "utf-8", "replace").removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return page.data.decode("utf-8", "replace").removeprefix("\ufeff")


def _charset(page: Page) -> str:
    """Return the character set that the server named; empty if it cannot be used."""
    try:
        name = codecs.lookup(page.charset).name
    except (LookupError, ValueError):
        return ""
    return "" if name.replace("-", "_") in _UNSAFE_CODECS else name


async def markdown_of(page: Page, seconds: float, cancellation: CancellationToken) -> str:
    """Return an HTML page as Markdown, cut after `LARGEST_PAGE` bytes; a process of its own makes it.

    Raises:
        ToolError: it takes longer than `seconds` or too much memory.
        OperationCancelledError: the call was cancelled.
        OSError: the process could not be started.
    """
    output, errors = BoundedBytes(LARGEST_PAGE), BoundedBytes(_ERRORS_SIZE)
    arguments = (page.url, _charset(page))
    outcome = await run_worker(_WORKER, arguments, page.data, output, errors, seconds, cancellation)
    cancellation.raise_if_set()
    if outcome.ending == "timeout":
        raise ToolError(f"{page.url}: the page is too complex to be read as text in {seconds:.0f} s")
    if outcome.returncode != 0 and outcome.ending == "exited":
        last = errors.data.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise ToolError(f"{page.url}: the page cannot be read as text: {last or 'not enough memory'}")
    return output.data.decode("utf-8", "replace")
