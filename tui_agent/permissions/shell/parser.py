"""Conversion of the grammar's tree to statements, with checks; a tree that does not fit its text is unreadable.

The tree is trusted only if its tokens account for every byte. Constructs that the grammar is known to read differently
from bash (`time {`, `coproc`, conditions inside pipelines, several here-documents on a line) are refused.
"""

import re
from collections.abc import Iterator
from collections.abc import Sequence as Series
from functools import lru_cache
from typing import TypeAlias

from tree_sitter import Node

from .grammar import BLANKS, STRUCTURE, CommandText, parse
from .simple_commands import CommandReader
from .syntax import (
    UNKNOWN,
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
    Unsupported,
    Word,
    names,
)
from .words import UnreadableError, arithmetic_in, find_substitutions

MAX_DEPTH = 40
"""Maximum nesting of statements."""
MAX_COMMANDS = 1_000
"""Maximum number of simple commands."""

_Link: TypeAlias = tuple[str, Node, tuple[Node, ...]]
"""The operator before a command, the command, and the redirections after it."""

_CLAUSES = frozenset(("elif_clause", "else_clause", "do_group"))
_OWN_NAMES = names("cd pushd popd command builtin exec eval source . env test [ time timeout nice xargs")
"""Functions of these names would break assumptions of this package."""


@lru_cache(maxsize=4)
def read_script(text: str) -> Statement:
    """Parse a command; never raises. Unreadable text becomes an `Unsupported` and rough commands.

    The cache matters: a question parses its command about ten times, for the verdict and for each possible grant.
    """
    try:
        source = text.encode("utf-8")
    except UnicodeEncodeError:
        return Unsupported("", "the command is not valid Unicode", unreadable=True)
    try:
        return _ScriptReader(source).read(parse(source))
    except UnreadableError as error:
        return Sequence((Unsupported(text, str(error), unreadable=True), *fallback_commands(text)))


class _ScriptReader:
    """Walks the tree of one command."""

    def __init__(self, source: bytes) -> None:
        self._text = CommandText(source)
        self._commands = CommandReader(self._text, self._statement)
        self._depth = 0
        self._count = 0

    def read(self, root: Node) -> Statement:
        """Return the statements of the whole text."""
        return self._sequence(root.children, 0, len(self._text.source))

    def _statement(self, node: Node, tail: tuple[Node, ...] = ()) -> Statement:
        """Return one statement; `tail` are redirections (and the nodes after them) of its last command."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableError("the command is nested too deeply")
        statement = self._by_type(node, tail)
        self._depth -= 1
        return statement

    def _by_type(self, node: Node, tail: tuple[Node, ...]) -> Statement:
        match node.type:
            case "command" | "declaration_command" | "unset_command" | "variable_assignments":
                return self._simple((*node.children, *tail))
            case "variable_assignment":
                return self._simple((node, *tail))
            case "redirected_statement" if node.child_by_field_name("body") is None:
                return self._simple((*node.children, *tail))
            case "redirected_statement" | "list" | "pipeline":
                return self._chain(node, tail)
            case "negated_command":
                return self._negated(node, tail)
            case "test_command":
                self._count_command()
                return self._with_tail(node, self._commands.condition(node), tail)
            case _:
                return self._with_tail(node, self._compound(node), tail)

    def _compound(self, node: Node) -> Statement:
        match node.type:
            case "subshell" | "process_substitution" | "command_substitution":
                # bash tries arithmetic first; the grammar may have chosen subshells.
                if self._text.raw(node).startswith("(("):
                    raise UnreadableError("`((`, which may be arithmetic or two subshells")
                return Subshell(self._inside(node))
            case "compound_statement":
                return self._arithmetic(node) if node.children[0].type == "((" else self._inside(node)
            case "if_statement" | "elif_clause" | "else_clause" | "do_group":
                return Branches((self._inside(node),), is_other=node.type in ("elif_clause", "else_clause"))
            case "while_statement":
                return Branches((self._inside(node),), repeats=True)
            case "for_statement":
                return self._for(node)
            case "c_style_for_statement" if body := node.child_by_field_name("body"):
                return Branches((self._arithmetic(node, body), self._statement(body)), repeats=True)
            case "case_statement":
                return self._case(node)
            case "function_definition":
                return self._function(node)
            case _:
                raise UnreadableError(f"a {node.type.replace('_', ' ')} where a command was expected")

    def _inside(self, node: Node) -> Statement:
        return self._sequence(node.children, node.start_byte, node.end_byte)

    def _sequence(self, children: Series[Node], start: int, end: int) -> Statement:
        """Return statements with the tokens between them; every byte between is accounted for."""
        parts: list[Statement] = []
        separated = True
        for node in children:
            gap = self._text.expect(STRUCTURE, start, node.start_byte)
            start = node.end_byte
            if not node.is_named:
                self._text.check_token(node)
                separated = True
                if node.type == "&" and parts:
                    parts.append(Subshell(parts.pop()))  # A background job runs in a subshell.
            elif node.type == "comment":
                self._text.check_comment(node)
            else:
                if not separated and node.type not in _CLAUSES and "\n" not in gap.replace("\\\n", ""):
                    raise UnreadableError("two commands without a separator")
                parts.append(self._statement(node))
                separated = False
        self._text.expect(STRUCTURE, start, end)
        return Sequence(tuple(parts))

    def _chain(self, node: Node, tail: tuple[Node, ...]) -> Statement:
        """Return commands joined by `|`, `&&` and `||`, grouped as bash does; the grammar's own grouping is wrong."""
        finished: list[tuple[str, Statement]] = []
        operator = ""
        piped: list[Statement] = []
        for joint, link, own_tail in self._links(node, tail):
            if joint in ("&&", "||"):
                finished.append((operator, _piped(piped)))
                operator, piped = joint, []
            piped.append(self._statement(link, own_tail))
        finished.append((operator, _piped(piped)))
        (_, first), *rest = finished
        return Conditional(first, tuple(rest)) if rest else first

    def _links(self, node: Node, tail: tuple[Node, ...]) -> Iterator[_Link]:
        """Yield the links of a chain in the order of the text; redirections belong to the preceding link."""
        waiting: list[_Link] = [("", node, tail)]
        while waiting:
            joint, current, own_tail = waiting.pop()
            body = current.child_by_field_name("body") if current.type == "redirected_statement" else None
            if current.type in ("list", "pipeline"):
                waiting.extend(reversed(_linked(joint, self._text.children(current), own_tail)))
            elif body is not None:
                redirects = tuple(child for child in current.children if child != body)
                heredocs = [child for child in redirects if child.type == "heredoc_redirect"]
                rest = self._commands.heredoc(heredocs[-1]).rest if heredocs else ()
                behind = self._text.children(rest[0]) if rest and rest[0].type == "pipeline" else rest
                waiting.extend(reversed(_linked("", behind, ())))
                waiting.append((joint, body, (*redirects, *own_tail)))
            else:
                yield joint, current, own_tail

    def _negated(self, node: Node, tail: tuple[Node, ...]) -> Statement:
        bang, command = self._text.children(node, 2)
        self._text.check_token(bang)
        body = self._statement(command, tail)
        if isinstance(body, Conditional):
            raise UnreadableError("conditions after a negation")
        return Sequence((body,))

    def _with_tail(self, node: Node, statement: Statement, tail: tuple[Node, ...]) -> Statement:
        """Return a compound command with redirections of its own."""
        if not tail:
            return statement
        self._text.expect(BLANKS, node.end_byte, tail[0].start_byte)
        redirections = self._simple(tail)
        if redirections.words or redirections.assignments:
            raise UnreadableError("words after a compound command")
        return Sequence((statement, redirections))

    def _parts(self, node: Node) -> Iterator[tuple[Node, bool]]:
        """Yield the children of a `for`, a `case` or one of its branches, and True for its words and patterns."""
        start = node.start_byte
        for index, child in enumerate(node.children):
            self._text.expect(STRUCTURE, start, child.start_byte)
            start = child.end_byte
            if not child.is_named and child.type != "|":
                self._text.check_token(child)
            yield child, node.field_name_for_child(index) == "value"

    def _for(self, node: Node) -> Statement:
        body, variable = node.child_by_field_name("body"), node.child_by_field_name("variable")
        if node.children[0].type != "for" or body is None:
            raise UnreadableError("a loop of an unknown form")
        words: list[Word] | None = None
        nested: list[Statement] = []
        end = node.start_byte
        for child, is_value in self._parts(node):
            if words is not None and is_value:
                self._text.expect(BLANKS, end, child.start_byte)
                words.append(self._commands.word(child, nested))
            elif child.type == "in":
                words = []
            end = child.end_byte
        text = self._text.written(node.start_byte, body.start_byte).rstrip("; \t\n")
        values = None if words is None else tuple(words)
        return ForEach(self._text.raw(variable) if variable else "", values, self._statement(body), text, tuple(nested))

    def _case(self, node: Node) -> Statement:
        parts: list[Statement] = []
        for child, is_value in self._parts(node):
            if child.type == "case_item":
                parts.append(self._case_item(child, parts))
            elif is_value:
                self._commands.word(child, parts)
        return Branches(tuple(parts))

    def _case_item(self, node: Node, nested: list[Statement]) -> Statement:
        """`pattern | pattern) statements ;;`"""
        start, count = node.start_byte, 0
        for child, is_value in self._parts(node):
            if is_value:
                self._commands.word(child, nested)
            elif child.is_named or child.type not in ("(", "|", ")"):
                break
            start, count = child.end_byte, count + 1
        return self._sequence(node.children[count:], start, node.end_byte)

    def _function(self, node: Node) -> Statement:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            raise UnreadableError("a function without a body")
        self._text.children(node)
        title = self._text.raw(name)
        if title in _OWN_NAMES or not re.fullmatch(r"[\w.:@+-]+", title):
            raise UnreadableError(f"a function called {title}")
        redirects = tuple(child for child in node.children if child.type.endswith("_redirect"))
        text = self._text.written(node.start_byte, body.start_byte).strip()
        return Definition(title, text, self._statement(body, redirects))

    def _arithmetic(self, node: Node, body: Node | None = None) -> Statement:
        """Return `((…))`, or the head of a loop: not a command, but evaluating a variable's value can run one."""
        nested: list[Statement] = []
        for child in node.children:
            if child != body:
                find_substitutions(child, self._text.source, self._statement, nested)
        text = self._text.written(node.start_byte, body.start_byte if body else node.end_byte).strip()
        reason = "arithmetic with variables can run commands"
        return Sequence((*nested, Unsupported(text, reason, unreadable=False, arithmetic=arithmetic_in(text))))

    def _simple(self, nodes: tuple[Node, ...]) -> SimpleCommand:
        self._count_command()
        return self._commands.command(nodes)

    def _count_command(self) -> None:
        self._count += 1
        if self._count > MAX_COMMANDS:
            raise UnreadableError(f"more than {MAX_COMMANDS} commands at once")


def _linked(joint: str, nodes: Series[Node], tail: tuple[Node, ...]) -> list[_Link]:
    """Return the links of one chain: commands with operators between them, the first joined by `joint`."""
    links: list[_Link] = []
    for node in nodes:
        if node.is_named:
            links.append((joint, node, ()))
        elif node.type in ("&&", "||", "|", "|&"):
            joint = node.type
        else:
            raise UnreadableError("an unknown operator")
    if links and tail:
        links[-1] = (links[-1][0], links[-1][1], tail)
    return links


def _piped(parts: list[Statement]) -> Statement:
    return parts[0] if len(parts) == 1 else Pipeline(tuple(parts))


# --- rough split of unreadable text -----------------------------------------------------------------------------------

MAX_FALLBACK_BYTES = 131_072
"""Number of characters of a text that are split."""
MAX_FALLBACK_COMMANDS = 500
"""Maximum number of commands."""
MAX_FALLBACK_WORDS = 1_000
"""Maximum number of words of one command; a tenth for redirections."""

_TOKEN = re.compile(
    r"(?P<end>\|\||&&|\|&|;|\n|\$?\(|\)|`|(?<![<>&])&(?![>\d])|(?<!>)\|)|(?P<redirect>\d*(?:&>>?|>>|>\||>&|<>|>|<<<|<<-?|<))"
    r"|(?P<word>(?:\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|[^\s;|&()<>`])+)",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_QUOTING = re.compile(r"\\\n|\\(.)|'([^']*)'|[\"']", re.DOTALL)
_GRAMMAR_WORDS = names("! { } then do else elif if while until time coproc function case in fi done esac")


def fallback_commands(text: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands that may be in `text`, at most `MAX_FALLBACK_COMMANDS`."""
    found: list[SimpleCommand] = []
    for command in _cut(text[:MAX_FALLBACK_BYTES]):
        found.append(command)
        if len(found) == MAX_FALLBACK_COMMANDS:
            break
    return tuple(found)


def _cut(text: str) -> Iterator[SimpleCommand]:
    words: list[str] = []
    redirects: list[Redirect] = []
    pending = ""
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "word":
            raw = match.group()
            if pending:
                if len(redirects) < MAX_FALLBACK_WORDS // 10:
                    redirects.append(Redirect(pending, Word(_unquoted(raw)), pending + raw))
                pending = ""
            elif len(words) < MAX_FALLBACK_WORDS and (words or raw not in _GRAMMAR_WORDS):
                words.append(raw)
        elif match.lastgroup == "redirect":
            pending = match.group().lstrip("0123456789")
        elif words or redirects or pending:
            yield from _commands(words, redirects)
            words, redirects, pending = [], [], ""
    yield from _commands(words, redirects)


def _commands(words: list[str], redirects: list[Redirect]) -> Iterator[SimpleCommand]:
    """Yield one command, and those that may begin after a brace in it: `coproc name { rm x`, `name() { rm x`."""
    yield from _command(words, redirects)
    start = 0
    for end in (*(at for at, word in enumerate(words) if word == "{"), len(words)):
        if 0 < start < end:
            yield from _command(words[start:end], [])
        start = end + 1


def _command(words: list[str], redirects: list[Redirect]) -> Iterator[SimpleCommand]:
    assignments: list[Assignment] = []
    while words and (match := _ASSIGNMENT.match(words[0])):
        raw, words = words[0], words[1:]
        assignments.append(Assignment(match.group(1), Word(_unquoted(raw[match.end() :])), raw))
    if words or redirects:
        written = " ".join((*words, *(redirect.text for redirect in redirects)))
        yield SimpleCommand(written, tuple(_word(raw) for raw in words), tuple(assignments), tuple(redirects))


def _word(raw: str) -> Word:
    """Return one word, whose braces may still expand to several."""
    value = _unquoted(raw)
    braces = frozenset(at for at, letter in enumerate(value) if letter in "{},") if "{" in raw else frozenset[int]()
    return Word(value, braces, text=raw)


def _unquoted(raw: str) -> str:
    """Return the word without its quoting; variables are marked as unknown."""
    plain = _QUOTING.sub(lambda match: match.group(1) or match.group(2) or "", raw)
    return re.sub(r"\$(?:\{[^}]*\}?|\w+|[@*#?$!-])", UNKNOWN, plain)
