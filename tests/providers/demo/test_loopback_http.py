"""The HTTP server with raw bytes: valid requests, invalid ones, and its end."""

import asyncio
import resource
import socket

import psutil
import pytest

from tests.support.table import table
from tui_agent.providers.demo.loopback_http import HttpReply, HttpRequest, LoopbackServer


async def echo(request: HttpRequest, reply: HttpReply) -> None:
    await reply.send(200, request.method.encode() + b" " + request.body, {"x-target": request.target})


async def said(server: LoopbackServer, data: bytes) -> bytes:
    """Send raw bytes and return everything the server answers until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    finally:
        writer.close()


def request(body: bytes = b"", host: str | None = None, extra: bytes = b"", port: int = 0) -> bytes:
    name = (host or f"127.0.0.1:{port}").encode()
    return b"POST /x HTTP/1.1\r\nhost: %s\r\ncontent-length: %d\r\n%s\r\n%s" % (name, len(body), extra, body)


async def test_a_connection_without_a_free_descriptor_waits_for_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with LoopbackServer(echo) as server:
        with socket.socket() as client:
            client.setblocking(False)
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_connect(client, ("127.0.0.1", server.port))
                # One pass of the loop for each side; the server fails to accept meanwhile.
                for _ in range(10):
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
            await loop.sock_sendall(client, request(b"late", port=server.port))
            async with asyncio.timeout(60):
                answer = await loop.sock_recv(client, 65_536)

    assert answer.startswith(b"HTTP/1.1 200")


async def test_it_listens_on_the_loopback_interface_only() -> None:
    async with LoopbackServer(echo) as server:
        listening = [
            place.laddr for place in psutil.Process().net_connections("inet") if place.status == psutil.CONN_LISTEN
        ]

        assert [place.ip for place in listening if place.port == server.port] == ["127.0.0.1"]


@table(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", b"400"),
        (request(host="evil.example"), b"403"),
        (request(host="localhost:1"), b"403"),
        # A page in a browser names the page that it is.
        (request(extra=b"origin: http://evil.example\r\n", host="HERE"), b"403"),
        (request(b"x" * 11, host="HERE"), b"413"),
    ],
)
async def test_requests_from_elsewhere_invalid_and_long_ones_are_refused(data: bytes, status: bytes) -> None:
    async with LoopbackServer(echo, max_body=10) as server:
        answer = await said(server, data.replace(b"HERE", b"127.0.0.1:%d" % server.port))

    assert answer.split(b" ")[1] == status


async def test_a_silent_or_incomplete_connection_does_no_harm() -> None:
    async with LoopbackServer(echo) as server:
        assert await said(server, b"") == b""
        assert b"400" in await said(server, request(b"whole", port=server.port)[:-2])
        assert b"POST x" in await said(server, request(b"x", port=server.port))


async def test_it_ends_in_the_middle_of_an_answer_and_leaves_nothing() -> None:
    started = asyncio.Event()

    async def wait(_: HttpRequest, reply: HttpReply) -> None:
        await reply.start(200, {})
        started.set()
        await asyncio.Event().wait()

    async with LoopbackServer(wait) as server:
        port = server.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(port=port))
        await started.wait()

    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await reader.read()).startswith(b"HTTP/1.1 200")
    assert await idle_reader.read() == b""
    writer.close()
    idle_writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)
