"""Reading of a command as bash reads it, by recursive descent.

What bash may read differently from this module is refused: the text becomes unreadable, and only the user may allow it.
A second grammar must find the same commands.
"""

import re
from functools import lru_cache

from .grammar import check_commands, check_text, fallback_commands
from .syntax import (
    Assignment,
    Branches,
    Conditional,
    Definition,
    ForEach,
    Pipeline,
    Redirect,
    Sequence,
    SimpleCommand,
    Statement,
    Subshell,
    UnreadableError,
    Unsupported,
    Word,
    names,
)
from .words import MAX_DEPTH, WordReader, unsupported_arithmetic

MAX_COMMANDS = 1_000
"""Maximum number of simple commands."""
MAX_REDIRECTS = 100
"""Maximum number of redirections of one command."""
RESERVED = names("! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while")
"""Words that bash treats as grammar in place of a command's name."""

_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
_END = r"(?=[ \t\n;|&()<>`]|\Z)"
_KEYWORD = re.compile(rf"[{{!](?=[ \t\n])|(?:{'|'.join(map(re.escape, RESERVED - {'{', '!'}))}|\[){_END}")
_OPERATOR = re.compile(r"&&|\|\||;;&|;;|;&|;|\|&|\||&(?!>)|\(|\)|\n|`")
_REDIRECT = re.compile(rf"(?:[0-9]*(<<<|<<-?|>>|>\||[<>]&-{_END}|[<>]&|<(?![(>])|>(?!\()))|(&>>?)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?=|\[)", re.ASCII)
_DESCRIPTOR = re.compile(r"\{[A-Za-z_]\w*\}\Z", re.ASCII)
_FUNCTION = re.compile(r"(?:function[ \t]+([\w.:@+-]+)(?:[ \t]*\([ \t]*\))?|([\w.:@+-]+)[ \t]*\([ \t]*\))", re.ASCII)
_FOR = re.compile(rf"for[ \t]+(?:([A-Za-z_]\w*){_END}|(?=\(\())", re.ASCII)
_AFTER_ARRAY = re.compile(r"[ \t\n;&|)]|\Z")
_COMPOUND = names("( { [ [[ if while until for case")
_OPERATOR_LETTERS = tuple("&|;<>()")
WORD = "a word"
"""Token of all other text."""
_OWN_NAMES = names("cd pushd popd command builtin exec eval source . env test [ time timeout nice xargs")
"""Functions of these names would break assumptions of this package."""


@lru_cache(maxsize=4)
def read_script(text: str) -> Statement:
    """Parse a command; never raises. Unreadable text becomes an `Unsupported` and rough commands.

    The cache matters: a question parses its command about ten times, for the verdict and for each possible grant.
    """
    try:
        check_text(text)
        reader = _ScriptReader(text)
        script = reader.read()
        check_commands(text, reader.starts)
        return script
    except UnicodeEncodeError:
        return Unsupported("", "the command is not valid Unicode", unreadable=True)
    except UnreadableError as error:
        return Sequence((Unsupported(text, str(error), unreadable=True), *fallback_commands(text)))


def is_plain(text: str) -> bool:
    """True if a text is only literal words, joined by `&&`, `||`, `|`, `;` or line ends.

    Redirections among descriptors and to `/dev/null` count as literal.
    """
    waiting, found = [read_script(text)], False
    while waiting:
        match statement := waiting.pop():
            case Sequence() | Pipeline():
                waiting += statement.parts
            case Conditional():
                waiting += [statement.first, *(part for _, part in statement.rest)]
            case SimpleCommand():
                words_only = not (statement.assignments or statement.nested) and statement.heredoc is None
                is_quiet = all(one.names_descriptor or one.target.value == "/dev/null" for one in statement.redirects)
                if not (words_only and is_quiet and all(word.is_literal for word in statement.words)):
                    return False
                found = True
            case _:
                return False
    return found


class _ScriptReader:
    """Reads one text from its begin to its end. Its methods read a part from the current offset and move it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._words = WordReader(text, self._substitution)
        self._heredocs: dict[int, int] = {}
        """Here-documents whose line is not read yet: the offset of its end, and that of the text's end."""
        self._depth = 0
        self._count = 0
        self.starts: set[int] = set()
        """Offsets of the commands' names."""

    def read(self) -> Statement:
        """Return the statements of the whole text."""
        script = self._statements("")
        if self._heredocs:
            raise UnreadableError("a here-document with an unclear end")
        return script

    def _operator(self) -> str:
        """Skip blanks and a comment; return the operator there, `WORD` for other text, empty at the end."""
        text, start = self._text, self._at
        gap = _BLANKS.match(text, start)
        self._at = at = gap.end() if gap else start
        is_joined = at > start and not text[start:at].replace("\\\n", "")
        if is_joined and text[start - 1 : start] in _OPERATOR_LETTERS and text[at : at + 1] in _OPERATOR_LETTERS:
            raise UnreadableError("an operator that continues on the next line")
        if text.startswith("#", at):
            end = text.find("\n", at)
            self._at = at = len(text) if end < 0 else end
            if text[at - 1] == "\\":
                raise UnreadableError("something that only looks like a comment")
        found = _OPERATOR.match(text, at)
        if found and (found[0] != "`" or at == self._words.backquote):
            return found[0]
        return WORD if at < len(text) else ""

    def _token(self) -> str:
        """Return the operator or reserved word after blanks, as `_operator`."""
        operator = self._operator()
        found = _KEYWORD.match(self._text, self._at) if operator == WORD else None
        if found and (found.end() == self._words.backquote or not self._text.startswith("`", found.end())):
            return found[0]
        return operator

    def _next_line(self) -> str:
        """Skip line ends, and the here-documents after them; return the token there."""
        while (token := self._token()) == "\n":
            self._at = self._heredocs.pop(self._at, self._at + 1)
        return token

    def _take(self, token: str) -> None:
        self._at += len(token)

    def _expect(self, token: str) -> None:
        if self._next_line() != token:
            raise UnreadableError(f"no {token!r} where bash needs one")
        self._at += len(token)

    def _word(self, nested: list[Statement]) -> Word:
        start = self._at
        word, self._at = self._words.word(start, nested)
        if self._at == start or word.text.startswith("#"):
            raise UnreadableError("an operator or a comment where a word was expected")
        return word

    # --- lists ---

    def _statements(self, *ends: str) -> Sequence:
        """Return statements up to one of these tokens, which is not read."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError("the command is nested too deeply")
        parts: list[Statement] = []
        while self._next_line() not in ends:
            part = self._chain()
            operator = self._token()
            if operator in (";", "&"):
                self._at += 1
            elif operator != "\n" and operator not in ends:
                raise UnreadableError("two commands without a separator")
            parts.append(Subshell(part) if operator == "&" else part)  # A background job runs in a subshell.
        self._depth -= 1
        return Sequence(tuple(parts))

    def _until(self, *ends: str) -> tuple[tuple[Statement, ...], str]:
        """Return the statements up to one of these tokens, at least one, and this token."""
        parts, end = self._statements(*ends).parts, self._token()
        if not parts:
            raise UnreadableError(f"nothing before {end!r}")
        self._take(end)
        return parts, end

    def _chain(self) -> Statement:
        """`a && b || c`"""
        first, rest = self._pipeline(), list[tuple[str, Statement]]()
        while (operator := self._token()) in ("&&", "||"):
            self._take(operator)
            self._next_line()
            rest.append((operator, self._pipeline()))
        return Conditional(first, tuple(rest)) if rest else first

    def _pipeline(self) -> Statement:
        """`! a | b`"""
        is_negated = self._token() == "!"
        self._take("!" if is_negated else "")
        parts = [self._command()]
        while (operator := self._token()) in ("|", "|&"):
            self._take(operator)
            self._next_line()
            parts.append(self._command())
        found = parts[0] if len(parts) == 1 else Pipeline(tuple(parts))
        return Sequence((found,)) if is_negated else found

    def _command(self) -> Statement:
        token = self._token()
        if token in _COMPOUND:
            return self._with_redirects(self._compound(token))
        if token in ("function", WORD) and (found := _FUNCTION.match(self._text, self._at)):
            return self._function(found[1] or found[2], found.end())
        if token != WORD:
            raise UnreadableError(f"{token!r} where a command was expected" if token else "an unfinished command")
        return self._simple()

    # --- compound commands ---

    def _compound(self, token: str) -> Statement:
        match token:
            case "(" if self._text.startswith("((", self._at):
                start, nested = self._at, list[Statement]()
                self._at = self._words.end_of_arithmetic(start, nested)
                return Sequence((*nested, unsupported_arithmetic(self._text[start : self._at])))
            case "(":
                self._take(token)
                return Subshell(Sequence(self._until(")")[0]))
            case "{":
                self._take(token)
                return Branches(self._until("}")[0])
            case "while" | "until":
                self._take(token)
                head, _ = self._until("do")
                return Branches((Sequence((*head, self._do_group())),), repeats=True)
            case "if":
                return self._if()
            case "for":
                return self._for()
            case "case":
                return self._case()
            case _:
                return self._condition("]]" if token == "[[" else "]")

    def _do_group(self) -> Statement:
        """Return the statements of a loop, whose `do` was read."""
        return Branches((Sequence(self._until("done")[0]),))

    def _if(self) -> Statement:
        """`if a; then b; elif c; then d; else e; fi`"""
        self._take("if")
        parts: list[Statement] = []
        end = "elif"
        while end != "fi":
            head = self._until("then")[0] if end == "elif" else ()
            body, end = self._until("elif", "else", "fi") if end == "elif" else self._until("fi")
            parts.append(Sequence((*head, *body)))
        return Branches(tuple(parts))

    def _for(self) -> Statement:
        """`for x in words; do …; done` or `for ((…)); do …; done`"""
        start, nested, words = self._at, list[Statement](), None
        found = _FOR.match(self._text, start)
        if found is None:
            raise UnreadableError("a loop of an unknown form")
        self._at = found.end()
        if not found[1]:
            self._at = self._words.end_of_arithmetic(self._at, nested)
        elif self._token() == "in":
            self._take("in")
            words = list[Word]()
            while self._operator() == WORD:
                words.append(self._word(nested))
        if self._token() == ";":
            self._take(";")
        self._next_line()
        head = self._text[start : self._at]
        self._expect("do")
        body = self._do_group()
        if not found[1]:
            return Branches((Sequence((*nested, unsupported_arithmetic(head.strip()))), body), repeats=True)
        values = None if words is None else tuple(words)
        return ForEach(found[1], values, body, head.rstrip("; \t\n"), tuple(nested))

    def _case(self) -> Statement:
        """`case word in pattern | pattern) statements ;; esac`"""
        parts: list[Statement] = []
        self._take("case")
        self._operator()
        self._word(parts)
        self._expect("in")
        while (token := self._next_line()) != "esac":
            if token == "(":
                self._take(token)
            self._operator()
            self._word(parts)
            while self._operator() == "|":
                self._take("|")
                self._operator()
                self._word(parts)
            self._expect(")")
            parts.append(self._statements(";;", ";&", ";;&", "esac"))
            if (token := self._token()) != "esac":
                self._take(token)
        self._take("esac")
        return Branches(tuple(parts))

    def _function(self, name: str, end: int) -> Statement:
        if name in _OWN_NAMES or name in RESERVED:
            raise UnreadableError(f"a function called {name}")
        start, self._at = self._at, end
        token = self._next_line()
        if token not in _COMPOUND:
            raise UnreadableError("a function without a body")
        text = self._text[start : self._at].strip()
        return Definition(name, text, self._with_redirects(self._compound(token)))

    def _condition(self, closing: str) -> SimpleCommand:
        """`[ … ]` or `[[ … ]]`, where operators are words"""
        start, nested, words = self._begin_command(), list[Statement](), list[Word]()
        text = self._text
        while not words or words[-1].value != closing:
            letter = text[self._at : self._at + 1]
            if letter and letter in "&|()<>" and closing == "]]" and not text.startswith(("<(", ">("), self._at):
                words.append(Word(letter))
                self._at += 1
            else:
                words.append(self._word(nested))
            gap = _BLANKS.match(text, self._at) if words[-1].value != closing else None
            self._at = gap.end() if gap else self._at
        if words[-1].text != closing:
            raise UnreadableError("a condition that ends more than once")
        self.starts.add(start)
        return SimpleCommand(text[start : self._at], tuple(words), nested=tuple(nested))

    def _with_redirects(self, statement: Statement) -> Statement:
        """Return a compound command with redirections of its own."""
        if self._operator() != WORD:
            return statement
        redirections = self._simple()
        if redirections.words or redirections.assignments:
            raise UnreadableError("words after a compound command")
        return Sequence((statement, redirections))

    # --- simple commands ---

    def _begin_command(self) -> int:
        self._count += 1
        if self._count > MAX_COMMANDS:
            raise UnreadableError(f"more than {MAX_COMMANDS} commands at once")
        return self._at

    def _simple(self) -> SimpleCommand:
        start = end = self._begin_command()
        words, assignments, redirects, nested = list[Word](), list[Assignment](), list[Redirect](), list[Statement]()
        heredoc: str | None = None
        while self._operator() == WORD:
            at = self._at
            if found := _REDIRECT.match(self._text, at):
                operator = found[1] or found[2]
                self._at = found.end()
                if not operator.startswith("<<"):
                    redirects.append(self._redirect(operator, at, nested))
                elif heredoc is None:
                    heredoc = self._heredoc(operator, nested)
                else:
                    raise UnreadableError("more than one here-document")
            elif not words and (assigned := self._assignment(nested)):
                assignments.append(assigned)
            else:
                words.append(self._word(nested))
                if len(words) == 1:
                    self.starts.add(at)
                if _DESCRIPTOR.match(words[-1].text) and self._text.startswith(("<", ">"), self._at):
                    raise UnreadableError("a file descriptor with a name")
            end = self._at
        _check_reserved([word.text for word in words])
        if words and any(one.items is not None for one in assignments):
            raise UnreadableError("an array before a command")
        if len(redirects) > MAX_REDIRECTS:
            raise UnreadableError(f"more than {MAX_REDIRECTS} redirections of one command")
        self._at = end
        text = self._text[start:end]
        return SimpleCommand(text, tuple(words), tuple(assignments), tuple(redirects), heredoc, tuple(nested))

    def _redirect(self, operator: str, start: int, nested: list[Statement]) -> Redirect:
        target = Word("-")
        if not operator.endswith("-"):
            self._operator()
            target = self._word(nested)
        return Redirect(operator, target, self._text[start : self._at])

    def _heredoc(self, operator: str, nested: list[Statement]) -> str:
        """Return the text of a here-document or here-string, whose operator was read.

        The lines of a here-document are skipped where the end of this line is read. If a quote or a substitution reads
        it instead, they never are, and the whole text is unreadable.
        """
        self._operator()
        if operator == "<<<":
            return self._word(nested).value
        delimiter = self._word(nested)
        line_end = self._text.find("\n", self._at)
        is_clear = delimiter.value and delimiter.is_fixed and "\n" not in delimiter.text
        if not is_clear or line_end < 0 or line_end in self._heredocs:
            raise UnreadableError("a here-document with an unclear delimiter")
        tabs = r"\t*" if operator == "<<-" else ""
        last = re.compile(rf"^{tabs}{re.escape(delimiter.value)}$", re.MULTILINE).search(self._text, line_end + 1)
        if last is None:
            raise UnreadableError("a here-document that does not end")
        body = self._text[line_end + 1 : last.start()]
        if delimiter.text == delimiter.value:
            if "\\\n" in body:
                raise UnreadableError("a here-document with joined lines")
            self._words.find_expansions(line_end + 1, last.start(), nested)
        self._heredocs[line_end] = last.end()
        return body

    def _assignment(self, nested: list[Statement]) -> Assignment | None:
        """Return the assignment here, or None for another word."""
        text, start = self._text, self._at
        found = _ASSIGNMENT.match(text, start)
        if found is None:
            return None
        at, inside, items, value = found.end(), list[Statement](), None, Word("")
        is_element = found[2] == "["
        if is_element:
            at = self._words.end_of(at, "]", inside)
            at += text.startswith("+", at) + 1
            if not text.startswith("=", at - 1):
                raise UnreadableError("a subscript without a value")
        if text.startswith("(", at):
            at, items = self._array(at + 1, inside)
        else:
            value, at = self._words.word(at, inside)
        nested += inside
        self._at = at
        written = text[start:at]
        if is_element or (items is not None and not (found[2] == "=" and all(map(_is_plain_item, items)))):
            nested.append(Unsupported(written, "subscripts of arrays can run commands", unreadable=False))
            return Assignment(found[1], Word(""), written)
        return Assignment(found[1], value, written, items)

    def _array(self, at: int, nested: list[Statement]) -> tuple[int, tuple[Word, ...]]:
        """Return the end of `(a b)` and its words."""
        items: list[Word] = []
        self._at = at
        while self._operator() != ")":
            if self._text.startswith("\n", self._at):
                self._at += 1
            else:
                items.append(self._word(nested))
        end = self._at + 1
        if not _AFTER_ARRAY.match(self._text, end):
            raise UnreadableError("text after an array")
        return end, tuple(items)

    def _substitution(self, start: int, closing: str) -> tuple[Statement, int]:
        outer, waiting = self._at, len(self._heredocs)
        self._at = start
        body = self._statements(closing)
        end, self._at = self._at + 1, outer
        if len(self._heredocs) != waiting:
            raise UnreadableError("a here-document that a substitution does not contain")
        return body, end


def _is_plain_item(word: Word) -> bool:
    return word.is_literal and not word.text.startswith("[")


def _check_reserved(words: list[str]) -> None:
    """Refuse grammar words in place of a name, also after `time`, which takes any command."""
    behind = iter(words[1:] if words[:1] == ["time"] else [])
    for word in (*words[:1], next((word for word in behind if word not in ("-p", "--")), "")):
        if word in RESERVED:
            raise UnreadableError(f"{word!r} where a command's name was expected")
