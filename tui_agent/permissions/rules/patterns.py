"""Patterns of rules: those of `bash(…)` for the words of a command, those of `read(…)` and `edit(…)` for paths.

A command pattern is a text of words, a prefix of words, or words with `*`; everything else is literal. It is compared
with a command's words joined by a character that no word can contain, so a blank in a pattern is always a border
between two words. A `*` never matches past its simple command: each is compared alone. Path patterns are anchored globs
with the syntax of `.gitignore`.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal

from pathspec import GitIgnoreSpec

from tui_agent.permissions.commands.script_reader import UNKNOWN
from tui_agent.permissions.rules.path_resolution import TooMuchError, entries_below, is_within

Match = Literal["yes", "maybe", "no"]
"""Result of matching a rule; `maybe` if only the running shell knows."""

BORDER = "\x00"
"""Separator between two words."""

BLANKS = " \t\n\r\v\f"
"""Blanks of a rule. Others, such as a no-break space or U+2028, are ordinary characters to bash."""
_BLANKS = re.compile(f"[{BLANKS}]+")
_QUOTED = re.compile(r"\\(.)|'([^']*)'|\"((?:\\.|[^\"\\])*)\"", re.DOTALL)
_LITERAL = {ord(letter): 0xDC00 + at for at, letter in enumerate(f"*{BLANKS}")}
"""Code points that no text contains, for quoted stars and blanks."""
_PLAIN = {code: letter for letter, code in _LITERAL.items()}


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern, split at its stars."""

    pieces: tuple[str, ...]
    """Literal pieces; any text may come between two of them."""
    is_prefix: bool
    """True if more words may follow."""
    expression: re.Pattern[str]
    """Matches the words of a command, each followed by `BORDER`."""
    narrow: re.Pattern[str]
    """The same, but a `*` in a URL stays in that word: an allow rule for a host allows no further options."""

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
        return self.pieces[0].count(BORDER) + (len(self.pieces) == 1)

    def match(self, text: str) -> bool:
        """True if a command's joined words match."""
        return self.expression.match(text + BORDER) is not None

    def allows(self, text: str) -> bool:
        """True if an allow rule with this pattern covers a command's joined words."""
        return self.narrow.match(text + BORDER) is not None

    def may_match(self, text: str) -> bool:
        """True if a command could match, whatever its unknown words become."""
        known, mark, _ = text.partition(UNKNOWN)
        if not mark:
            return self.match(text)
        # Only the text before the first unknown part can rule a match out.
        is_whole = len(self.pieces) == 1
        first = self.pieces[0] + (BORDER if self.is_prefix and is_whole else "")
        return first.startswith(known) or (known.startswith(first) and not self.is_exact)


@lru_cache(maxsize=4_096)
def command_patterns(text: str) -> tuple[CommandPattern, ...]:
    """Return the readings of a pattern: its words as written and, if it has quotes, its words after quote removal."""
    text = text.strip(BLANKS)
    is_prefix = text.endswith((":*", " *"))
    body = text[:-2].rstrip(BLANKS) if is_prefix else text
    if not body:
        return (_pattern("*", is_prefix=False),)
    # The author may mean quotes as shell quoting or as literal characters, so both readings count.
    unquoted = _QUOTED.sub(lambda found: "".join(group or "" for group in found.groups()).translate(_LITERAL), body)
    return tuple(_pattern(reading, is_prefix=is_prefix) for reading in dict.fromkeys((body, unquoted)))


def _pattern(body: str, *, is_prefix: bool) -> CommandPattern:
    pieces = tuple(piece.translate(_PLAIN) for piece in _BLANKS.sub(BORDER, body).split("*"))
    texts = (*map(re.escape, pieces[:-1]), re.escape(pieces[-1] + BORDER) + ("" if is_prefix else r"\Z"))
    any_text = (".",) * (len(pieces) - 1)
    of_word = tuple(f"[^{BORDER}]" if "://" in piece.rpartition(BORDER)[2] else "." for piece in pieces[:-1])
    return CommandPattern(pieces, is_prefix, _expression(texts, any_text), _expression(texts, of_word))


def _expression(texts: Sequence[str], stars: Sequence[str]) -> re.Pattern[str]:
    """Return the expression for the escaped pieces of a pattern, with the characters that each star matches."""
    first, *others = texts
    # Atomic groups take the first match of each piece for good, so no pattern can make matching slow.
    middle = "".join(f"(?>{star}*?{piece})" for star, piece in zip(stars, others[:-1], strict=False))
    last = f"{stars[-1]}*{others[-1]}" if others else ""
    return re.compile(f"(?s:{first}{middle}{last})")


# --- paths ------------------------------------------------------------------------------------------------------------

MAX_ENTRIES = 1_000
"""Maximum number of directory entries to test for a match below a directory."""
MAX_NAMES = 20_000
"""The same limit for patterns of names, which are compared faster."""

_SIMPLE_NAME = re.compile(r"[\w.*?@+,=-]+\Z")
_PROBE = "\u2400-no-such-name-\u2400"
"""A file name that does not occur: a pattern that matches it matches everything."""
_GLOB = frozenset("*?[\\")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern with its base directories."""

    text: str
    bases: tuple[str, ...]
    """Absolute directories; the workspace counts both as named and with links followed."""

    prefixes: tuple[str, ...]
    """The bases, each with a slash behind it."""
    expressions: tuple[re.Pattern[str], ...]
    """One expression, or none if the pattern matches nothing. Matching it directly takes a tenth of the time of the
    library's own matching, which serves many patterns at once."""

    def matches(self, path: str) -> bool:
        """True if the pattern matches an absolute path."""
        for prefix in self.prefixes:
            if path.startswith(prefix) and len(path) > len(prefix):
                below = path[len(prefix) :].lstrip("/")
                for expression in self.expressions:
                    if expression.match(below):
                        return True
        return False

    def matches_all_below(self, directory: str) -> bool:
        """True if the pattern matches everything in a directory, at any depth."""
        probe = f"{directory.rstrip('/')}/{_PROBE}"
        return self.matches(directory) or (self.matches(probe) and self.matches(f"{probe}/{_PROBE}"))

    def may_match_below(self, directory: str) -> bool:
        """True if the pattern matches something in a directory, at any depth, or if the search exceeds its limit."""
        if self.matches(os.path.join(directory, _PROBE)):
            return True
        for base in self.bases:
            start = os.path.join(base, self._anchor()).rstrip("/") or "/"
            if is_within(directory, start) or (is_within(start, directory) and os.path.lexists(start)):
                return self._is_below(max(start, directory, key=len))
        return False

    def _is_below(self, start: str) -> bool:
        # A pattern of one component matches by name alone.
        name = self.text.removeprefix("**/").rstrip("/")
        is_name = _SIMPLE_NAME.match(name) is not None
        try:
            return self.matches(start) or any(
                fnmatchcase(entry.name, name) if is_name else self.matches(entry.path)
                for entry in entries_below(start, MAX_NAMES if is_name else MAX_ENTRIES)
            )
        except TooMuchError:
            return True

    def overlaps(self, directory: str) -> bool:
        """True if the pattern may match something in a directory, by their texts alone."""
        starts = (os.path.join(base, self._anchor()).rstrip("/") or "/" for base in self.bases)
        return any(is_within(directory, start) or is_within(start, directory) for start in starts)

    def _anchor(self) -> str:
        """Return the literal directories before the pattern's first glob; empty if it matches at any depth."""
        parts = self.text.strip("/").split("/")
        if len(parts) == 1 and not self.text.startswith("/"):
            return ""
        return "/".join(takewhile(_GLOB.isdisjoint, parts))


def path_pattern(text: str, bases: tuple[str, ...]) -> PathPattern:
    """Parse a pattern: `src/**` (from the workspace), `~/.ssh/**` (from the user's home), `//etc/**` (from the root).

    The bases are the workspace, as named and with links followed, and added folders.
    """
    return _path_pattern(text, bases, os.path.expanduser("~") if text.startswith("~") else "")


@lru_cache(maxsize=4_096)
def _path_pattern(text: str, bases: tuple[str, ...], home: str) -> PathPattern:
    if text.startswith("//"):
        text, bases = text[1:], ("/",)
    elif text == "~" or text.startswith("~/"):
        text, bases = text[1:] or "/**", tuple(dict.fromkeys((home, os.path.realpath(home))))
    else:
        text = text.removeprefix("./")
    prefixes = tuple(f"{base.rstrip('/')}/" for base in bases)
    return PathPattern(text, bases, prefixes, _expressions(text))


def _expressions(text: str) -> tuple[re.Pattern[str], ...]:
    # Rules have no negation or comments: a leading `!` or `#` is part of a name.
    spec = GitIgnoreSpec.from_lines([f"\\{text}" if text.startswith(("!", "#")) else text])
    patterns: Sequence[Any] = spec.patterns
    return tuple(pattern.regex for pattern in patterns if pattern.regex is not None)
