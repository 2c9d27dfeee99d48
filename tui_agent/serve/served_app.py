"""The app of one page: its process, from the first to the last byte, and its packets.

The app ends with its page: first as on a quit, which keeps the session and ends its commands. If that takes too long,
its whole process tree ends.

Packets of the app are those of Textual's web driver: a type (`D`: characters of the terminal, `M`: JSON), the size as
four bytes, and the payload; a line announces each app that begins, because questions before the chat are apps of their
own. Those of the page are of textual-serve's client: JSON lists such as `["stdin", "a"]`.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from tui_agent.protocol.pipes import close_pipes
from tui_agent.protocol.visible_text import escaped
from tui_agent.tools.processes.process_tree import TreeMark, end_tree

LARGEST_SIZE = 1_000
"""Most columns and rows of a page; more are cut."""

_BEGINNING = b"__GANGLION__\n"
"""Line with which the web driver begins."""
_TYPES = (b"D", b"M", b"P")
_LARGEST_PACKET = 1 << 26
"""Size in bytes above which five bytes are not a header: those of ASCII text name a larger one."""
_LONGEST_PING = 64

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
"""Value of `TEXTUAL_DRIVER` for an app whose terminal is a page."""

QUIT_SECONDS = 10.0
"""Seconds that an app gets to end as on a quit."""
_GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL after that."""
_EXIT_CHECK = 0.02
_LAST_BYTES = 1.0
"""Seconds in which the last output of an ended process is read; what it left running may hold the pipe open."""
_LONGEST_WORDS = 20_000
"""Most bytes kept of what the process writes beside its screen."""

_OTHER_TERMINAL = (
    *("TMUX", "TMUX_PANE", "STY", "WINDOW", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORFGBG", "LINES"),
    *("TEXTUAL", "TEXTUAL_LOG", "TEXTUAL_SCREENSHOT", "TEXTUAL_PRESS"),
)
"""Variables that describe the terminal in which the server runs, or change what a page sees."""

Show = Callable[[bytes], Awaitable[None]]
"""Sends characters to the terminal of the page; does nothing once the page is gone."""


@dataclass(frozen=True, slots=True)
class AppOutput:
    """A part of what the app's process writes."""

    kind: Literal["begins", "ended", "screen", "text"]
    """An app begins, it has ended, characters for the terminal, other text."""
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class PageSize:
    """Size of the terminal in a page."""

    columns: int = 80
    rows: int = 24

    @classmethod
    def of(cls, columns: object, rows: object) -> "PageSize":
        """Return a size within the limits; a size that is not a number is that of a usual terminal."""
        return cls(_within(columns, 80), _within(rows, 24))

    @property
    def packet(self) -> bytes:
        """The packet that sends the size to the app."""
        return meta_packet(type="resize", width=self.columns, height=self.rows)


@dataclass(frozen=True, slots=True)
class PageInput:
    """A message of the page."""

    packet: bytes = b""
    """For the app; empty: nothing."""
    answer: str = ""
    """For the page; empty: nothing."""
    size: PageSize | None = None
    """The page's new size; None: unchanged."""


def read_page_message(text: str) -> PageInput | None:
    """Return what a message of the page means; None for anything that its client does not send."""
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    match message:
        case ["stdin", str(typed)]:
            return PageInput(_packet(b"D", typed.encode("utf-8", "replace")))
        case ["resize", {"width": int(columns), "height": int(rows)}]:
            size = PageSize.of(columns, rows)
            return PageInput(size.packet, size=size)
        case ["ping", str(sent)]:
            return PageInput(answer=json.dumps(["pong", sent[:_LONGEST_PING]]))
        case ["focus" | "blur" as kind]:
            return PageInput(meta_packet(type=kind))
        case _:
            return None


def meta_packet(**fields: str | int) -> bytes:
    """Return a packet with JSON for the app."""
    return _packet(b"M", json.dumps(fields).encode())


async def read_app_output(stream: asyncio.StreamReader) -> AsyncIterator[AppOutput]:
    """Yield what an app's process writes, until it has closed its output."""
    while first := await stream.read(1):
        head = first
        try:
            if first not in _TYPES:
                line = first + await stream.readline()
                yield AppOutput("begins") if line == _BEGINNING else AppOutput("text", line)
                continue
            head += await stream.readexactly(4)
            size = int.from_bytes(head[1:], "big")
            if size > _LARGEST_PACKET:
                yield AppOutput("text", head)
                continue
            payload = await stream.readexactly(size)
        except (asyncio.IncompleteReadError, ValueError):
            return
        if first == b"D":
            yield AppOutput("screen", payload)
        elif first == b"M" and _is_end(payload):
            yield AppOutput("ended")


def _packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


def _is_end(payload: bytes) -> bool:
    try:
        message: Any = json.loads(payload)
    except ValueError:
        return False
    match message:
        case {"type": "exit"}:
            return True
        case _:
            return False


def _within(value: object, otherwise: int) -> int:
    try:
        number = int(value) if isinstance(value, str | int) else otherwise
    except ValueError:
        number = otherwise
    return min(max(number, 1), LARGEST_SIZE)


def app_environment(inherited: Mapping[str, str], size: PageSize) -> dict[str, str]:
    """Return the environment of an app whose terminal is a page of this size."""
    kept = {name: value for name, value in inherited.items() if name not in _OTHER_TERMINAL}
    return kept | {
        "TEXTUAL_DRIVER": WEB_DRIVER,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "COLUMNS": str(size.columns),
        "ROWS": str(size.rows),
    }


class ServedApp:
    """A running app."""

    def __init__(self, process: asyncio.subprocess.Process, mark: TreeMark, size: PageSize) -> None:
        self.size = size
        """The page's size; an app that begins gets it."""
        self._process = process
        self._mark = mark
        self._listens = asyncio.Event()
        self._words = bytearray()

    @classmethod
    async def start(cls, command: Sequence[str], size: PageSize) -> "ServedApp":
        """Start the app in a session of its own, so that keys of the server's terminal do not reach it.

        Raises:
            OSError: it cannot be started.
        """
        mark = TreeMark.new()
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=mark.put_into(app_environment(os.environ, size)),
            start_new_session=True,
        )
        return cls(process, mark, size)

    async def show_output(self, show: Show) -> None:
        """Send the app's screen to the page until the app has closed its output; other text is kept."""
        assert self._process.stdout is not None
        async for output in read_app_output(self._process.stdout):
            if output.kind == "screen":
                await show(output.data)
            elif output.kind == "begins":
                # The size may have changed since the process started.
                await self._write(self.size.packet)
                self._listens.set()
            elif output.kind == "ended":
                # Input waits for the next app: a question before the chat has been answered.
                self._listens.clear()
            else:
                self._keep(output.data)

    async def read_errors(self) -> None:
        """Keep the end of what the process writes to standard error."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(4096):
            self._keep(data)

    async def send(self, packet: bytes) -> None:
        """Send a packet once the app listens; wait while it is busy, so that a flood waits in the page."""
        await self._listens.wait()
        await self._write(packet)

    async def end(self) -> None:
        """End the process: as on a quit, and if it does not obey, with everything it started."""
        self._listens.set()
        deadline = time.monotonic() + QUIT_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(QUIT_SECONDS):
                await self._write(meta_packet(type="quit"))
        if self._process.stdin is not None:
            self._process.stdin.close()
        # `wait` would also wait for the end of the output.
        while self._process.returncode is None and time.monotonic() < deadline:
            await asyncio.sleep(_EXIT_CHECK)
        if self._process.returncode is None:
            await asyncio.to_thread(end_tree, self._process.pid, self._mark, grace=_GRACE)

    def kill(self) -> None:
        """Kill the process if it still runs, and close its pipes; its shells end with it."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
        close_pipes(self._process)

    @property
    def last_words(self) -> str:
        """Text that the process wrote beside its screen, and its exit code; control characters are escapes."""
        words = escaped(bytes(self._words).decode("utf-8", "replace")).strip()
        code = self._process.returncode
        ending = "tui-agent has ended." if code == 0 else f"tui-agent has ended with exit code {code}."
        return f"{words}\n\n{ending}" if words else ending

    async def drain(self, *readers: asyncio.Task[None]) -> None:
        """Let the readers read the last output."""
        await asyncio.wait(readers, timeout=_LAST_BYTES)

    async def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError, RuntimeError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    def _keep(self, data: bytes) -> None:
        self._words += data
        del self._words[:-_LONGEST_WORDS]
