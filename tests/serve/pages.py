"""Pages without a browser: a client of the real server, over real connections."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from tui_agent.serve.browser_page import client_folder
from tui_agent.serve.browser_server import BrowserServer, ServerOptions, listening

SMALL_APP = Path(__file__).with_name("small_app.py")


@dataclass
class Client:
    """A browser's requests to one server."""

    address: str
    http: aiohttp.ClientSession

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    def url(self, name: str = "") -> str:
        return self.address + name

    async def status(self, url: str, **headers: str) -> int:
        async with self.http.get(url, headers=headers, allow_redirects=False) as answer:
            await answer.read()
            return answer.status

    @asynccontextmanager
    async def page(self, size: tuple[int, int] = (80, 24), **headers: str) -> AsyncIterator["Page"]:
        url = self.url(f"ws?width={size[0]}&height={size[1]}")
        async with self.http.ws_connect(url, headers=headers, max_msg_size=0) as socket:
            yield Page(socket)


class Page:
    """One connection with an app."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket
        self.shown = ""
        """Everything that the app has written."""
        self.said: list[object] = []
        """Messages beside it."""

    async def type(self, text: str) -> None:
        await self.send("stdin", text)

    async def send(self, *message: object) -> None:
        await self.socket.send_str(json.dumps(message))

    async def wait_for(self, pattern: str) -> re.Match[str]:
        while (found := re.search(pattern, self.shown)) is None:
            assert await self.receive(), f"closed before {pattern!r}: {self.shown!r}"
        return found

    async def receive(self) -> bool:
        """Take one message; return False once the connection is closed."""
        message = await self.socket.receive()
        if message.type is aiohttp.WSMsgType.BINARY:
            self.shown += message.data.decode("utf-8", "replace")
        elif message.type is aiohttp.WSMsgType.TEXT:
            self.said.append(json.loads(message.data))
        else:
            return False
        return True

    async def wait_for_close(self) -> int | None:
        while await self.receive():
            pass
        return self.socket.close_code


@asynccontextmanager
async def serving(kind: str = "echo", options: ServerOptions | None = None) -> AsyncIterator[Client]:
    """A server on a free port with the small app, and a client."""
    folder = client_folder()
    assert folder is not None
    command = (sys.executable, "-I", "-S", str(SMALL_APP), kind)
    server = BrowserServer(options or ServerOptions(), command, folder)
    async with listening(server) as address, aiohttp.ClientSession() as http:
        yield Client(address, http)


def with_host(client: Client, host: str) -> Client:
    """The same server under another name of this machine."""
    return replace(client, address=client.address.replace(client.host.partition(":")[0], host, 1))
