"""Connections go to public addresses only, and to the address that was checked."""

import ssl
from collections.abc import Sequence

import httpx2
import pytest

from tests.support.table import table
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.web.download import Downloader, Page, PublicTransport, is_public_address, transport_to_public_hosts

from .conftest import Site


def never(url: str) -> bool:
    return False


OTHERS = """
127.0.0.1 127.9.9.9 10.1.1.1 172.16.0.1 192.168.1.1 169.254.169.254 0.0.0.0 100.64.0.1 224.0.0.1 255.255.255.255
168.63.129.16 161.26.0.10 166.9.1.1 199.36.153.8 100.100.100.200 192.0.0.192
::1 :: fe80::1%eth0 fc00::1 ff02::1 ::ffff:127.0.0.1 ::7f00:1 64:ff9b::7f00:1 2002:7f00:1:: 2001:0:7f00:1:: x
fec0::1 64:ff9b:1::a00:1 ::ffff:0:7f00:1
"""


def test_only_addresses_of_the_public_network_are_public() -> None:
    public = ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"]

    assert [address for address in (*public, *OTHERS.split()) if is_public_address(address)] == public


@table("host", ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "2130706433"])
async def test_this_machine_is_refused_under_every_name(host: str) -> None:
    with pytest.raises(ToolError, match="is not public") as refused:
        await Downloader().download(f"http://{host}:9/", never)

    assert "curl" in str(refused.value)


def connecting_to(*answers: Sequence[str]) -> Downloader:
    """Return a downloader that looks hosts up once per answer, and may connect to one address of this machine."""
    left = iter(answers)

    async def addresses(host: str, port: int) -> Sequence[str]:
        return next(left)

    def transport(url: str, tls: ssl.SSLContext) -> httpx2.AsyncBaseTransport:
        return PublicTransport(
            httpx2.AsyncHTTPTransport(), resolver=addresses, is_allowed=lambda one: one[:4] == "127."
        )

    return Downloader(transport)


async def test_one_private_address_among_public_ones_is_enough(site: Site) -> None:
    with pytest.raises(ToolError, match=r"docs\.example has the address 10\.0\.0\.1, which is not public"):
        await connecting_to(["127.0.0.1", "10.0.0.1"]).download(site.url("/"), never)

    assert not site.requests


async def test_a_name_server_is_asked_once_and_an_address_without_an_answer_is_followed_by_the_next(site: Site) -> None:
    site.serve("/", b"hello", "text/plain")

    page = await connecting_to(["127.0.0.2", "127.0.0.1"]).download(site.url("/"), never)

    assert isinstance(page, Page)
    assert page.data == b"hello"
    assert f"Host: docs.example:{site.port}".encode() in site.requests[0]


async def test_a_redirect_to_a_private_address_is_refused_although_a_rule_allows_it(site: Site) -> None:
    site.serve("/", b"", "", f"Location: {site.url('/secret', 'inside.example')}", status="302 Found")

    with pytest.raises(ToolError, match=r"inside\.example has the address 10\.0\.0\.1, which is not public"):
        await connecting_to(["127.0.0.1"], ["10.0.0.1"]).download(site.url("/"), lambda url: True)

    assert len(site.requests) == 1


async def test_a_proxy_of_the_environment_is_used_but_not_for_this_machine(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{site.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    site.serve("http://host.invalid/page", b"by proxy", "text/plain")

    page = await Downloader(transport_to_public_hosts).download("http://host.invalid/page", never)

    assert isinstance(page, Page)
    assert page.data == b"by proxy"
    with pytest.raises(ToolError, match="is not public"):
        await Downloader(transport_to_public_hosts).download("http://169.254.169.254/latest", never)
    assert len(site.requests) == 1
