"""Words as bash reads them: quote removal and substitutions, checked against the grammar's tree.

The grammar claims where a word begins and ends and where its substitutions are. This module trusts none of that: a
metacharacter, a quote or a `$` that the grammar did not account for makes the word unreadable. `$name` and the plain
forms of `${…}` only produce text; arithmetic, indirection and subscripts evaluate a variable's value, which can run
commands: each such form becomes an `Unsupported`. Source text is decoded as latin-1, so that one character is one byte
and offsets are byte offsets.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tree_sitter import Node

from .syntax import PIPE, SUM, UNKNOWN, VARIABLE, Arithmetic, Statement, Subshell, Unsupported, Variable, Word


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


Substitutions = dict[int, Substitution]
"""Substitutions by start offset."""
Visit = Callable[[Node], Statement]
"""Reads the commands inside a substitution."""

_NAME = r"(?:[A-Za-z_]\w*|[0-9]|[@*#?$!-])"
_SIMPLE = re.compile(rf"\$({_NAME})\Z")
_BRACED_NAME = re.compile(r"\$\{([A-Za-z_]\w*)\}\Z")
_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*\[@\])\}\Z", re.ASCII)
_PART = re.compile(r"\$\{([A-Za-z_]\w*(?:%%?|##?)[\w./*?@,+=: -]*)\}\Z", re.ASCII)
_TEXT = r"[\w./*?@,+=: ~^-]*"
_HARMLESS = re.compile(
    rf"\$\{{(?:#?{_NAME}|#?[A-Za-z_]\w*\[[@*\d]\d*\]|{_NAME}:?[-+?]{_TEXT}|{_NAME}(?:%%?|##?|//?|\^\^?|,,?){_TEXT}"
    r"|[A-Za-z_]\w*: ?-?\d+(?:: ?-?\d+)?)\}\Z"
)
_NUMBERS_ONLY = re.compile(r"\$\(\([\d\s+*/%()<>=!&|^~?:,-]*\)\)\Z")
_SUBSTITUTIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)

_INSIDE = re.compile(r"(?:\$|for\s*)?\(\((.*)\)\)[;\s]*\Z", re.DOTALL)
_EXPANDED = re.compile(r"(?<![\w$}])(?:\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}|\$\{?#\}?)(?![\w${])", re.ASCII)
_SUM = re.compile(r"[\w\s+*/%()<>=!&|^~?:;,-]*\Z", re.ASCII)
_NAMES = re.compile(r"(?<![\w])[A-Za-z_]\w*", re.ASCII)
_SET = re.compile(
    r"(?<!\w)([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII
)
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


def find_substitutions(node: Node, source: str, visit: Visit, nested: list[Statement]) -> Substitutions:
    """Return the outermost substitutions at or below `node`; add their commands to `nested`.

    Raises:
        UnreadableError: the grammar may have read a form of substitution wrongly.
    """
    substitutions: Substitutions = {}
    for found in _outermost(node):
        substitutions[found.start_byte] = _hole(found, source[found.start_byte : found.end_byte], visit, nested)
    return substitutions


def _outermost(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in _SUBSTITUTIONS:
            yield current
        elif current.child_count:
            stack.extend(reversed(current.children))


def _hole(node: Node, text: str, visit: Visit, nested: list[Statement]) -> Substitution:
    end = node.end_byte
    match node.type:
        case "simple_expansion":
            name = _SIMPLE.match(text)
            if name is None:
                raise UnreadableError("a variable of an unknown form")
            is_plain = name[1].isidentifier() or name[1] in "123456789@"
            return Substitution(end, VARIABLE, name[1]) if is_plain else Substitution(end, UNKNOWN)
        case "expansion":
            if name := _BRACED_NAME.match(text) or _ARRAY.match(text) or _PART.match(text):
                return Substitution(end, VARIABLE, name[1])
            if not (text.startswith("${") and text.endswith("}")):
                raise UnreadableError("a parameter expansion of an unknown form")
            if not _HARMLESS.match(text):
                _hidden(node, text, "this form of parameter expansion can run commands", visit, nested)
            return Substitution(end, UNKNOWN)
        case "arithmetic_expansion":
            if not _NUMBERS_ONLY.match(text):
                _hidden(node, text, "arithmetic with variables can run commands", visit, nested)
            return Substitution(end, VARIABLE, SUM)
        case "process_substitution":
            nested.append(visit(node))
            return Substitution(end, PIPE if text.startswith("<") else UNKNOWN)
        case _:
            _check_command_substitution(text)
            # The bracket keeps the name apart from the names of variables; the offset makes it unique.
            inside, output = visit(node), f"({node.start_byte}"
            nested.append(replace(inside, name=output) if isinstance(inside, Subshell) else inside)
            return Substitution(end, VARIABLE, output)


def _hidden(node: Node, text: str, reason: str, visit: Visit, nested: list[Statement]) -> None:
    """Add an `Unsupported` for a form that evaluates variables, and the commands that are visible in it."""
    stack = list(reversed(node.children))
    while stack:
        current = stack.pop()
        if current.type in ("command_substitution", "process_substitution"):
            nested.append(visit(current))
        else:
            stack.extend(reversed(current.children))
    shown = text.encode("latin-1").decode("utf-8", "replace")
    nested.append(Unsupported(shown, reason, unreadable=False, arithmetic=arithmetic_in(text)))


def _check_command_substitution(text: str) -> None:
    if text.startswith("`"):
        if "\\" in text or '"' in text or not text.endswith("`") or len(text) < 2:
            raise UnreadableError("backquotes with quoting inside")
    elif text.startswith("$((") or not (text.startswith("$(") and text.endswith(")")):
        raise UnreadableError("a command substitution of an unknown form")


def arithmetic_in(text: str) -> Arithmetic | None:
    """Return the variables of `$((…))`, `((…))` or `for ((…))`, or None if it is more than plain arithmetic."""
    found = _INSIDE.match(text)
    if found is None:
        return None
    inside = _EXPANDED.sub(lambda found: found[1] or found[2] or "0", found.group(1))
    if not _SUM.match(inside):
        return None
    names = frozenset(_NAMES.findall(inside))
    return Arithmetic(names, frozenset(first or second for first, second in _SET.findall(inside)))
