"""Reading of a command line into its simple commands, with words after quote removal, as bash reads them.

One pass that never fails: every text has commands, those inside substitutions, functions and loops included. Text that
bash may read differently, or whose words only the running shell knows, makes the line one that is not plain.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import dropwhile


def names(text: str) -> frozenset[str]:
    """Return the blank-separated names of a table."""
    return frozenset(text.split())


UNKNOWN = "\ud800"
"""Mark in a word for text that only the running shell knows, which may also be several words or none. No command can
contain it, so that every comparison with a literal text fails."""

MAX_LENGTH = 131_072
"""Characters of a text that are read; longer than any command line that Linux starts."""
MAX_COMMANDS = 1_000
MAX_DEPTH = 40
_MAX_LOOKAHEAD = 1_000_000
"""Characters that all searches for a closing bracket may look at."""
_MAX_HEREDOCS = 100
_MAX_GROUPS = 3

_RESERVED = names("! { } then do else elif if while until coproc in fi done esac")
"""Words before a command that are not its name."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)|\n")
_REDIRECT = re.compile(r"(?:\d+|\{\w+\})?(<<<|<<-?|<>|>>|>\||[<>]&|<(?!\()|>(?!\())|(&>>?)", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^]\s]*\])?\+?=", re.ASCII)
_EXPANDS = r"[A-Za-z0-9_{(\[@*#?!$-]|\\\n"
"""Text that makes the `$` before it an expansion."""
_UNQUOTED = re.compile(
    rf"(?P<plain>[^\\'\"$`|&;()<> \t\n]+)|(?P<joined>\\\n)|\\(?P<escaped>.)"
    rf"|'(?P<single>[^']*)'|(?P<quote>\$?\")|\$'(?P<ansi>(?:[^'\\]|\\.)*)'|(?P<dollar>\$)(?!'|{_EXPANDS})",
    re.DOTALL,
)
_QUOTED = re.compile(
    rf"(?P<plain>[^\\\"$`]+)|(?P<joined>\\\n)|\\(?P<escaped>[$`\"\\])|(?P<backslash>\\)|(?P<quote>\")"
    rf"|(?P<dollar>\$)(?!{_EXPANDS})"
)
_NAME = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
_DOLLAR = re.compile(rf"\$(?:{_EXPANDS})")
_NEXT_EXPANSION = re.compile(r"\\.|[$`]", re.DOTALL)
_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(?:u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8}))|)"
)
_ANSI_LETTERS = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_ANSI_CONTROL = re.compile(r"\\(?:c|[xuU](?![0-9A-Fa-f]))")
_BRACES = re.compile(r",|\.\.")
_TILDE = re.compile(r"(?:\A|[=:])~")
_QUOTED_LETTER = "\x01"


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    value: str
    """The word after quote removal, with `UNKNOWN` for what only the running shell knows."""
    is_literal: bool
    """True if the word is the text that the program receives."""
    text: str


@dataclass(slots=True)
class SimpleCommand:
    """One command with its words, without operators that join commands."""

    text: str = ""
    words: list[Word] = field(default_factory=list[Word])
    assignments: list[Word] = field(default_factory=list[Word])
    targets: list[Word] = field(default_factory=list[Word])
    """Files of its redirections, `/dev/null` not among them."""
    input: str | None = None
    """Text of a here-document or here-string; None without one."""
    operator: str = ""
    """Connection to the command before, as in `DecisionPart`."""

    @property
    def is_literal(self) -> bool:
        """True if it is only literal words."""
        words = (*self.words, *self.assignments)
        return bool(self.words) and all(word.is_literal for word in words) and not self.targets and self.input is None

    @property
    def argv(self) -> tuple[str, ...]:
        """Values of its words."""
        return tuple(word.value for word in self.words)


@dataclass(frozen=True, slots=True)
class Script:
    """All commands of a text."""

    commands: tuple[SimpleCommand, ...]
    is_plain: bool
    """True if the text is literal words joined by `&&`, `||`, `|`, `;` and line ends. Redirections among descriptors
    and to `/dev/null` count as literal."""
    is_complete: bool
    """False if the text has more commands than were read."""


@lru_cache(maxsize=16)
def read_script(text: str) -> Script:
    """Read a text; never fails and takes time in proportion to its length."""
    reader = _Reader(text[:MAX_LENGTH])
    reader.read()
    is_complete = reader.is_complete and len(text) <= MAX_LENGTH
    is_plain = reader.is_plain and is_complete and _CONTROL.search(text) is None
    return Script(tuple(reader.commands), is_plain, is_complete)


class _LimitError(Exception):
    """A limit is reached; the rest of the text is not read."""


class _Reader:
    """Reads one text. Its methods read a part from the current offset and move it."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._lookahead = _MAX_LOOKAHEAD
        self._heredocs: list[tuple[SimpleCommand, Word, bool]] = []
        """Here-documents whose text begins at the next line: command, delimiter, and True if tabs are removed."""
        self._count = 0
        self.commands: list[SimpleCommand] = []
        self.is_plain = True
        self.is_complete = True

    def read(self) -> None:
        """Read the whole text."""
        try:
            while self._at < len(self._text):
                self._statements("")
        except _LimitError:
            self.is_plain = self.is_complete = False

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _LimitError

    def _look(self, count: int) -> None:
        self._lookahead -= count
        if self._lookahead < 0:
            raise _LimitError

    def _token(self) -> str | None:
        """Skip blanks and a comment; return the operator there, "" for other text, None at the end."""
        text, gap = self._text, _BLANKS.match(self._text, self._at)
        self._at = gap.end() if gap else self._at
        if text.startswith("#", self._at) and (self._at == 0 or text[self._at - 1] in " \t\n;&|()"):
            end = text.find("\n", self._at)
            self._at = len(text) if end < 0 else end
        if self._at >= len(text):
            return None
        found = _OPERATOR.match(text, self._at)
        return found[0] if found else ""

    # --- statements ---

    def _statements(self, closing: str, operator: str = "") -> None:
        """Read commands up to a closing bracket, which is read, or to the end."""
        self._enter()
        open_brackets = 0
        while (token := self._token()) is not None:
            self._at += len(token)
            if token == ")" and open_brackets == 0 and closing:
                break
            if token == "(":
                if self._text.startswith("(", self._at) and self._skip_arithmetic(self._at + 1):
                    continue
                open_brackets += 1
            open_brackets -= token == ")" and open_brackets > 0
            if token in ("(", ")", "&", ";;", ";&", ";;&", "|&"):
                self.is_plain = False
            if token == "\n":
                self._skip_heredocs()
            if token:
                operator = operator if token in ("(", "\n") and operator else token.strip("\n()") or ";"
            else:
                self._command(operator)
                operator = ""
        self._depth -= 1

    def _command(self, operator: str) -> bool:
        """Read a simple command; True if it is the word `esac` that ends a `case`."""
        self._count += 1
        if self._count > MAX_COMMANDS:
            raise _LimitError
        start, place, command = self._at, len(self.commands), SimpleCommand(operator=operator)
        while self._token() == "":
            at = self._at
            redirect = _REDIRECT.match(self._text, at)
            if redirect:
                self._at = redirect.end()
                self._redirect(redirect[1] or redirect[2], command)
            else:
                word = self._word(is_name=not command.words)
                if not command.words and word.text in _RESERVED:
                    self.is_plain = self.is_plain and word.text == "!"
                    if word.text == "esac":
                        return True
                    continue
                is_value = not command.words and _ASSIGNMENT.match(word.text) is not None
                (command.assignments if is_value else command.words).append(word)
            if self._at == at:
                self._at += 1  # A character that no form explains: bash refuses the text.
                self.is_plain = False
            if len(command.words) == 1 and command.words[0].text in ("case", "[[", "function", "for", "select"):
                self._compound(command)
        command.text = self._text[start : self._at].rstrip(" \t\n\\")
        self.is_plain = self.is_plain and command.is_literal
        if command.words or command.assignments or command.targets:
            # The commands inside its words were added before it.
            self.commands.insert(place, command)
            self._add_groups(command)
        return False

    def _add_groups(self, command: SimpleCommand) -> None:
        """Add the commands after a brace among the words, as in `coproc name { rm x`."""
        groups = [at for at, word in enumerate(command.words) if word.text == "{"]
        for at in groups[:_MAX_GROUPS]:
            self.is_plain = False
            words = list(dropwhile(lambda word: _ASSIGNMENT.match(word.text), command.words[at + 1 :]))
            self.commands.append(SimpleCommand(command.text, words))

    def _compound(self, command: SimpleCommand) -> None:
        """Read the rest of a `case` or a condition, whose brackets and operators are not those of commands."""
        self.is_plain = False
        if command.words[0].text == "case":
            self._token()
            self._word()
            while self._token() == "\n":
                self._at += 1
            if self._text.startswith("in", self._at):
                self._case()
        elif command.words[0].text == "[[":
            while (token := self._token()) is not None and command.words[-1].text != "]]":
                self._at += len(token)
                at = self._at
                if not token:
                    command.words.append(self._word())
                    self._at += self._at == at

    def _case(self) -> None:
        """`case word in pattern | pattern) statements ;; esac`, from the `in`"""
        self._at += 2
        while (token := self._token()) is not None:
            if token in ("\n", "(", "|"):
                self._at += 1
            elif token == ")":
                self._at += 1
                self._enter()
                is_over = self._case_body()
                self._depth -= 1
                if is_over:
                    return
            elif token:
                return
            else:
                at, word = self._at, self._word()
                if word.text == "esac":
                    return
                self._at += self._at == at

    def _case_body(self) -> bool:
        """Read the statements of one pattern; True at `esac`."""
        operator, open_brackets = ";", 0
        while (token := self._token()) is not None:
            self._at += len(token)
            if token in (";;", ";&", ";;&"):
                return False
            if token == ")" and not open_brackets:
                self._at -= 1
                return True
            if token == "\n":
                self._skip_heredocs()
            open_brackets += {"(": 1, ")": -1}.get(token, 0)
            if token:
                operator = token
            elif self._command(operator):
                return True
        return True

    # --- redirections and here-documents ---

    def _redirect(self, operator: str, command: SimpleCommand) -> None:
        self._token()
        word = self._word()
        if operator == "<<<":
            command.input = word.value
        elif operator.startswith("<<"):
            self.is_plain = False
            self._heredocs.append((command, word, operator.endswith("-")))
            if len(self._heredocs) > _MAX_HEREDOCS:
                raise _LimitError
        elif operator in ("<&", ">&") and (word.value.removesuffix("-").isdecimal() or word.value == "-"):
            return
        elif word.value != "/dev/null" or not word.is_literal:
            command.targets.append(word)

    def _skip_heredocs(self) -> None:
        """Read the texts of the here-documents that begin at this line."""
        waiting, self._heredocs = self._heredocs, []
        for command, delimiter, has_tabs in waiting:
            self._count += 1
            tabs = r"\t*" if has_tabs else ""
            end = re.compile(rf"^{tabs}{re.escape(delimiter.value)}$", re.MULTILINE).search(self._text, self._at)
            self._look(len(self._text) - self._at)
            command.input = self._text[self._at : end.start() if end else len(self._text)]
            if delimiter.text == delimiter.value:
                self.commands += self._inside(command.input, is_quoted=True)
            self._at = min(end.end() + 1, len(self._text)) if end else len(self._text)

    # --- words ---

    def _word(self, *, is_name: bool = False) -> Word:
        """Return the word at the offset; it may be empty."""
        text, start, is_quoted = self._text, self._at, False
        value, mask, is_certain = list[str](), list[str](), True
        while self._at < len(text):
            found = (_QUOTED if is_quoted else _UNQUOTED).match(text, self._at)
            if found is None:
                letter = text[self._at]
                if letter in "$`" or (not is_quoted and letter in "<>" and text.startswith("(", self._at + 1)):
                    self._expansion(is_quoted=is_quoted)
                    value.append(UNKNOWN)
                    mask.append(_QUOTED_LETTER)
                    continue
                if letter == "(" and is_name and _ASSIGNMENT.fullmatch(text, start, self._at):
                    self._array()
                    return Word(text[start : self._at], False, text[start : self._at])
                if letter not in "'\"\\":
                    break
                self._at, is_certain = self._at + 1, False  # A quote that is not closed: bash refuses the text.
                continue
            self._at, kind = found.end(), found.lastgroup or ""
            if kind == "quote":
                is_quoted = not is_quoted
                is_certain = is_certain and found[0] == '"'
                mask.append(_QUOTED_LETTER)
            elif kind == "ansi":
                value.append(_ANSI_ESCAPE.sub(_ansi_character, found[kind]))
                is_certain = is_certain and _ANSI_CONTROL.search(found[kind]) is None
                mask.append(_QUOTED_LETTER)
            elif kind != "joined":
                value.append(found[kind])
                mask.append(found[kind] if kind == "plain" and not is_quoted else _QUOTED_LETTER)
        result, unquoted = "".join(value), "".join(mask)
        is_pattern = _is_pattern(unquoted)
        if is_name and is_pattern:
            result = UNKNOWN
        elif _has_braces(unquoted):
            result = f"{'' if is_name else result.partition('{')[0]}{UNKNOWN}"
        is_fixed = is_certain and not is_quoted and UNKNOWN not in result
        return Word(result, is_fixed and not is_pattern and not _TILDE.search(unquoted), text[start : self._at])

    def _array(self) -> None:
        """Skip `(a b)` after `name=`, with the commands in it."""
        self._at += 1
        while (token := self._token()) is not None and token != ")":
            at = self._at = self._at + len(token)
            if not token:
                self._word()
                self._at += self._at == at
        self._at += 1

    def _expansion(self, *, is_quoted: bool) -> None:
        """Read an expansion with the commands inside."""
        text, at = self._text, self._at
        self.is_plain = False
        if found := _NAME.match(text, at):
            self._at = found.end()
        elif text[at] == "`":
            self._backquoted(is_quoted=is_quoted)
        elif text.startswith("$((", at) and self._skip_arithmetic(at + 3):
            return
        elif text.startswith(("$(", "<(", ">("), at):
            self._at = at + 2
            outer, self._heredocs = self._heredocs, []
            self._statements(")", "$()")
            self._heredocs = outer
        elif text.startswith(("${", "$["), at):
            self._at = at + 2
            self._skip_to("}" if text[at + 1] == "{" else "]", is_quoted=is_quoted)
        else:
            self._at += 1

    def _backquoted(self, *, is_quoted: bool) -> None:
        inner, at, escaped = list[str](), self._at + 1, '`\\$"' if is_quoted else "`\\$"
        while at < len(self._text) and self._text[at] != "`":
            if self._text[at] == "\\" and self._text[at + 1 : at + 2] in tuple(escaped):
                at += 1
            inner.append(self._text[at : at + 1])
            at += 1
        self._at = at + 1
        self.commands += self._inside("".join(inner))

    def _inside(self, text: str, *, is_quoted: bool = False) -> list[SimpleCommand]:
        """Return the commands of an inner text, or only of the expansions in it."""
        self._enter()
        self._look(len(text))
        reader = _Reader(text, self._depth)
        reader._lookahead, reader._count = self._lookahead, self._count
        if is_quoted:
            reader._expansions()
        else:
            reader.read()
        self._lookahead, self._count = reader._lookahead, reader._count
        self._depth -= 1
        self.is_complete = self.is_complete and reader.is_complete
        return reader.commands

    def _expansions(self) -> None:
        """Read the expansions in the text of a here-document."""
        try:
            while (found := _NEXT_EXPANSION.search(self._text, self._at)) is not None:
                self._at = found.end() if found[0][0] == "\\" else found.start()
                if found[0][0] != "\\":
                    self._expansion(is_quoted=False)
        except _LimitError:
            self.is_complete = False

    # --- brackets ---

    def _skip_arithmetic(self, start: int) -> bool:
        """Skip `…))` from an offset if it ends so, with the commands inside; False if it is something else."""
        outer, place = self._at, len(self.commands)
        self.is_plain, self._at = False, start
        if self._skip_to(")") and self._text.startswith(")", self._at):
            self._at += 1
            return True
        self._at = outer
        del self.commands[place:]
        return False

    def _skip_to(self, closing: str, *, is_quoted: bool = False) -> bool:
        """Read text up to the bracket that closes it, with the expansions inside; False if none does."""
        self._enter()
        opening, open_brackets = {")": "(", "]": "["}.get(closing, ""), 1
        text, start = self._text, self._at
        while self._at < len(text) and open_brackets:
            letter = text[self._at]
            if letter == "`" or (letter == "$" and _DOLLAR.match(text, self._at)):
                self._expansion(is_quoted=True)
                continue
            if letter == '"' and closing != '"':
                self._at += 1
                self._skip_to('"')
                continue
            if letter == "'" and closing != '"':
                # Whether it quotes depends on the form of the expansion.
                self.is_complete = self.is_complete and closing == "}" and not is_quoted
                end = text.find("'", self._at + 1)
                self._at = end if end >= 0 else self._at
            open_brackets += (letter == opening) - (letter == closing)
            self._at += 2 if letter == "\\" else 1
        self._look(self._at - start)
        self._depth -= 1
        return not open_brackets


def _is_pattern(text: str) -> bool:
    """True if bash replaces a word by the names of files, of which this text is not quoted."""
    return "*" in text or "?" in text or "[" in text[: max(text.rfind("]"), 0)]


def _has_braces(text: str) -> bool:
    """True if bash makes several words of a word, of which this text is not quoted."""
    start, end = text.find("{"), text.rfind("}")
    return 0 <= start < end and _BRACES.search(text, start, end) is not None


def _ansi_character(escape: re.Match[str]) -> str:
    letter, hexadecimal, octal, *unicode = escape.groups()
    if letter:
        return _ANSI_LETTERS.get(letter, letter)
    number = hexadecimal or unicode[0] or unicode[1]
    if not number and not octal:
        return "\\"
    code = int(number, 16) if number else int(octal, 8)
    # NUL ends the word, and others depend on the locale.
    return chr(code) if 0 < code <= 0x7F else UNKNOWN
