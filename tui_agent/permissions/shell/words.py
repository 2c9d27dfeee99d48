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


_EXPANDS = r"[A-Za-z0-9_{(\[@*#?!$-]|\\\n"
"""Text that makes the `$` before it an expansion. A line continuation counts, because the shell joins lines first."""
_UNQUOTED = re.compile(
    r"(?P<plain>[^\\'\"$`|&;()<> \t\n*?\[\]{}~,]+)|(?P<live>[*?\[\]{}~,])"
    r"|(?P<joined>\\\n|\\(?=[^\x00-\x7f]))|\\(?P<escaped>.)"
    rf"|'(?P<single>[^']*)'|(?P<quote>\")|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|(?P<dollar>\$)(?!['\"]|{_EXPANDS})",
    re.DOTALL,
)
_QUOTED = re.compile(
    r"(?P<plain>[^\\\"$`]+)|(?P<joined>\\\n)|\\(?P<escaped>[$`\"\\])|(?P<backslash>\\)|(?P<quote>\")"
    rf"|(?P<dollar>\$)(?!{_EXPANDS})"
)
_EXPANSION = re.compile(rf"`|\$(?:{_EXPANDS})")
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(?:u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8}))|)"
)
_ANSI_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


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
    if lexer.read(start) < end:
        raise UnreadableError("an operator or a blank where a word was expected")
    return Word("".join(lexer.pieces), frozenset(lexer.live), tuple(lexer.variables), decoded(source[start:end]))


def end_of_word(source: str, start: int, limit: int, substitutions: Mapping[int, Substitution]) -> int:
    """Return the end of the word that begins at `start`: a blank, an operator or `limit`.

    Raises:
        UnreadableError: it cannot be read.
    """
    return _Lexer(source, limit, substitutions).read(start)


def check_expanding_text(source: str, start: int, end: int, substitutions: Mapping[int, Substitution]) -> None:
    """Raise `UnreadableError` if the shell would expand more in a here-document's text than these substitutions."""
    at = start
    seen = 0
    while at < end:
        if at in substitutions:
            at, seen = substitutions[at].end, seen + 1
        elif _EXPANSION.match(source, at, end):
            raise UnreadableError("an expansion that the grammar did not see")
        else:
            at += 2 if source[at] == "\\" else 1
    if seen != len(substitutions):
        raise UnreadableError("a substitution where there is only text")


def decoded(raw: str) -> str:
    """Return the text of bytes read as latin-1."""
    try:
        return raw.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError("an incomplete character") from error


class _Lexer:
    """Builds one word piece by piece."""

    def __init__(self, source: str, end: int, substitutions: Mapping[int, Substitution]) -> None:
        self._source = source
        self._end = end
        self._substitutions = substitutions
        self.pieces: list[str] = []
        self._length = 0
        self.live: list[int] = []
        self.variables: list[Variable] = []

    def read(self, start: int) -> int:
        """Read to the end, or to the first end of a word; return the offset."""
        at, is_quoted, filled = start, False, 0
        while at < self._end:
            if at in self._substitutions:
                at, filled = self._fill(self._substitutions[at], quoted=is_quoted), filled + 1
                continue
            found = (_QUOTED if is_quoted else _UNQUOTED).match(self._source, at, self._end)
            if found is None:
                if not is_quoted and self._source[at] in " \t\n|&;()<>":
                    break
                raise UnreadableError("a quote that is not closed, or an expansion that the grammar did not see")
            at = found.end()
            is_quoted = is_quoted != (found.lastgroup == "quote")
            self._add(found.lastgroup or "", found[found.lastgroup or 0])
        if at > self._end or is_quoted:
            raise UnreadableError("a quote or substitution that extends beyond its word")
        if filled != sum(1 for place in self._substitutions if start <= place < at):
            raise UnreadableError("a substitution where there is only text")
        return at

    def _add(self, kind: str, raw: str) -> None:
        if kind == "live":
            self.live.append(self._length)
        elif kind == "ansi":
            raw = _ANSI_ESCAPE.sub(_ansi_character, raw)
        elif kind in ("quote", "joined"):
            return
        piece = raw if raw.isascii() else decoded(raw)
        self.pieces.append(piece)
        self._length += len(piece)

    def _fill(self, hole: Substitution, *, quoted: bool) -> int:
        if hole.mark == VARIABLE:
            self.variables.append(Variable(hole.name, quoted and hole.name[-1] not in "@]"))
        elif hole.mark == UNKNOWN and not quoted:
            self.live.append(self._length)
        elif quoted and hole.mark != UNKNOWN:
            raise UnreadableError("a process substitution inside quotes")
        self.pieces.append(hole.mark)
        self._length += 1
        return hole.end


def _ansi_character(escape: re.Match[str]) -> str:
    letter, hexadecimal, octal, *unicode = escape.groups()
    if letter:
        return _ANSI_LETTERS.get(letter, letter)
    number = hexadecimal or unicode[0] or unicode[1]
    code = int(number, 16) if number else int(octal or "0", 8)
    if code == 0 or code > 0x7F:
        raise UnreadableError("an unknown escape in $'…', or a character that a word cannot contain")
    return chr(code)
