"""Quote removal: one word as bash reads it, checked character by character against the grammar's tree.

The grammar claims where a word begins and ends and where its substitutions are. This module trusts none of that: a
metacharacter, a quote or a `$` that the grammar did not account for makes the word unreadable. Source text is decoded
as latin-1, so that one character is one byte and offsets are byte offsets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .syntax import UNKNOWN, VARIABLE, Variable, Word


class UnreadableError(Exception):
    """The text cannot be read with certainty; the message gives the user the reason."""


@dataclass(frozen=True, slots=True)
class Substitution:
    """A substitution inside a word, as the grammar found it."""

    end: int
    """End offset in the source."""
    mark: str
    """`UNKNOWN`, `VARIABLE` or `PIPE`."""
    name: str = ""
    """The variable's name, for `VARIABLE`."""


_PLAIN = re.compile(r"[^\\'\"$`|&;()<> \t\n*?\[\]{}~,]+")
_PLAIN_IN_QUOTES = re.compile(r'[^\\"$`]+')
_LIVE = frozenset("*?[]{}~,")
_EXPANDS = re.compile(r"[A-Za-z0-9_{(\[@*#?!$-]|\\\n")
"""Text that makes the `$` before it an expansion. A line continuation counts, because the shell joins lines first."""
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}))"
)
_ANSI_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def lex_word(source: str, start: int, end: int, substitutions: Mapping[int, Substitution]) -> Word:
    """Return exactly one word.

    Args:
        source: the whole command as latin-1.
        start, end: offsets of the word.
        substitutions: the word's substitutions by start offset.

    Raises:
        UnreadableError: the text is not exactly one word with exactly these substitutions.
    """
    lexer = _Lexer(source, end, substitutions)
    lexer.read_word(start)
    lexer.expect_all_filled(start, end)
    return lexer.word(_decoded(source[start:end]))


def end_of_word(source: str, start: int, limit: int, substitutions: Mapping[int, Substitution]) -> int:
    """Return the end of the word that begins at `start`: a blank, an operator or `limit`.

    Raises:
        UnreadableError: it cannot be read.
    """
    lexer = _Lexer(source, limit, substitutions)
    end = lexer.read_word(start, stop_at_boundary=True)
    lexer.expect_all_filled(start, end)
    return end


def check_expanding_text(source: str, start: int, end: int, substitutions: Mapping[int, Substitution]) -> None:
    """Check that a here-document's text contains exactly these substitutions.

    Raises:
        UnreadableError: the shell would expand something else as well.
    """
    at = start
    seen = 0
    while at < end:
        if at in substitutions:
            at, seen = substitutions[at].end, seen + 1
        elif source[at] == "\\":
            at += 2
        elif source[at] == "`" or (source[at] == "$" and _EXPANDS.match(source, at + 1, end)):
            raise UnreadableError("an expansion that the grammar did not see")
        else:
            at += 1
    if seen != len(substitutions):
        raise UnreadableError("a substitution where there is only text")


class _Lexer:
    """Builds one word piece by piece."""

    def __init__(self, source: str, end: int, substitutions: Mapping[int, Substitution]) -> None:
        self._source = source
        self._end = end
        self._substitutions = substitutions
        self._pieces: list[str] = []
        self._length = 0
        self._live: list[int] = []
        self._variables: list[Variable] = []
        self._filled = 0

    def expect_all_filled(self, start: int, end: int) -> None:
        """Raise `UnreadableError` if the grammar found a substitution in quoted text."""
        if self._filled != sum(1 for at in self._substitutions if start <= at < end):
            raise UnreadableError("a substitution where there is only text")

    def word(self, text: str) -> Word:
        """Return the word read so far; `text` is its written form."""
        return Word("".join(self._pieces), frozenset(self._live), tuple(self._variables), text)

    def read_word(self, at: int, *, stop_at_boundary: bool = False) -> int:
        """Read to the end, or to the first end of a word; return the offset."""
        source, end = self._source, self._end
        while at < end:
            letter = source[at]
            if at in self._substitutions:
                at = self._fill(at, quoted=False)
            elif run := _PLAIN.match(source, at, end):
                self._add(run.group())
                at = run.end()
            elif letter in _LIVE:
                self._live.append(self._length)
                self._add(letter)
                at += 1
            elif letter == "\\":
                at = self._escape(at)
            elif letter == "'":
                at = self._single_quotes(at)
            elif letter == '"':
                at = self._double_quotes(at + 1)
            elif letter == "$":
                at = self._dollar(at)
            elif stop_at_boundary and letter != "`":
                return at
            else:
                raise UnreadableError(f"{letter!r} where a word was expected")
        if at > end:
            raise UnreadableError("a quote or substitution that extends beyond its word")
        return at

    def _add(self, raw: str) -> None:
        piece = raw if raw.isascii() else _decoded(raw)
        self._pieces.append(piece)
        self._length += len(piece)

    def _fill(self, at: int, *, quoted: bool) -> int:
        hole = self._substitutions[at]
        self._filled += 1
        self._pieces.append(hole.mark)
        if hole.mark == UNKNOWN and not quoted:
            self._live.append(self._length)
        self._length += 1
        if hole.mark == VARIABLE:
            self._variables.append(Variable(hole.name, quoted and hole.name[-1] not in "@]"))
        elif quoted and hole.mark != UNKNOWN:
            raise UnreadableError("a process substitution inside quotes")
        return hole.end

    def _escape(self, at: int) -> int:
        if at + 1 >= self._end:
            raise UnreadableError("a backslash at the end")
        following = self._source[at + 1]
        if following != "\n" and following.isascii():
            self._add(following)
        elif following != "\n":
            return at + 1
        return at + 2

    def _single_quotes(self, at: int) -> int:
        close = self._source.find("'", at + 1, self._end)
        if close < 0:
            raise UnreadableError("a quote that is not closed")
        self._add(self._source[at + 1 : close])
        return close + 1

    def _double_quotes(self, at: int) -> int:
        source, end = self._source, self._end
        while at < end:
            if at in self._substitutions:
                at = self._fill(at, quoted=True)
            elif run := _PLAIN_IN_QUOTES.match(source, at, end):
                self._add(run.group())
                at = run.end()
            elif source[at] == '"':
                return at + 1
            elif source[at] == "\\" and at + 1 < end:
                following = source[at + 1]
                if following in '$`"\\':
                    self._add(following)
                    at += 2
                elif following == "\n":
                    at += 2
                else:
                    self._add("\\")
                    at += 1
            elif source[at] == "$" and at + 1 < end and not _EXPANDS.match(source, at + 1, end):
                self._add("$")
                at += 1
            else:
                raise UnreadableError("an expansion that the grammar did not see")
        raise UnreadableError("a quote that is not closed")

    def _dollar(self, at: int) -> int:
        following = self._source[at + 1 : min(at + 2, self._end)]
        if following == "'":
            return self._ansi_quotes(at + 2)
        if following == '"' or _EXPANDS.match(self._source, at + 1, self._end):
            raise UnreadableError("an expansion that the grammar did not see")
        self._add("$")
        return at + 1

    def _ansi_quotes(self, at: int) -> int:
        source, end = self._source, self._end
        while at < end:
            if source[at] == "'":
                return at + 1
            if source[at] != "\\":
                run_end = at + 1
                while run_end < end and source[run_end] not in "\\'":
                    run_end += 1
                self._add(source[at:run_end])
                at = run_end
            elif escape := _ANSI_ESCAPE.match(source, at, end):
                self._add_escaped(escape)
                at = escape.end()
            else:
                raise UnreadableError("an unknown escape in $'…'")
        raise UnreadableError("a quote that is not closed")

    def _add_escaped(self, escape: re.Match[str]) -> None:
        letter, hexadecimal, octal, unicode = escape.groups()
        if letter:
            self._add(_ANSI_LETTERS[letter])
            return
        code = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(unicode[1:], 16)
        if code == 0 or code > 0x7F:
            raise UnreadableError("a character in $'…' that a word cannot contain")
        self._pieces.append(chr(code))
        self._length += 1


def _decoded(raw: str) -> str:
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError("an incomplete character") from error
