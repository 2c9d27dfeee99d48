"""The driver of the app in a browser: Textual's own, with corrections for pastes, questions before the chat, the
window's size in the environment, and a server that has gone."""

import json
import os
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import Any

from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver
from textual.events import Paste
from textual.messages import ExitApp

from .terminal_driver import PastedText, PasteSplitter, with_alt_arrows


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
        self._pastes = PasteSplitter()

    def run_input_thread(self) -> None:
        """Read input until the app ends; if the input ends first, end the app.

        Bytes that are not UTF-8 arrive as U+FFFD, and what a paste holds acts as no key.
        """
        parser, decoder = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace")
        packets = ByteStream()
        for data in self._input_reader:
            for kind, payload in packets.feed(data) if data else ():
                if kind == "D":
                    self._take(decoder.decode(payload), parser)
                else:
                    self._take_meta(payload)
            if not data:
                for message in parser.tick():
                    self.process_message(message)
                for pasted in self._pastes.tick():
                    self.process_message(Paste(pasted.text))
        if not self.exit_event.is_set():
            self.send_message(ExitApp())

    def disable_input(self) -> None:
        """Stop reading, before another app of this process reads the same input."""
        self.exit_event.set()
        self._input_reader.close()
        if self._key_thread.is_alive():
            self._key_thread.join()

    def write(self, data: str) -> None:
        """Write terminal sequences; without a server no one reads them."""
        with suppress(BrokenPipeError):
            super().write(data)

    def write_meta(self, data: dict[str, object]) -> None:
        """Write a message for the server; without a server no one reads it."""
        with suppress(BrokenPipeError):
            super().write_meta(data)

    def _take(self, data: str, parser: XTermParser) -> None:
        for part in self._pastes.feed(data):
            if isinstance(part, PastedText):
                self.process_message(Paste(part.text))
                continue
            # An empty text would end the parser.
            for message in parser.feed(with_alt_arrows(part)) if part else ():
                # The parser sees the brackets of a paste, and nothing between them.
                if not isinstance(message, Paste):
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
