"""Pastes, cut out of the input of a terminal before its keys are read."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

PASTE_BEGINS = "\x1b[200~"
PASTE_ENDS = "\x1b[201~"

PASTE_TIMEOUT = 2.0
"""Seconds without a character after which a paste without its end is handed over."""

_ONE_KEY = re.compile(r"\x1b?[^\x1b]|\x1b|\x1b\[(?!20[01]~)[\x20-\x3f]*[\x40-\x7e]|\x1bO.", re.DOTALL)
"""Everything a terminal sends for one key or one move of the mouse."""


@dataclass(frozen=True, slots=True)
class PastedText:
    """The text between the brackets of a paste, every character of it."""

    text: str


class PasteSplitter:
    """Splits the input of a terminal into pastes and the rest, in order.

    Everything between the brackets is text, also an escape sequence or another begin bracket; only the end bracket ends
    it. Terminals remove that bracket from pasted text. If one does not, the last end bracket of the same read counts,
    because no key sends it.

    A paste without its end is delivered after `PASTE_TIMEOUT` seconds of silence. Later input is still text, but the
    first read that is exactly one key is that key, so that the keyboard keeps working.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pasted: list[str] | None = None
        """Parts of the current paste; None: no paste."""
        self._bracket = ""
        """Start of a bracket at the end of the input so far: of an end bracket in a paste, else of a begin bracket."""
        self._overdue = False
        """True if a part of the paste was handed over although its end did not come."""
        self._last_read = 0.0

    def feed(self, data: str) -> Iterator[str | PastedText]:
        """Yield the parts of one read: characters for the key parser, and pastes.

        The characters include both brackets, with nothing between them, so that the parser follows. They are never
        held back: only the parser knows when a lone escape is a key.
        """
        self._last_read = self._clock()
        if self._overdue and not self._pasted and not self._bracket and _ONE_KEY.fullmatch(data):
            self._pasted, self._overdue = None, False
            yield PASTE_ENDS
        while data:
            if self._pasted is None:
                keys, data = self._until_paste(data)
                yield keys
                continue
            whole = self._bracket + data
            end = _end_of_paste(whole)
            if end is None:
                self._bracket = _begun_bracket(whole, PASTE_ENDS)
                self._pasted.append(whole[: len(whole) - len(self._bracket)])
                return
            text, data = "".join((*self._pasted, whole[:end])), whole[end + len(PASTE_ENDS) :]
            self._pasted, self._bracket, self._overdue = None, "", False
            yield PASTE_ENDS
            if text:
                yield PastedText(text)

    def tick(self) -> Iterator[PastedText]:
        """Yield the text of a paste whose end is overdue. Call this regularly."""
        if self._pasted is not None and self._clock() - self._last_read >= PASTE_TIMEOUT:
            text, self._pasted, self._overdue = "".join(self._pasted), [], True
            if text:
                yield PastedText(text)

    def finish(self) -> Iterator[PastedText]:
        """Yield the text of a paste without its end when reading stops; it may start again later."""
        if self._pasted is not None:
            text = "".join((*self._pasted, self._bracket))
            self._pasted, self._bracket, self._overdue = [], "", True
            if text:
                yield PastedText(text)

    def _until_paste(self, data: str) -> tuple[str, str]:
        """Cut behind the bracket that begins a paste; without one, everything is keys."""
        whole = self._bracket + data
        place = whole.find(PASTE_BEGINS)
        if place < 0:
            self._bracket = _begun_bracket(whole, PASTE_BEGINS)
            return data, ""
        cut = place + len(PASTE_BEGINS) - len(self._bracket)
        self._pasted, self._bracket = [], ""
        return data[:cut], data[cut:]


def _end_of_paste(text: str) -> int | None:
    """Return where the end bracket begins; None if it has not come."""
    first = text.find(PASTE_ENDS)
    if first < 0:
        return None
    next_paste = text.find(PASTE_BEGINS, first)
    return text.rfind(PASTE_ENDS, first, len(text) if next_paste < 0 else next_paste)


def _begun_bracket(text: str, bracket: str) -> str:
    """Return the beginning of a bracket with which a text ends."""
    return next((text[-size:] for size in range(len(bracket) - 1, 0, -1) if text.endswith(bracket[:size])), "")
