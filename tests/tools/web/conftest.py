"""A web server on loopback, and a downloader that may connect to it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import httpx2
import pytest

from tui_agent.tools.web.download import Downloader, PublicTransport

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """A web server with the given answers by path; it closes the connection after each."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    requests: list[bytes] = field(default_factory=list[bytes])
    """Heads of all requests so far."""
    port: int = 0
    resolved: list[str] = field(default_factory=list[str])
    """Hosts that were looked up."""

    def url(self, path: str, host: str = "docs.example") -> str:
        return f"http://{host}:{self.port}{path}"

    def serve(self, path: str, body: bytes, kind: str = "text/html", *headers: str, status: str = "200 OK") -> None:
        head = [f"HTTP/1.1 {status}", f"Content-Type: {kind}" if kind else "X-None: 1", "Connection: close", *headers]
        self.answers[path] = "\r\n".join([*head, "", ""]).encode() + body

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            answer = self.answers[head.split()[1].decode()]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        self.resolved.append(host)
        if host == "unknown.example":
            raise socket.gaierror("not known")
        return ["127.0.0.1"]

    def downloader(self) -> Downloader:
        return Downloader(self._transport)

    def _transport(self, url: str, tls: ssl.SSLContext) -> httpx2.AsyncBaseTransport:
        inner = httpx2.AsyncHTTPTransport(verify=tls)
        return PublicTransport(inner, resolver=self.addresses, is_allowed=lambda address: address == "127.0.0.1")


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.answer, "127.0.0.1", 0)
    async with server:
        site.port = server.sockets[0].getsockname()[1]
        yield site
