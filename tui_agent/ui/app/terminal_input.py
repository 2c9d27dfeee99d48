"""Input of a terminal as messages of Textual: the prelude's filter, then Textual's parser behind a guard.

The parser would type replies of the terminal, take the releases of keys for keys, and raise on numbers without a
character. It sees single keys in a form that it knows, and an exception costs only the key that raised it.

The answer to the question for the background may come late or not at all, so nothing waits for it.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.events import Key, Paste
from textual.message import Message

from tui_agent.prelude.input_filter import InputFilter, latin_letter
from tui_agent.ui.base.error_boundary import call_or_fallback

if TYPE_CHECKING:
    from tui_agent.prelude.input_filter import Unit
import re
from collections.abc import Mapping

BACKGROUND_QUESTION = "\x1b]11;?\x07"
_DIVIDING_BRIGHTNESS = 0.5
_BACKGROUND = re.compile(r"11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")


@dataclass
class BackgroundReported(Message):
    """The terminal reported its background."""

    light: bool


def background_in(reply: str) -> BackgroundReported | None:
    """Return the message for a reply such as `11;rgb:ffff/ffff/ffff`; None for any other."""
    found = _BACKGROUND.fullmatch(reply)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return BackgroundReported(0.299 * red + 0.587 * green + 0.114 * blue > _DIVIDING_BRIGHTNESS)


def can_be_asked(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal ignores a question that it does not know."""
    return environment.get("TERM", "dumb") not in ("dumb", "linux", "")


_LOG = logging.getLogger(__name__)
_BLANKS = frozenset("\xa0\u2007\u202f")
"""Blanks that only keep words together; a command line would not split at them."""
_ALT_LENGTH = 2
"""Characters of an escape and the key behind it."""


@dataclass
class InputIgnored(Message):
    """Input raised an error and was ignored."""

    reason: str
    """Name of the error."""


class TerminalInput:
    """Turns the bytes of one terminal into messages."""

    def __init__(self) -> None:
        self._filter = InputFilter(ESCAPE_DELAY)
        self._parser = XTermParser()
        self.answers = 0
        """Number of answers to questions of the app."""

    @property
    def patience(self) -> float | None:
        """Seconds of silence after which to call `rest`; None: nothing waits."""
        return self._filter.patience

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete with the bytes of one read."""
        return self._messages(lambda: self._filter.feed(data))

    def rest(self, seconds: float) -> Iterator[Message]:
        """Yield the messages that are complete because nothing followed for some seconds more."""
        return self._messages(lambda: self._filter.rest(seconds))

    def finish(self) -> Iterator[Message]:
        """Yield what waits when reading stops; it may start again later."""
        return self._messages(self._filter.finish)

    def _messages(self, cut: "Callable[[], list[Unit]]") -> Iterator[Message]:
        failures: list[Exception] = []

        def fail(error: Exception) -> None:
            _LOG.error("input of the terminal was ignored", exc_info=error)
            failures.append(error)

        units = call_or_fallback(cut, fail)
        if units is None:
            self._filter = InputFilter(ESCAPE_DELAY)
        for unit in units or ():
            messages = call_or_fallback(lambda unit=unit: list(self._of_unit(unit)), fail)
            if messages is None:
                self._renew_parser()
            yield from messages or ()
        yield from (InputIgnored(type(error).__name__) for error in failures)

    def _of_unit(self, unit: "Unit") -> Iterator[Message]:
        kind, text, key = unit
        if kind == "text":
            for character in text:
                yield from self._typed(character, key)
        elif kind == "paste":
            yield Paste(text)
        elif kind in ("key", "event"):
            self.answers += text.endswith("$y")
            yield from self._parsed(text)
        elif text.startswith("11;"):
            self.answers += 1
            yield from filter(None, (background_in(text),))

    def _typed(self, character: str, key: str) -> Iterator[Message]:
        """Yield one typed character; its key is named as on a Latin keyboard, where bindings and answers look it up."""
        if character in _BLANKS:
            character = " "
        if not character.isprintable():
            # Joiners and marks of direction: text fields type printable keys only, and paste anything.
            yield Paste(character)
            return
        latin = "" if character.isascii() else key or latin_letter(character)
        if latin or character.isalnum():
            yield Key(latin or character, character)
        else:
            yield from self._parser.feed(character)

    def _parsed(self, sequence: str) -> Iterator[Message]:
        """Yield the messages of the parser for one whole sequence, and let it wait for nothing more."""
        messages = list(self._parser.feed(sequence))
        if not messages and sequence[0] == "\x1b":
            if len(sequence) <= _ALT_LENGTH:
                messages = list(self._parser.feed(""))  # The end of its input makes it decide.
            self._renew_parser()
        return iter(messages)

    def _renew_parser(self) -> None:
        """Replace the parser; the new one knows the pointer's place and unit."""
        old, self._parser = self._parser, XTermParser()
        self._parser.last_x, self._parser.last_y = old.last_x, old.last_y
        self._parser.mouse_pixels = old.mouse_pixels
        self._parser.terminal_size, self._parser.terminal_pixel_size = old.terminal_size, old.terminal_pixel_size
