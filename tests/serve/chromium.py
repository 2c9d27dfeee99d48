"""A real, headless Chromium, driven over its debugging connection: keys, clicks, sizes, and what arrives."""

import asyncio
import base64
import json
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.screen_buffer import ScreenBuffer
from tests.support.terminal import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0"),
    "--enable-unsafe-swiftshader",
)
_KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")}


class Tab:
    """One page of the browser."""

    def __init__(self, connection: aiohttp.ClientWebSocketResponse) -> None:
        self._connection = connection
        self._number = 0
        self.size = (80, 24)
        """Columns and rows that the page has told the app last."""
        self.screen = ScreenBuffer(*self.size)
        """The terminal, as far as the page has received it since its last size."""
        self.problems: list[str] = []
        """Errors of scripts, violations of the policy, and requests that failed."""
        self.requested: list[str] = []
        """Addresses that the page has asked for."""

    async def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Call a method of the browser and return its result; take what it reports meanwhile."""
        self._number += 1
        number = self._number
        await self._connection.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = await self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    async def wait_for(self, holds: Callable[[ScreenBuffer], bool]) -> None:
        """Wait until the screen is so."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds(self.screen):
                    await self._receive()
        except TimeoutError:
            raise AssertionError(self.screen.text) from None

    async def wait_for_text(self, text: str) -> None:
        await self.wait_for(lambda screen: text in screen.text)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def type(self, text: str) -> None:
        """Type characters, key by key."""
        for character in text:
            await self.call("Input.dispatchKeyEvent", type="keyDown", text=character, key=character)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=character)

    async def press(self, key: str) -> None:
        """Press a named key."""
        code, text = _KEYS[key]
        named = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **named)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **named)

    async def click(self, text: str) -> None:
        """Click on a text of the screen."""
        row = next(number for number, line in enumerate(self.screen.lines) if text in line)
        column = self.screen.lines[row].index(text) + len(text) // 2
        box = json.loads(
            await self.evaluate("JSON.stringify(document.querySelector('.xterm-screen').getBoundingClientRect())")
        )
        columns, rows = self.size
        x = box["left"] + box["width"] / columns * (column + 0.5)
        y = box["top"] + box["height"] / rows * (row + 0.5)
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            button = "none" if kind == "mouseMoved" else "left"
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=1)

    async def resize(self, width: int, height: int) -> None:
        """Give the window another size in pixels, and wait until the page has told the app."""
        before = self.size
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        while self.size == before:
            await self._receive()

    async def _receive(self) -> dict[str, Any]:
        async with asyncio.timeout(PATIENCE):
            message: dict[str, Any] = json.loads((await self._connection.receive()).data)
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.webSocketFrameReceived" if parameters["response"]["opcode"] == 2:
                self.screen.feed(base64.b64decode(parameters["response"]["payloadData"]).decode("utf-8", "replace"))
            case "Network.webSocketFrameSent":
                self._note_size(json.loads(parameters["response"]["payloadData"]))
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case "Network.loadingFailed" | "Runtime.exceptionThrown":
                self.problems.append(json.dumps(parameters))
            case "Log.entryAdded" if parameters["entry"]["level"] == "error":
                self.problems.append(json.dumps(parameters))
        return message

    def _note_size(self, sent: list[Any]) -> None:
        if sent[0] == "resize" and (size := (sent[1]["width"], sent[1]["height"])) != self.size:
            self.size, self.screen = size, ScreenBuffer(*size)


@asynccontextmanager
async def chromium(profile: Path, width: int, height: int) -> AsyncIterator[Tab]:
    """A browser with a profile of its own, and its page."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        port = await _debugging_port(profile / "DevToolsActivePort")
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json") as answer:
                address = next(one for one in await answer.json() if one["type"] == "page")["webSocketDebuggerUrl"]
            async with http.ws_connect(address, max_msg_size=0) as connection:
                tab = Tab(connection)
                for domain in ("Page", "Network", "Runtime", "Log"):
                    await tab.call(f"{domain}.enable")
                yield tab
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _debugging_port(file: Path) -> int:
    async with asyncio.timeout(PATIENCE):
        while not (file.exists() and (lines := file.read_text().splitlines()) and len(lines) > 1):
            await asyncio.sleep(0.05)
    return int(lines[0])
