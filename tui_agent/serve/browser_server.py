"""The server: on this machine, with a token in the address, and one app for each page.

The token guards everything: page, files and connection. Without it each answer is the same, so nothing is learned of
what is here. The host's name is checked as well, because a page of another site can make its own name point to this
machine, and the origin, because a page of another server of this machine could open a connection.
"""

import asyncio
import errno
import hmac
import ipaddress
import logging
import os
import re
import secrets
import signal
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import WSCloseCode, WSMsgType, web
from aiohttp.http_exceptions import HttpProcessingError

from tui_agent.protocol.errors import ConfigurationError

from .browser_page import FILES, PAGE_SCRIPT, PROTECTION, page_for
from .served_app import PageSize, ServedApp, read_page_message

MOST_PAGES = 4
"""Most pages with an app at the same time."""
LARGEST_MESSAGE = 4 << 20
"""Most bytes of a message of the page, such as a paste; a larger one closes the connection."""

_MOST_ENDING = 8
"""Most apps of closed pages that still end while a new page may have one."""
_HEARTBEAT = 20.0
"""Seconds between two checks that the page is still there."""
_TOKEN_BYTES = 32
_END_SECONDS = 15.0
"""Seconds that the server waits for its pages at its end, longer than an app takes to end."""
_CLEAR = b"\x1bc\x1b[?25l"
"""Resets the terminal of a page, and hides its cursor."""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOG = logging.getLogger("tui_agent.serve")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The server as the user asked for it."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: a free one."""
    any_host: bool = False
    """True: pages may name this machine in any way."""
    most_pages: int = MOST_PAGES


def is_loopback(host: str) -> bool:
    """Return True if only programs of this machine reach this host: by its address, or as `localhost`."""
    name = host.removeprefix("[").removesuffix("]")
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


async def serve_browser(
    options: ServerOptions, command: Sequence[str], folder: Path, announce: Callable[[str], None]
) -> None:
    """Serve pages until a signal comes, and end their apps.

    Args:
        options: where to listen, and for how many pages.
        announce: called with the address once the server listens.

    Raises:
        ConfigurationError: the server cannot listen there.
    """
    over = asyncio.Event()
    async with listening(BrowserServer(options, command, folder)) as address:
        with _on_signal(over):
            announce(address)
            await over.wait()


@asynccontextmanager
async def listening(server: "BrowserServer") -> AsyncGenerator[str]:
    """Listen, yield the address of the page, and at the end close all pages and wait for the ends of their apps.

    Raises:
        ConfigurationError: the server cannot listen there.
    """
    options = server.options
    # A name could stand for several addresses, each with a port of its own.
    host = "127.0.0.1" if options.host == "localhost" else options.host.strip("[]")
    runner = web.AppRunner(server.application(), access_log=None, logger=_LOG, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, options.port).start()
        except OSError as error:
            raise ConfigurationError(_refusal(options, error)) from error
        yield f"http://{f'[{host}]' if ':' in host else host}:{runner.addresses[0][1]}{server.base}"
    finally:
        try:
            await server.end()
        finally:
            await runner.cleanup()


class BrowserServer:
    """Answers requests; knows the pages that are open."""

    def __init__(self, options: ServerOptions, command: Sequence[str], folder: Path) -> None:
        # In the path: a cookie would go to every server of this machine, and relative addresses would drop a query.
        self._token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.options = options
        """Its address, and the most pages at the same time."""
        self._command = tuple(command)
        self._folder = folder
        self._pages: set[web.WebSocketResponse] = set()
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def base(self) -> str:
        """Path of the page, with the token."""
        return f"/{self._token}/"

    def application(self) -> web.Application:
        """Return the application: one handler for all addresses, so that none can be without a guard."""
        app = web.Application(client_max_size=1024)
        app.router.add_route("GET", "/{path:.*}", self._answer)
        app.on_response_prepare.append(_protect)
        return app

    async def end(self) -> None:
        """Close all pages and wait until their apps have ended, for `_END_SECONDS` at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SECONDS), asyncio.TaskGroup() as tasks:
                for page in tuple(self._pages):
                    tasks.create_task(page.close(code=WSCloseCode.GOING_AWAY, message=b"the server has ended"))
                await self._idle.wait()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        host = request.headers.get("Host", "")
        # A site can let its own name point to this machine. Its port may be any: that of a tunnel differs.
        if not self._knows(host):
            return web.Response(status=403, text="This name is not one of this machine. Use the printed address.\n")
        token, slash, name = request.path.removeprefix("/").partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode()):
            return web.Response(status=404, text="Not found. Use the whole address that tui-agent serve has printed.\n")
        if name == "ws":
            # Only browsers send one; other programs need the token as well.
            # Its port counts, because other servers of this machine have the same name.
            if request.headers.get("Origin", f"http://{host}") != f"http://{host}":
                return web.Response(status=403, text="Only the page of this server may connect.\n")
            return await self._connect(request)
        if not slash:
            # The page names its files relative to this address.
            return web.Response(status=308, headers={"Location": self.base})
        if name == "":
            page, policy = page_for(host, self.base)
            return web.Response(text=page, content_type="text/html", headers={"Content-Security-Policy": policy})
        if name == "page.js":
            return web.Response(text=PAGE_SCRIPT, content_type="text/javascript")
        if name in FILES:
            path, media_type = FILES[name]
            return web.FileResponse(self._folder / path, headers={"Content-Type": media_type})
        return web.Response(status=404, text="Not found.\n")

    def _knows(self, host: str) -> bool:
        """Return True if a request may name this machine so; the port may be that of a tunnel."""
        named = _HOST.fullmatch(host)
        return named is not None and (self.options.any_host or is_loopback(named[1]))

    async def _connect(self, request: web.Request) -> web.WebSocketResponse:
        """Run an app for a page, for as long as both are there."""
        page = web.WebSocketResponse(max_msg_size=LARGEST_MESSAGE, heartbeat=_HEARTBEAT)
        await page.prepare(request)
        if len(self._pages) >= self.options.most_pages or self._running >= self.options.most_pages + _MOST_ENDING:
            await _say(
                page,
                f"No more than {self.options.most_pages} pages can have a session at the same time.\n"
                "Nothing has begun here. Close another page, then start again.",
            )
            await page.close(code=WSCloseCode.TRY_AGAIN_LATER)
            return page
        self._pages.add(page)
        self._running += 1
        self._idle.clear()
        try:
            await self._run_app(page, PageSize.of(request.query.get("width"), request.query.get("height")))
        finally:
            self._pages.discard(page)
            self._running -= 1
            if not self._running:
                self._idle.set()
        return page

    async def _run_app(self, page: web.WebSocketResponse, size: PageSize) -> None:
        try:
            app = await ServedApp.start(self._command, size)
        except OSError as error:
            await _say(page, f"tui-agent cannot be started: {error.strerror or error}. Nothing has begun.")
            await page.close()
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                errors = tasks.create_task(app.read_errors())
                output = tasks.create_task(app.show_output(lambda data: _send(page, data)))
                typed = tasks.create_task(self._take_input(page, app))
                await asyncio.wait((output, typed), return_when=asyncio.FIRST_COMPLETED)
                # Closing apps do not count: a page that is loaded again comes before its old app has ended.
                if typed.done():
                    self._pages.discard(page)
                await app.end()
                await app.drain(errors, output)
                await _say(page, app.last_words)
                await page.close()
                for task in (errors, output, typed):
                    task.cancel()
        finally:
            app.kill()

    async def _take_input(self, page: web.WebSocketResponse, app: ServedApp) -> None:
        """Pass on what the page sends, until it is gone; anything else than its messages is dropped."""
        async for message in page:
            if message.type is not WSMsgType.TEXT:
                continue
            taken = read_page_message(message.data)
            if taken is None:
                continue
            if taken.size is not None:
                app.size = taken.size
            if taken.answer and not page.closed:
                with suppress(ConnectionError):
                    await page.send_str(taken.answer)
            if taken.packet:
                await app.send(taken.packet)


async def _protect(_: web.Request, response: web.StreamResponse) -> None:
    for name, value in PROTECTION.items():
        response.headers.setdefault(name, value)


async def _send(page: web.WebSocketResponse, data: bytes) -> None:
    if not page.closed:
        with suppress(ConnectionError):  # The page has gone; its app ends.
            await page.send_bytes(data)


async def _say(page: web.WebSocketResponse, text: str) -> None:
    """Show a text in the terminal of a page, instead of the app."""
    await _send(page, _CLEAR + text.replace("\n", "\r\n").encode("utf-8", "replace"))


def _may_be_logged(record: logging.LogRecord) -> bool:
    """Return False for the error of a request that cannot be read: it quotes the request, and so the token."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


_LOG.addFilter(_may_be_logged)


@contextmanager
def _on_signal(over: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        loop.add_signal_handler(number, over.set)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


def _refusal(options: ServerOptions, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {options.port} is in use; name another one with --port, or none for a free one"
    return f"tui-agent cannot listen on {options.host}, port {options.port}: {os.strerror(error.errno or 0)}"
