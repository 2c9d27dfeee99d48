"""A small HTTP/1.1 server on the loopback interface: h11 over asyncio streams, one task per connection.

It listens on 127.0.0.1 only, refuses requests that a web page could send, and ends with its context: no task, socket or
traceback stays behind.
"""

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import h11

from tui_agent.protocol.background import run_service
from tui_agent.protocol.messages import JsonObject

MAX_BODY = 64 * 1024 * 1024
"""Longest request body in bytes; a longer one gets status 413."""

_READ_SIZE = 64 * 1024

_QUIET_SECONDS = 0.1
"""Seconds for refusing a client, and seconds until the next accept."""

_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One complete request."""

    method: str
    target: str
    headers: Mapping[str, str]
    """Headers, with names in lower case."""
    body: bytes
    peer: int = 0
    """The client's port; the same for all requests of a connection."""


@dataclass(slots=True)
class HttpReply:
    """The answer to one request: either `send`, or `start`, any number of `write`, and `finish`.

    Every method raises `ConnectionError` once the peer is gone.
    """

    connection: h11.Connection
    writer: asyncio.StreamWriter
    started: bool = False

    async def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer; the content-length is added to the headers."""
        await self.start(status, {"content-length": str(len(body)), **(headers or {})})
        await self.write(body)
        await self.finish()

    async def send_json(self, status: int, value: JsonObject, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer that is one JSON object."""
        body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        await self.send(status, body, {"content-type": "application/json", **(headers or {})})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers; without a content-length the body is sent in chunks."""
        self.started = True
        await self._put(h11.Response(status_code=status, headers=list(headers.items())))

    async def write(self, data: bytes) -> None:
        """Send a piece of the body at once."""
        if data:
            await self._put(h11.Data(data=data))

    async def finish(self) -> None:
        """End the body."""
        await self._put(h11.EndOfMessage())

    async def _put(self, event: h11.Event) -> None:
        data = self.connection.send(event)
        if data:
            self.writer.write(data)
        await self.writer.drain()


Handler: TypeAlias = Callable[[HttpRequest, HttpReply], Awaitable[None]]


@dataclass(slots=True)
class LoopbackServer:
    """Server for `handler` on a free port of 127.0.0.1 while its context is open.

    A handler is cancelled when its client goes away. It must raise nothing of its own but `ConnectionError`.
    """

    handler: Handler
    max_body: int = MAX_BODY
    _socket: socket.socket | None = None
    _group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _acceptor: asyncio.Task[None] | None = None
    _spare: socket.socket | None = None
    """Reserved descriptor for `_refuse_connection`."""

    @property
    def port(self) -> int:
        """Port of the server.

        Raises:
            RuntimeError: the context is not open.
        """
        if self._socket is None:
            raise RuntimeError("the server is not running")
        return int(self._socket.getsockname()[1])

    @property
    def base_url(self) -> str:
        """Address without a path, such as `http://127.0.0.1:40123`."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._spare = socket.socket()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        await self._group.__aenter__()
        self._acceptor = self._group.create_task(self._accept(self._socket))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._acceptor is not None:
            self._acceptor.cancel()
        try:
            # Without the body's error: the group would wrap it in an exception group.
            await self._group.__aexit__(None, None, None)
        finally:
            if self._spare is not None:
                self._spare.close()
            if self._socket is not None:
                self._socket.close()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    client, _ = await loop.sock_accept(listener)
                except OSError as error:
                    await self._refuse_connection(listener, error)
                else:
                    group.create_task(run_service("a connection to the offline model", self._serve(client)))

    async def _refuse_connection(self, listener: socket.socket, error: OSError) -> None:
        """Refuse the next connection when no descriptor is free; otherwise its client would wait for ever."""
        if self._spare is not None:
            self._spare.close()
        loop, body = asyncio.get_running_loop(), json.dumps(_error_of(f"no connection: {error.strerror}")).encode()
        with contextlib.suppress(OSError, TimeoutError), listener.accept()[0] as client:
            client.setblocking(False)
            # Closing a connection with unread bytes would discard the answer.
            async with asyncio.timeout(_QUIET_SECONDS):
                while await loop.sock_recv(client, _READ_SIZE):
                    await loop.sock_sendall(client, _REFUSAL % (len(body), body))
        with contextlib.suppress(OSError):
            self._spare = socket.socket()
        await asyncio.sleep(_QUIET_SECONDS)

    async def _serve(self, client: socket.socket) -> None:
        """Serve one connection until either side closes it."""
        try:
            # The words of an answer are small packets, which the system would hold back.
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            reader, writer = await asyncio.open_connection(sock=client)
        except OSError:
            client.close()
            raise
        connection = h11.Connection(h11.SERVER)
        try:
            while await self._serve_one(connection, reader, writer):
                connection.start_next_cycle()
        except ConnectionError:
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _serve_one(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer one request; return True if the connection can take another."""
        reply = HttpReply(connection, writer)
        try:
            request = await self._read_request(connection, reader, writer.get_extra_info("peername")[1])
        except h11.RemoteProtocolError as error:
            if connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                await _refuse(reply, error.error_status_hint, str(error))
            return False
        if request is None:
            return False
        if not _is_local(request, self.port):
            await _refuse(reply, 403, "only programs on this machine may ask this server")
            return False
        await self._answer(request, reply, reader)
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE and not writer.is_closing()

    async def _read_request(
        self, connection: h11.Connection, reader: asyncio.StreamReader, peer: int
    ) -> HttpRequest | None:
        """Read the next request; return None if the peer closed the connection instead."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await reader.read(_READ_SIZE))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > self.max_body:
                    raise h11.RemoteProtocolError("the request is too large", error_status_hint=413)
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in head.headers}
                method, target = head.method.decode("ascii"), head.target.decode("ascii")
                return HttpRequest(method, target, headers, bytes(body), peer)
            else:
                return None

    async def _answer(self, request: HttpRequest, reply: HttpReply, reader: asyncio.StreamReader) -> None:
        """Run the handler, and cancel it if the client goes away."""
        async with asyncio.TaskGroup() as group:
            work = group.create_task(self._handle(request, reply))
            watch = group.create_task(_cancel_when_gone(work, reader, reply.connection))
            work.add_done_callback(lambda _: watch.cancel())

    async def _handle(self, request: HttpRequest, reply: HttpReply) -> None:
        with contextlib.suppress(ConnectionError):
            await self.handler(request, reply)


async def _cancel_when_gone(work: asyncio.Task[None], reader: asyncio.StreamReader, connection: h11.Connection) -> None:
    """Cancel `work` when the client closes its side; data it sends early is kept for the next request."""
    try:
        while data := await reader.read(_READ_SIZE):
            connection.receive_data(data)
    except ConnectionError:
        pass
    work.cancel()


def _is_local(request: HttpRequest, port: int) -> bool:
    """Return True for a request of a local program, and not of a web page (by DNS rebinding or a form)."""
    return "origin" not in request.headers and request.headers.get("host") in (f"127.0.0.1:{port}", f"localhost:{port}")


async def _refuse(reply: HttpReply, status: int, why: str) -> None:
    await reply.send_json(status, _error_of(why))


def _error_of(why: str) -> JsonObject:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": why}}
