"""Words as bash reads them: quote removal, and the expansions inside.

`$name` and the plain forms of `${…}` only produce text. Arithmetic, indirection and subscripts evaluate a variable's
value, which can run commands: each such form becomes an `Unsupported`.
"""

import re
from collections.abc import Callable

from .syntax import (
    PIPE,
    SUM,
    UNKNOWN,
    VARIABLE,
    Arithmetic,
    Statement,
    Subshell,
    UnreadableError,
    Unsupported,
    Variable,
    Word,
)

MAX_DEPTH = 40
"""Maximum nesting of statements and expansions."""

Visit = Callable[[int, str], tuple[Statement, int]]
"""Reads commands from an offset up to a closing token; returns them and the offset after it."""

_NAME = r"(?:[A-Za-z_]\w*|[0-9]|[@*#?$!-])"
_SIMPLE = re.compile(rf"\$({_NAME})", re.ASCII)
_TEXT = r"[\w./*?@,+=: ~^-]*"
_NAMED = re.compile(r"\$\{([A-Za-z_]\w*(?:\[@\]|(?:%%?|##?)[\w./*?@,+=: -]*)?)\}", re.ASCII)
"""`${name}`, all elements of an array, and a value without a prefix or suffix, whose values the evaluator follows."""
_HARMLESS = re.compile(
    rf"\$\{{(?:#?{_NAME}|#?[A-Za-z_]\w*\[[@*\d]\d*\]|{_NAME}:?[-+?]{_TEXT}|{_NAME}(?:%%?|##?|//?|\^\^?|,,?){_TEXT}"
    r"|[A-Za-z_]\w*: ?-?\d+(?:: ?-?\d+)?)\}",
    re.ASCII,
)
_NUMBERS_ONLY = re.compile(r"\$\(\([\d\s+*/%()<>=!&|^~?:,-]*\)\)\Z", re.ASCII)

_EXPANDS = r"[A-Za-z0-9_{(\[@*#?!$-]|\\\n"
"""Text that makes the `$` before it an expansion. A line continuation counts, because the shell joins lines first."""
_UNQUOTED = re.compile(
    r"(?P<plain>[^\\'\"$`|&;()<> \t\n*?\[\]{}~,]+)|(?P<live>[*?\[\]{}~,])|\\(?P<escaped>[^\n])"
    rf"|'(?P<single>[^']*)'|(?P<quote>\")|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|(?P<dollar>\$)(?!['\"]|{_EXPANDS})",
    re.DOTALL,
)
_QUOTED = re.compile(
    rf"(?P<plain>[^\\\"$`]+)|\\\n|\\(?P<escaped>[$`\"\\])|(?P<backslash>\\)|(?P<quote>\")|(?P<dollar>\$)(?!{_EXPANDS})"
)
_CONTINUES = re.compile(r"(?:\\\n)+(?![ \t\n|&;()]|\Z)")
"""Line continuations after a word, if more of the word or a redirection of its number may follow."""
_EXPANSION = re.compile(rf"`|\$(?:{_EXPANDS})")
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(?:u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8}))|)"
)
_ANSI_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))

_INSIDE = re.compile(r"(?:\$|for\s*)?\(\((.*)\)\)[;\s]*\Z", re.DOTALL)
_EXPANDED = re.compile(r"(?<![\w$}])(?:\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}|\$\{?#\}?)(?![\w${])", re.ASCII)
_SUM = re.compile(r"[\w\s+*/%()<>=!&|^~?:;,-]*\Z", re.ASCII)
_NAMES = re.compile(r"(?<![\w])[A-Za-z_]\w*", re.ASCII)
_SET = re.compile(
    r"(?<!\w)([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII
)


class WordReader:
    """Reads the words of one text. Its methods raise `UnreadableError` for text of which bash's reading is uncertain.

    Each takes the list to which it adds the statements inside what it reads.
    """

    def __init__(self, text: str, visit: Visit) -> None:
        self._text = text
        self._visit = visit
        self._depth = 0
        self.backquote = -1
        """Offset of the backquote that ends the substitution being read; -1 outside one."""

    def word(self, start: int, nested: list[Statement]) -> tuple[Word, int]:
        """Return the word that begins at an offset and its end, a blank or an operator; it may be empty."""
        text, at, is_quoted = self._text, start, False
        value, live, variables = "", list[int](), list[Variable]()
        while at < len(text) and at != self.backquote:
            found = (_QUOTED if is_quoted else _UNQUOTED).match(text, at)
            if found is None:
                if not (text[at] in "$`" or (not is_quoted and text.startswith(("<(", ">("), at))):
                    break
                end, mark, name = self._expansion(at, nested)
                if mark == VARIABLE:
                    variables.append(Variable(name, is_quoted and name[-1] not in "@]"))
                elif mark == UNKNOWN and not is_quoted:
                    live.append(len(value))
                value += mark
                at = end
                continue
            at, kind = found.end(), found.lastgroup
            is_quoted = is_quoted != (kind == "quote")
            if kind == "live":
                live.append(len(value))
            if kind is not None and kind != "quote":
                value += _ANSI_ESCAPE.sub(_ansi_character, found[kind]) if kind == "ansi" else found[kind]
        if is_quoted or (text[at : at + 1] or " ") not in " \t\n|&;()<>\\`":
            raise UnreadableError("a quote that is not closed")
        if _CONTINUES.match(text, at):
            raise UnreadableError("a word that continues on the next line")
        return Word(value, frozenset(live), tuple(variables), text[start:at]), at

    def find_expansions(self, start: int, end: int, nested: list[Statement]) -> None:
        """Read the expansions of a here-document's text."""
        at = start
        while at < end:
            if _EXPANSION.match(self._text, at):
                at = self._expansion(at, nested)[0]
            else:
                at += 2 if self._text[at] == "\\" else 1
        if at > end:
            raise UnreadableError("an expansion that extends beyond its here-document")

    def end_of(self, at: int, closing: str, nested: list[Statement]) -> int:
        """Return the offset after the bracket that closes an expression begun before `at`."""
        text, opening, open_brackets = self._text, {")": "(", "]": "["}.get(closing), 1
        while at < len(text):
            letter = text[at]
            if letter == closing:
                open_brackets -= 1
                if not open_brackets:
                    return at + 1
            open_brackets += letter == opening
            if letter == "'" and closing != '"':
                # Inside `${…}`, it is a quote only if the expansion is not in double quotes.
                at = text.find("'", at + 1) if closing == "]" else -1
                if at < 0:
                    break
            is_input = closing == "}" and text.startswith(("<(", ">("), at)
            if is_input or _EXPANSION.match(text, at):
                at = self._expansion(at, nested)[0]
            elif letter == '"' or text.startswith("\\\n", at):
                at = self.end_of(at + 1, '"', nested) if letter == '"' else len(text)
            else:
                at += 2 if letter == "\\" else 1
        raise UnreadableError(f"an expression without its {closing}")

    def end_of_arithmetic(self, at: int, nested: list[Statement]) -> int:
        """Return the offset after `((…))`; `at` is that of its first parenthesis."""
        end = self.end_of(at + 2, ")", nested)
        if not self._text.startswith(")", end):
            raise UnreadableError("`((`, which may be arithmetic or two subshells")
        return end + 1

    def _expansion(self, at: int, nested: list[Statement]) -> tuple[int, str, str]:
        """Return the end of an expansion, its mark and, for `VARIABLE`, its name."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError("the command is nested too deeply")
        found = self._by_form(at, nested)
        self._depth -= 1
        return found

    def _by_form(self, at: int, nested: list[Statement]) -> tuple[int, str, str]:
        text = self._text
        if found := _SIMPLE.match(text, at):
            is_plain = found[1].isidentifier() or found[1] in "123456789@"
            return (found.end(), VARIABLE, found[1]) if is_plain else (found.end(), UNKNOWN, "")
        if found := _NAMED.match(text, at):
            return found.end(), VARIABLE, found[1]
        if found := _HARMLESS.match(text, at):
            return found.end(), UNKNOWN, ""
        if text.startswith("${", at):
            end = self.end_of(at + 2, "}", nested)
            reason = "this form of parameter expansion can run commands"
            nested.append(Unsupported(text[at:end], reason, unreadable=False))
            return end, UNKNOWN, ""
        if text.startswith(("$((", "$["), at):
            end = self.end_of(at + 2, "]", nested) if text[at + 1] == "[" else self.end_of_arithmetic(at + 1, nested)
            if not _NUMBERS_ONLY.match(text[at:end]):
                nested.append(unsupported_arithmetic(text[at:end]))
            return end, VARIABLE, SUM
        if text.startswith(("<(", ">("), at):
            inside, end = self._visit(at + 2, ")")
            nested.append(Subshell(inside))
            return end, PIPE if text[at] == "<" else UNKNOWN, ""
        if text.startswith("$(", at):
            inside, end = self._visit(at + 2, ")")
        elif text[at] == "`":
            inside, end = self._backquoted(at + 1)
        else:
            raise UnreadableError("an expansion of an unknown form")
        # The bracket keeps the name apart from the names of variables; the offset makes it unique.
        output = f"({at}"
        nested.append(Subshell(inside, output))
        return end, VARIABLE, output

    def _backquoted(self, start: int) -> tuple[Statement, int]:
        closing = self._text.find("`", start)
        if closing < 0 or not {"\\", '"'}.isdisjoint(self._text[start:closing]):
            raise UnreadableError("backquotes with quoting inside")
        self.backquote = closing
        inside, end = self._visit(start, "`")
        if end != closing + 1:
            raise UnreadableError("backquotes that end elsewhere than it seems")
        self.backquote = -1
        return inside, end


def unsupported_arithmetic(text: str) -> Unsupported:
    """Return `((…))`, `$((…))` or the head of a loop as a part that is not a command, but may run one."""
    return Unsupported(text, "arithmetic with variables can run commands", False, arithmetic_in(text))


def _ansi_character(escape: re.Match[str]) -> str:
    letter, hexadecimal, octal, *unicode = escape.groups()
    if letter:
        return _ANSI_LETTERS.get(letter, letter)
    number = hexadecimal or unicode[0] or unicode[1]
    code = int(number, 16) if number else int(octal or "0", 8)
    if code == 0 or code > 0x7F:
        raise UnreadableError("an unknown escape in $'…', or a character that a word cannot contain")
    return chr(code)


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
