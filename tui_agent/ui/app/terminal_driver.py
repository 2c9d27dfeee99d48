"""The terminal as it is left and taken again: Textual's driver, but for the moments in which it is not ours.

Textual starts anew on every `SIGCONT`, also where it was never suspended: then it takes its own settings for those the
terminal had before, and never puts back the person's. Told to end while it sleeps, it would first take a terminal
that belongs to the shell by then, which stops it again.

Textual's parser also reads escape sequences inside a paste as keys: a pasted ESC CR would send the draft. The driver
cuts pastes out before the parser sees them.
"""

import os
import selectors
from codecs import getincrementaldecoder
from contextlib import suppress
from functools import cached_property

from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste

from .paste_splitter import PastedText, PasteSplitter

_READ_SIZE = 64 * 1024
_PAUSE = 0.1
"""Seconds between looks at the clock: an escape that nothing follows is a key by then."""


class TerminalDriver(LinuxDriver):
    """Touches the terminal only while it is its own."""

    asleep = False
    """Whether the terminal was given back, to the shell or to an editor."""
    leaving = False
    """Whether the program ends: then a terminal that was given back is not taken again."""

    @cached_property
    def _pastes(self) -> PasteSplitter:
        """Splits the input. It outlives the reading threads: the program may be suspended in the middle of a paste."""
        return PasteSplitter()

    def run_input_thread(self) -> None:
        """Read keys and pastes until the app no longer wants any.

        Bytes that are not UTF-8 arrive as U+FFFD; they do not end the program.
        """
        parser, decoder = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace")
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            try:
                is_last = False
                while not is_last:
                    is_last = self.exit_event.is_set()
                    if selector.select(_PAUSE):
                        self._take(decoder.decode(os.read(self.fileno, _READ_SIZE), final=is_last), parser)
                    for message in parser.tick():
                        self.process_message(message)
                    for pasted in self._pastes.tick():
                        self.process_message(Paste(pasted.text))
                for pasted in self._pastes.finish():
                    self.process_message(Paste(pasted.text))
            finally:
                with suppress(EOFError, ParseError):
                    for _ in parser.feed(""):
                        pass

    def _take(self, data: str, parser: XTermParser) -> None:
        """Process the input of one read."""
        for part in self._pastes.feed(data):
            if isinstance(part, PastedText):
                self.process_message(Paste(part.text))
                continue
            for message in parser.feed(part):
                # The parser sees the brackets of a paste, and nothing between them.
                if not isinstance(message, Paste):
                    self.process_message(message)

    def suspend_application_mode(self) -> None:
        """Gives the terminal back."""
        if not self.asleep:
            super().suspend_application_mode()
            self.asleep = True

    def resume_application_mode(self) -> None:
        """Takes the terminal again, if it was given back and there is something to come."""
        if self.asleep and not self.leaving:
            # In the background this stops, and goes on inside of itself when the shell lets it.
            super().resume_application_mode()
            self.asleep = False

    def stop_application_mode(self) -> None:
        """Puts the terminal back to what it was."""
        if not self.asleep:
            super().stop_application_mode()

    def disable_input(self) -> None:
        """Hears no keys any more."""
        if not self.asleep:
            super().disable_input()

    def write(self, data: str) -> None:
        """Draws; nobody would take it any more where the terminal was given back for good."""
        if not (self.asleep and self.leaving):
            super().write(data)
