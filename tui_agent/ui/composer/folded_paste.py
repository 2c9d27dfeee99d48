"""Pastes in the composer: long ones folded to a few words, hidden characters shown as escapes. Both are whole again
when the text is sent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tui_agent.protocol.visible_text import escape_of
from tui_agent.ui.text.amounts import count_text
from tui_agent.ui.text.sanitiser import with_escapes

FOLDED_LINES = 8
"""A paste of so many lines is folded."""
FOLDED_CHARACTERS = 1_500
"""So is one of so many characters."""
ESCAPE_SIGN = "\ue05c"
"""Stands for the backslash of an escape in the composer, so that a typed `\\x1b` is not taken for one. In a pasted
text this private character becomes an escape itself."""

_ESCAPE = re.compile(rf"{ESCAPE_SIGN}(x[0-9a-f]{{2}}|u[0-9a-f]{{4}}|U[0-9a-f]{{8}})")


def escape_hidden(text: str) -> str:
    """Return a text for the composer, with escapes for the characters that cannot be seen."""
    return with_escapes(text, _signed)


def unescape_hidden(text: str) -> str:
    """Undo `escape_hidden`."""
    return _ESCAPE.sub(lambda match: chr(int(match[1][1:], 16)), text) if ESCAPE_SIGN in text else text


def render_escapes(line: str) -> str:
    """Return a line of the composer as it is drawn, of the same length."""
    return line.replace(ESCAPE_SIGN, "\\")


def escape_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each escape in a line of the composer."""
    if ESCAPE_SIGN in line:
        yield from (match.span() for match in _ESCAPE.finditer(line))


def _signed(character: str) -> str:
    return ESCAPE_SIGN + escape_of(character)[1:]


@dataclass(frozen=True, slots=True)
class FoldedSpan:
    """Where a folded paste stands in a line."""

    start: int
    end: int
    label: str


class PasteFolder:
    """The pastes of one draft, each under a label of its own; a label that is edited away takes its paste along."""

    def __init__(self) -> None:
        self._pastes: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """What to insert for a paste: a label where it is long, else the text itself."""
        lines = text.count("\n") + 1
        if lines < FOLDED_LINES and len(text) < FOLDED_CHARACTERS:
            return text
        size = count_text(lines, "line") if lines > 1 else count_text(len(text), "character")
        label = f"[pasted {size}]"
        number = 1
        while label in self._pastes and self._pastes[label] != text:
            number += 1
            label = f"[pasted {size} #{number}]"
        self._pastes[label] = text
        return label

    def unfold(self, draft: str) -> str:
        """The draft with every label replaced by what it stands for."""
        if not self._pastes:
            return draft
        return self._pattern().sub(lambda match: self._pastes[match[0]], draft)

    def text_of(self, label: str) -> str:
        """What a label stands for."""
        return self._pastes[label]

    def spans(self, line: str) -> tuple[FoldedSpan, ...]:
        """The labels in one line of the draft."""
        if not self._pastes:
            return ()
        return tuple(FoldedSpan(match.start(), match.end(), match[0]) for match in self._pattern().finditer(line))

    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(label) for label in self._pastes))
