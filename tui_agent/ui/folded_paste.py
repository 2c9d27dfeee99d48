"""Long pastes, folded to a few words in the composer and whole again when the text is sent."""

import re
from dataclasses import dataclass

from .amounts import count_text

FOLDED_LINES = 8
"""A paste of so many lines is folded."""
FOLDED_CHARACTERS = 1_500
"""So is one of so many characters."""


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
