"""Connections to public addresses only: the address that was checked is the one that is connected to."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_address

import httpx2

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and a port; raises OSError if there are none."""

MOST_ADDRESSES = 4
"""Most addresses of a host that are tried."""

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
        """
        Args:
            inner: makes the connections; closed with this one.
            by_proxy: True if `inner` leaves it to a proxy to find hosts. Then a host that is not known here passes.
            resolver: looks up a host.
            is_allowed: True for an address that may be connected to.
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
