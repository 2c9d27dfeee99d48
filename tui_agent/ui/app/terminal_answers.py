"""The terminal's background colour: the question for it (OSC 11), and its answer.

The answer may come late or not at all, so nothing waits for it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from textual.message import Message

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
    """True if the terminal ignores a question that it does not know."""
    return environment.get("TERM", "dumb") not in ("dumb", "linux", "")
