"""Patterns of `bash(…)` rules: words, a prefix of words, or words with `*`; everything else is literal.

Patterns are compared with a command's words joined by a character that no word can contain, so a blank in a pattern is
always a border between two words. A `*` never matches past its simple command: each is compared alone.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, VARIABLE

Match = Literal["yes", "maybe", "no"]
"""Result of matching a rule; `maybe` if only the running shell knows."""

BORDER = "\x00"
"""Separator between two words."""

BLANKS = " \t\n\r\v\f"
"""Blanks of a rule. Others, such as a no-break space or U+2028, are ordinary characters to bash."""
_BLANKS = re.compile(f"[{BLANKS}]+")
_MARK = re.compile(f"[{UNKNOWN}{VARIABLE}{PIPE}]")
_QUOTED = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern, split at its stars."""

    pieces: tuple[str, ...]
    """Literal pieces; any text may come between two of them."""
    is_prefix: bool
    """True if more words may follow."""

    @property
    def is_exact(self) -> bool:
        """True if the pattern spells out the whole command."""
        return len(self.pieces) == 1 and not self.is_prefix

    @property
    def is_everything(self) -> bool:
        """True if the pattern is `*` alone."""
        return self.pieces == ("", "")

    @property
    def spelled_words(self) -> int:
        """Number of words, from the first, that the pattern spells out in full."""
        first = self.pieces[0]
        if len(self.pieces) == 1:
            return first.count(BORDER) + 1 if first else 0
        return first.count(BORDER)

    @property
    def spelled(self) -> frozenset[str]:
        """Words that the pattern spells out in full, at any position; parts of words beside a star are among them."""
        return frozenset(word for piece in self.pieces for word in piece.split(BORDER) if word)

    def match(self, text: str) -> bool:
        """True if a command's joined words match."""
        if not text.startswith(self.pieces[0]):
            return False
        whole = text + BORDER
        pieces = (*self.pieces[:-1], self.pieces[-1] + BORDER)
        if len(pieces) == 1:
            return whole.startswith(pieces[0]) if self.is_prefix else whole == pieces[0]
        # The first match of each piece is enough: backtracking could not find a match where this fails.
        at = len(pieces[0])
        for piece in pieces[1:-1]:
            found = whole.find(piece, at)
            if found < 0:
                return False
            at = found + len(piece)
        if self.is_prefix:
            return whole.find(pieces[-1], at) >= 0
        return len(whole) - len(pieces[-1]) >= at and whole.endswith(pieces[-1])

    def may_match(self, text: str) -> bool:
        """True if a command could match, whatever its unknown words become."""
        mark = _MARK.search(text)
        if mark is None:
            return self.match(text)
        # Only the text before the first unknown part can rule a match out.
        known = text[: mark.start()]
        first = self.pieces[0]
        if self.is_prefix and len(self.pieces) == 1:
            first += BORDER
        if first.startswith(known):
            return True
        return known.startswith(first) and (len(self.pieces) > 1 or self.is_prefix)


def is_open(text: str) -> bool:
    """True if only the running shell knows a part of a command's joined words."""
    return _MARK.search(text) is not None


@lru_cache(maxsize=4_096)
def command_patterns(text: str) -> tuple[CommandPattern, ...]:
    """Return the readings of a pattern: its words as written and, if it has quotes, its words after quote removal."""
    text = text.strip(BLANKS)
    is_prefix = text.endswith((":*", " *"))
    body = text[:-2].rstrip(BLANKS) if is_prefix else text
    if not body:
        return (CommandPattern(("", ""), is_prefix=False),)
    # The author may mean quotes as shell quoting or as literal characters, so both readings count.
    readings = [_words(body)]
    if _QUOTED.search(body):
        readings.append(_unquoted_words(body))
    return tuple(CommandPattern(tuple("".join(pieces) for pieces in reading), is_prefix) for reading in readings)


def _words(body: str) -> list[list[str]]:
    """Return the literal pieces of a pattern without quotes."""
    return [[piece] for piece in _BLANKS.sub(BORDER, body).split("*")]


def _unquoted_words(body: str) -> list[list[str]]:
    pieces: list[list[str]] = [[]]
    at = 0
    for quoted in _QUOTED.finditer(body):
        _add_plain(body[at : quoted.start()], pieces)
        pieces[-1].append(next((group for group in quoted.groups() if group is not None), ""))
        at = quoted.end()
    _add_plain(body[at:], pieces)
    return pieces


def _add_plain(text: str, pieces: list[list[str]]) -> None:
    first, *others = _BLANKS.sub(BORDER, text).split("*")
    pieces[-1].append(first)
    pieces.extend([other] for other in others)
