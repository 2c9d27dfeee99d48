"""The terminal's background colour: the question for it (OSC 11), and its answer among the keys.

The answer must never reach the key parser, which would type it into the composer. It may come late, in parts or not at
all, so nothing waits for it.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from textual.message import Message

BACKGROUND_QUESTION = "\x1b]11;?\x07"
ANSWER_SECONDS = 3.0
"""Seconds after the question for which a lone escape may begin the answer."""
HOLD_SECONDS = 0.1
"""Seconds for which the beginning of an answer is held back."""
_DIVIDING_BRIGHTNESS = 0.5

_ANSWER = re.compile(r"\x1b\]11;([^\x07\x1b]{0,64})(?:\x07|\x1b\\)")
_BEGUN = re.compile(r"\x1b(?:\](?:1(?:1(?:;[^\x07\x1b]{0,64}\x1b?)?)?)?)?\Z")
_COLOUR = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")
_SHORTEST = 3
"""Characters of an answer that no key begins with."""


@dataclass
class BackgroundReported(Message):
    """The terminal reported its background."""

    light: bool


class AnswerSplitter:
    """Takes the answer of the terminal out of its keys."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_at: float | None = None
        self._held = ""
        self._held_at = 0.0

    def asked(self) -> None:
        """Expect an answer from now on."""
        self._asked_at = self._clock()

    @property
    def holds_back(self) -> bool:
        """True if the beginning of an answer is held back."""
        return bool(self._held)

    def feed(self, data: str) -> tuple[str, list[BackgroundReported]]:
        """Return the keys in one read, and the answers."""
        if self._asked_at is None:
            return data, []
        data, self._held = self._held + data, ""
        answers = [_reported(match[1]) for match in _ANSWER.finditer(data)]
        keys = _ANSWER.sub("", data)
        if (begun := _BEGUN.search(keys)) and (len(begun[0]) >= _SHORTEST or self._expected):
            self._held, self._held_at = begun[0], self._clock()
            keys = keys[: begun.start()]
        if answers:
            self._asked_at = float("-inf")
        return keys, [answer for answer in answers if answer is not None]

    def tick(self) -> str:
        """Return what was held back once it cannot be an answer. Call this regularly."""
        if self._held and self._clock() - self._held_at >= HOLD_SECONDS:
            return self.release()
        return ""

    def release(self) -> str:
        """Return what is held back."""
        held, self._held = self._held, ""
        return held

    @property
    def _expected(self) -> bool:
        return self._asked_at is not None and self._clock() - self._asked_at < ANSWER_SECONDS


def _reported(colour: str) -> BackgroundReported | None:
    """Return the message for a colour such as `rgb:ffff/ffff/ffff`; None if it is in another form."""
    found = _COLOUR.fullmatch(colour)
    if found is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in found.groups())
    return BackgroundReported(0.299 * red + 0.587 * green + 0.114 * blue > _DIVIDING_BRIGHTNESS)


def can_be_asked(environment: Mapping[str, str]) -> bool:
    """True if the terminal ignores a question that it does not know."""
    return environment.get("TERM", "dumb") not in ("dumb", "linux", "")
