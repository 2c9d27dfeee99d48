"""Patterns of `bash(…)` rules: words, a prefix of words, or words with `*` inside; everything else is literal.

A command's words are compared joined by a character that no word can hold, so that a blank in a pattern is only ever
the border between two words. A `*` never leaves its simple command, because nothing else is ever compared with it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .shell_syntax import PIPE, UNKNOWN, VARIABLE

Match = Literal["yes", "maybe", "no"]
"""Whether a rule speaks about something; `maybe`: only the running shell knows."""

BORDER = "\x00"
"""Stands between two words."""

_MARK = re.compile(f"[{UNKNOWN}{VARIABLE}{PIPE}]")
_QUOTED = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern, cut at its stars."""

    pieces: tuple[str, ...]
    """Literal pieces; between two of them stands any text. """
    is_prefix: bool
    """More words may follow."""

    @property
    def is_exact(self) -> bool:
        """Whether it spells the whole command."""
        return len(self.pieces) == 1 and not self.is_prefix

    @property
    def is_everything(self) -> bool:
        """Whether it is `*` alone."""
        return self.pieces == ("", "")

    @property
    def spelled_words(self) -> int:
        """How many words from the first on the pattern spells out in full."""
        first = self.pieces[0]
        if len(self.pieces) == 1:
            return first.count(BORDER) + 1 if first else 0
        return first.count(BORDER)

    def match(self, text: str) -> bool:
        """Whether a command's joined words fit."""
        if not text.startswith(self.pieces[0]):
            return False
        whole = text + BORDER
        pieces = (*self.pieces[:-1], self.pieces[-1] + BORDER)
        if len(pieces) == 1:
            return whole.startswith(pieces[0]) if self.is_prefix else whole == pieces[0]
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
        """Whether a command could fit, whatever stands where its words are not known."""
        mark = _MARK.search(text)
        if mark is None:
            return self.match(text)
        known = text[: mark.start()]
        first = self.pieces[0]
        if self.is_prefix and len(self.pieces) == 1:
            first += BORDER
        if first.startswith(known):
            return True
        return known.startswith(first) and (len(self.pieces) > 1 or self.is_prefix)


def is_open(text: str) -> bool:
    """Whether a part of a command's joined words is known only to the running shell."""
    return _MARK.search(text) is not None


@lru_cache(maxsize=4_096)
def command_patterns(text: str) -> tuple[CommandPattern, ...]:
    """The readings of one pattern: its words as they are and, where it has quotes, its words after quote removal."""
    text = text.strip()
    is_prefix = text.endswith((":*", " *"))
    body = text[:-2].rstrip() if is_prefix else text
    if not body:
        return (CommandPattern(("", ""), is_prefix=False),)
    readings = [_words(body)]
    if _QUOTED.search(body):
        readings.append(_unquoted_words(body))
    return tuple(CommandPattern(tuple("".join(pieces) for pieces in reading), is_prefix) for reading in readings)


def _words(body: str) -> list[list[str]]:
    """The literal pieces of a pattern without quotes."""
    return [[piece] for piece in re.sub(r"\s+", BORDER, body).split("*")]


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
    first, *others = re.sub(r"\s+", BORDER, text).split("*")
    pieces[-1].append(first)
    pieces.extend([other] for other in others)
