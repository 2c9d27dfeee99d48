"""Removes control characters from what is about to be drawn.

Text is sanitised where it enters the screen (`sanitiser.py`). This filter runs after every widget, also Textual's own:
a missed call of the sanitiser leaves a gap in a line instead of a terminal command (safety promise 17).
"""

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, what hides or reorders others, and halves of characters, which no terminal can be sent."""


class ControlCharacterFilter(LineFilter):
    """Blanks such characters, without moving what stands beside them, and takes links away."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments of one row, as they may be written."""
        if not any(_is_acting(segment) for segment in segments):
            return segments
        return [_plain(segment) if _is_acting(segment) else segment for segment in segments]


def plain(text: str) -> str:
    """A text without such characters, as wide as before."""
    return _ACTING.sub(lambda match: " " * max(0, cell_len(match[0])), text)


def _is_acting(segment: Segment) -> bool:
    text, style, _ = segment
    if not text.isascii() or not text.isprintable():
        return _ACTING.search(text) is not None or (style is not None and style.link is not None)
    return style is not None and style.link is not None


def _plain(segment: Segment) -> Segment:
    text, style, control = segment
    if style is not None and style.link is not None:
        style = style.update_link(None)
    return Segment(plain(text), style, control)
