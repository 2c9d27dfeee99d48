"""The driver of the app in a browser: Textual's own, with corrections for input, questions before the chat, the
window's size in the environment, and a server that has gone."""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.messages import ExitApp

from .terminal_input import TerminalInput


class BrowserDriver(WebDriver):
    """Talks to `tui-agent serve` through pipes."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        """Take the size from the environment, where commands of the agent would find it otherwise."""
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        for name in ("COLUMNS", "ROWS"):
            os.environ.pop(name, None)
        self._write = self._write_all
        self._input = TerminalInput()

    def run_input_thread(self) -> None:
        """Read input until the app ends; if the input ends first, end the app."""
        packets = ByteStream()
        for data in self._input_reader:
            for kind, payload in packets.feed(data) if data else ():
                if kind == "D":
                    self._process(self._input.feed(payload))
                else:
                    self._take_meta(payload)
            if not data:
                self._process(self._input.rest(self._input_reader.timeout))
        if not self.exit_event.is_set():
            self.send_message(ExitApp())

    def disable_input(self) -> None:
        """Stop reading, before another app of this process reads the same input."""
        self.exit_event.set()
        self._input_reader.close()
        if self._key_thread.is_alive():
            self._key_thread.join()

    def on_meta(self, packet_type: str, payload: dict[str, Any]) -> None:
        """Process a message of the server."""
        if packet_type != "resize":
            super().on_meta(packet_type, payload)
            return
        self._size = (int(payload["width"]), int(payload["height"]))
        # Queued like the first size, which could arrive after this one otherwise.
        self.send_message(Resize(size := Size(*self._size), size))

    def write(self, data: str) -> None:
        """Write terminal sequences; without a server no one reads them."""
        with suppress(BrokenPipeError):
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a message for the server; without a server no one reads it."""
        with suppress(BrokenPipeError):
            super().write_meta(data)

    def _process(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self.process_message(message)

    def _take_meta(self, payload: bytes) -> None:
        try:
            fields: Any = json.loads(payload)
            self.on_meta(str(fields["type"]), fields)
        except (ValueError, TypeError, KeyError):
            return

    def _write_all(self, data: bytes) -> None:
        # A signal may cut a write to a pipe short, and the rest of a packet must follow.
        while data:
            data = data[os.write(self.fileno, data) :]
