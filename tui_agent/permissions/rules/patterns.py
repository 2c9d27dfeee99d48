"""Patterns of rules: those of `bash(…)` for the words of a command, those of `read(…)` and `edit(…)` for paths.

A command pattern is a text of words, a prefix of words, or words with `*`; everything else is literal. It is compared
with a command's words joined by a character that no word can contain, so a blank in a pattern is always a border
between two words. A `*` never matches past its simple command: each is compared alone. Path patterns are anchored globs
with the syntax of `.gitignore`.
"""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from pathspec import GitIgnoreSpec

from tui_agent.permissions.commands.invocation import FileFilter
from tui_agent.permissions.paths.path_resolution import TooMuchError, entries_below, is_within
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


# --- paths ------------------------------------------------------------------------------------------------------------

MAX_ENTRIES = 1_000
"""Maximum number of directory entries to test for a match below a directory."""
MAX_NAMES = 20_000
"""The same limit for patterns that a name alone can match."""

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

    def matches(self, path: str) -> bool:
        """True if the pattern matches an absolute path."""
        spec = _spec(self.text)
        for base in self.bases:
            if is_within(path, base) and path != base and spec.match_file(path[len(base) :].lstrip("/")):
                return True
        return False

    def matches_all_below(self, directory: str) -> bool:
        """True if the pattern matches everything in a directory, at any depth."""
        probe = os.path.join(directory, _PROBE)
        return self.matches(directory) or (self.matches(probe) and self.matches(os.path.join(probe, _PROBE)))

    def may_match_below(self, directory: str, includes: FileFilter | None = None) -> bool:
        """True if the pattern matches something in a directory, at any depth, or if the search exceeds its limit.

        Args:
            directory: absolute, without links.
            includes: filter for the files that count; None for all.
        """
        if includes is None and self.matches(os.path.join(directory, _PROBE)):
            return True
        anchor = self._anchor()
        for base in self.bases:
            start = os.path.join(base, anchor) if anchor else base
            if is_within(directory, start):
                return self._found_below(directory, directory, includes)
            if is_within(start, directory) and os.path.lexists(start):
                return self._found_below(start, directory, includes)
        return False

    def _anchor(self) -> str:
        """Return the literal directories before the pattern's first glob; empty if it matches at any depth."""
        parts = self.text.strip("/").split("/")
        if len(parts) == 1 and not self.text.startswith("/"):
            return ""
        spelled: list[str] = []
        for part in parts:
            if not _GLOB.isdisjoint(part):
                break
            spelled.append(part)
        return "/".join(spelled)

    def _found_below(self, start: str, top: str, includes: FileFilter | None) -> bool:
        if self.matches(start) and (includes is None or start == top):
            return True
        if includes is not None and not os.path.isdir(start):
            return self.matches(start) and includes.includes(start[len(top) :].lstrip("/"))
        by_name = _name_pattern(self.text)

        def below(entry: os.DirEntry[str]) -> str:
            return entry.path[len(top) :].lstrip("/")

        def enters(entry: os.DirEntry[str]) -> bool:
            return includes is None or includes.enters(below(entry))

        def counts(entry: os.DirEntry[str]) -> bool:
            if includes is None or entry.is_dir(follow_symlinks=False):
                return enters(entry)
            return includes.includes(below(entry))

        try:
            return any(
                (by_name.fullmatch(entry.name) if by_name else self.matches(entry.path)) and counts(entry)
                for entry in entries_below(start, MAX_NAMES if by_name else MAX_ENTRIES, enters=enters)
            )
        except TooMuchError:
            return True


def path_pattern(text: str, workspace: str, root: str) -> PathPattern:
    """Parse a pattern.

    Args:
        text: `src/**` (from the workspace), `~/.ssh/**` (from the user's home), `//etc/**` (from the root).
        workspace: the workspace, links followed.
        root: the workspace as named.
    """
    if text.startswith("//"):
        return PathPattern(text[1:], ("/",))
    if text == "~" or text.startswith("~/"):
        home = os.path.expanduser("~")
        return PathPattern(text[1:] or "/**", tuple(dict.fromkeys((home, os.path.realpath(home)))))
    return PathPattern(text.removeprefix("./"), tuple(dict.fromkeys((workspace, root))))


@lru_cache(maxsize=1_024)
def _name_pattern(text: str) -> re.Pattern[str] | None:
    """Return an expression for file names if the pattern has one component and so matches by name alone, else None."""
    name = text.removeprefix("**/").rstrip("/")
    if not _SIMPLE_NAME.match(name):
        return None
    return re.compile(re.escape(name).replace("\\*", ".*").replace("\\?", "."), re.DOTALL)


@lru_cache(maxsize=1_024)
def _spec(text: str) -> GitIgnoreSpec:
    # Rules have no negation or comments: a leading `!` or `#` is part of a name.
    return GitIgnoreSpec.from_lines([f"\\{text}" if text.startswith(("!", "#")) else text])
