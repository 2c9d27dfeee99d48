"""Simple commands: words, assignments, redirections and here-documents, collected from the nodes of the tree.

The grammar puts arguments that follow a redirection or a here-document below that redirection. Here the parts of a
command are put back in the order of the text, and only blanks may be between them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from .grammar import BLANKS, CommandText
from .syntax import Assignment, Redirect, SimpleCommand, Statement, Unsupported, Word, names
from .words import (
    Substitutions,
    UnreadableError,
    Visit,
    check_expanding_text,
    end_of_word,
    find_substitutions,
    lex_word,
)

RESERVED = names("! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while")
"""Words that bash treats as grammar in place of a command's name."""
MAX_REDIRECTS = 100
"""Maximum number of redirections of one command."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_DASH = re.compile(r"[ \t]+-[ \t]*\Z")
_DESCRIPTOR_WORD = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})\Z")
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_OPERATORS = frozenset(("<", ">", ">>", "&>", "&>>", "<&", ">&", ">|", "<&-", ">&-"))
_HEREDOC_ITEMS = names(
    "file_redirect herestring_redirect word string raw_string ansi_c_string number concatenation simple_expansion "
    "expansion command_substitution process_substitution arithmetic_expansion brace_expression"
)


@dataclass(frozen=True, slots=True)
class HeredocParts:
    """Parts of one here-document."""

    operator_end: int
    """End offset of `<<WORD`."""
    body_start: int
    body_end: int
    is_quoted: bool
    """True if the delimiter was quoted: nothing in the body is expanded."""
    items: tuple[Node, ...]
    """Arguments and redirections after it on its line; they belong to its command."""
    rest: tuple[Node, ...]
    """The rest of that line: a `pipeline` node, or an operator and a statement."""


@dataclass(slots=True)
class _Gathered:
    """The parts of one command while they are collected."""

    end: int
    """End offset of the last part."""
    words: list[Word] = field(default_factory=list[Word])
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    nested: list[Statement] = field(default_factory=list[Statement])
    heredoc: str | None = None


class CommandReader:
    """Reads the simple commands of one text. Its methods raise `UnreadableError` where bash may read differently."""

    def __init__(self, text: CommandText, visit: Visit) -> None:
        self._text = text
        self._source = text.source
        self._visit = visit

    def command(self, nodes: Iterable[Node]) -> SimpleCommand:
        """Return the command that consists of these nodes."""
        items = sorted(self._items(nodes), key=lambda item: (item.start_byte, -item.end_byte))
        if sum(1 for item in items if item.type in _REDIRECTS) > MAX_REDIRECTS:
            raise UnreadableError(f"more than {MAX_REDIRECTS} redirections of one command")
        start = items[0].start_byte
        gathered = _Gathered(start)
        for item in items:
            self._check_gap(gathered, item, is_first=item is items[0])
            self._gather(item, gathered)
        self._text.expect_end_of_word(gathered.end)
        _check_reserved([word.text for word in gathered.words])
        if gathered.words and any(one.items is not None for one in gathered.assignments):
            raise UnreadableError("an array before a command")
        return SimpleCommand(
            self._text.written(start, gathered.end),
            tuple(gathered.words),
            tuple(gathered.assignments),
            tuple(gathered.redirects),
            gathered.heredoc,
            tuple(gathered.nested),
        )

    def condition(self, node: Node) -> SimpleCommand:
        """Return `[ … ]` or `[[ … ]]`, which the grammar parses as an expression, as a command."""
        nested: list[Statement] = []
        words = list(self._condition_words(node, self._substitutions(node, nested)))
        values = [word.value for word in words]
        closing = "]]" if values[0] == "[[" else "]"
        if values.count(closing) != 1 or values[-1] != closing:
            raise UnreadableError("a condition that ends more than once")
        self._text.expect_end_of_word(node.end_byte)
        return SimpleCommand(self._text.written(node.start_byte, node.end_byte), tuple(words), nested=tuple(nested))

    def word(self, node: Node, nested: list[Statement]) -> Word:
        """Return one word; add the statements inside it to `nested`."""
        if self._source[node.start_byte] == "#":
            raise UnreadableError("a comment that the grammar took for a word")
        word = lex_word(self._source, node.start_byte, node.end_byte, self._substitutions(node, nested))
        self._text.expect_end_of_word(node.end_byte)
        return word

    def heredoc(self, node: Node) -> HeredocParts:
        """Return the parts of a here-document.

        The classic way to smuggle a command past a checker is a delimiter that checker and shell read differently. So
        the delimiter, its line and the line that ends the text are all computed again here.
        """
        source, children = self._source, node.children
        position = next((at for at, child in enumerate(children) if child.type == "heredoc_start"), 0)
        start, operator = children[position], children[position - 1]
        if not position or source[operator.end_byte : start.start_byte].strip(" \t"):
            raise UnreadableError("a here-document with an unclear delimiter")
        if self._text.raw(operator) not in ("<<", "<<-"):
            raise UnreadableError("a word that the grammar took for a part of a here-document")
        delimiter = lex_word(source, start.start_byte, start.end_byte, {})
        if not delimiter.value or not delimiter.is_fixed or "\n" in delimiter.text:
            raise UnreadableError("a here-document with an unclear delimiter")
        line_end = source.find("\n", start.end_byte)
        behind = [child for child in children[position + 1 :] if child.start_byte <= line_end]
        if line_end < 0 or any(child.end_byte > line_end for child in behind):
            raise UnreadableError("a here-document whose line continues")
        at = start.end_byte
        for begin, end in (*((child.start_byte, child.end_byte) for child in behind), (line_end, line_end)):
            # A redirection's node includes the arguments after it, so it may end after the next node begins.
            if source[at:begin].strip(" \t"):
                raise UnreadableError("several things on the line of a here-document")
            at = max(at, end)
        strips_tabs = any(child.type == "<<-" for child in children[:position])
        body_end, last_line = self._end_of_heredoc(line_end + 1, delimiter.value, strips_tabs)
        if [child.start_byte for child in children if child.type == "heredoc_end"] != [last_line]:
            raise UnreadableError("a here-document that ends elsewhere than it seems")
        is_quoted = delimiter.text != delimiter.value
        if not is_quoted and "\\\n" in source[line_end + 1 : body_end]:
            raise UnreadableError("a here-document with joined lines")
        items = tuple(child for child in behind if child.is_named and child.type in _HEREDOC_ITEMS)
        rest = tuple(child for child in behind if child not in items)
        kinds = [child.type for child in rest]
        if kinds not in ([], ["pipeline"]) and not (len(rest) == 2 and kinds[0] in ("&&", "||") and rest[1].is_named):
            raise UnreadableError("unknown text after a here-document")
        return HeredocParts(start.end_byte, line_end + 1, body_end, is_quoted, items, rest)

    def _end_of_heredoc(self, at: int, delimiter: str, strips_tabs: bool) -> tuple[int, int]:
        """Return the offsets of the line that ends the text, before and after its tabs."""
        tabs = r"\t*" if strips_tabs else ""
        wanted = re.escape(delimiter.encode("utf-8").decode("latin-1"))
        found = re.compile(rf"^{tabs}({wanted})$", re.MULTILINE).search(self._source, at)
        if found is None:
            raise UnreadableError("a here-document that does not end")
        return found.start(), found.start(1)

    def _items(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """Yield the nodes of a command, including the arguments that the grammar puts below redirections."""
        for node in nodes:
            if node.type == "command_name":
                yield from node.children
            elif node.type == "comment":
                self._text.check_comment(node)
            else:
                yield node
                if node.type == "file_redirect":
                    yield from _targets(node)[1]
                elif node.type == "heredoc_redirect":
                    yield from self._items(self.heredoc(node).items)

    def _check_gap(self, gathered: _Gathered, item: Node, *, is_first: bool) -> None:
        if item.type == "heredoc_redirect" and _DASH.match(self._source[gathered.end : item.start_byte]):
            # The grammar skips a dash before `<<`, as in `python3 - <<EOF`.
            gathered.words.append(Word("-", text="-"))
            return
        gap = self._text.expect(BLANKS, gathered.end, item.start_byte)
        if is_first or gap.replace("\\\n", ""):
            return
        if item.type not in _REDIRECTS:
            raise UnreadableError("two words without a blank between them")
        if gathered.words and _DESCRIPTOR_WORD.match(gathered.words[-1].text):
            raise UnreadableError("a file descriptor that the grammar took for a word")

    def _gather(self, item: Node, gathered: _Gathered) -> None:
        if item.type in _REDIRECTS:
            self._check_descriptor(item)
        if item.type == "variable_assignment" and not gathered.words:
            gathered.end = item.end_byte
            gathered.assignments.append(self._assignment(item, gathered.nested))
        elif item.type == "heredoc_redirect":
            self._read_heredoc(item, gathered)
        elif item.type == "herestring_redirect":
            self._text.expect(BLANKS, item.children[-2].end_byte, item.children[-1].start_byte)
            gathered.end = item.end_byte
            gathered.heredoc = self.word(item.children[-1], gathered.nested).value
        elif item.type == "file_redirect":
            self._redirect(item, gathered)
        else:
            gathered.end = item.end_byte
            gathered.words.append(self.word(item, gathered.nested))

    def _assignment(self, node: Node, nested: list[Statement]) -> Assignment:
        match = _ASSIGNMENT.match(self._source, node.start_byte, node.end_byte)
        value = node.child_by_field_name("value")
        is_array = value is not None and value.type == "array"
        text = self._text.written(node.start_byte, node.end_byte)
        substitutions = self._substitutions(node, nested)
        if match and not is_array:
            return Assignment(match[1], lex_word(self._source, match.end(), node.end_byte, substitutions), text)
        items = self._items_of_array(value) if match and value and match[2] == "=" else None
        if items is None:
            nested.append(Unsupported(text, "subscripts of arrays can run commands", unreadable=False))
        return Assignment(text.partition("[")[0].partition("=")[0].rstrip("+"), Word(""), text, items)

    def _items_of_array(self, node: Node) -> tuple[Word, ...] | None:
        """Return the elements of `(a b)` if each is literal text, else None."""
        at, items = node.start_byte + 1, list[Word]()
        for child in (*node.children[1:-1], None):
            start = child.start_byte if child else node.end_byte - 1
            gap = self._source[at:start]
            if gap.strip(" \t\n"):
                return None
            if child is None:
                break
            if (items and not gap) or self._source[start] in "[#":
                return None
            try:
                word = self.word(child, [])
            except UnreadableError:
                return None
            if not word.is_fixed or word.live:
                return None
            items.append(word)
            at = child.end_byte
        return tuple(items)

    def _redirect(self, node: Node, gathered: _Gathered) -> None:
        targets, _ = _targets(node)
        operators = [child for child in node.children if child.type in _OPERATORS]
        if len(operators) != 1 or self._text.raw(operators[0]) != operators[0].type:
            raise UnreadableError("a redirection of an unknown form")
        gathered.end = operators[0].end_byte
        target = Word("-")
        if targets:
            self._text.expect(BLANKS, operators[0].end_byte, targets[0].start_byte)
            target = self.word(targets[0], gathered.nested)
            gathered.end = targets[0].end_byte
        text = self._text.written(node.start_byte, gathered.end)
        gathered.redirects.append(Redirect(operators[0].type, target, text))

    def _check_descriptor(self, node: Node) -> None:
        """Check the number before a redirection; the grammar may take the end of a word for one."""
        for at, child in enumerate(node.children):
            if child.type == "file_descriptor":
                touches = at + 1 < node.child_count and node.children[at + 1].start_byte == child.end_byte
                if at or not touches or not self._text.raw(child).isdigit():
                    raise UnreadableError("a word that the grammar took for a file descriptor")

    def _read_heredoc(self, node: Node, gathered: _Gathered) -> None:
        if gathered.heredoc is not None:
            raise UnreadableError("more than one here-document")
        parts = self.heredoc(node)
        if not parts.is_quoted:
            substitutions: Substitutions = {}
            for child in node.children:
                if child.type == "heredoc_body":
                    substitutions |= self._substitutions(child, gathered.nested)
            check_expanding_text(self._source, parts.body_start, parts.body_end, substitutions)
        gathered.heredoc, gathered.end = self._text.written(parts.body_start, parts.body_end), parts.operator_end

    def _condition_words(self, node: Node, substitutions: Substitutions) -> Iterator[Word]:
        source, at, end = self._source, node.start_byte, node.end_byte
        is_double = source.startswith("[[", at)
        while at < end:
            if source[at] in " \t":
                at += 1
            elif source.startswith("\\\n", at):
                at += 2
            elif is_double and source[at] in "&|()<>" and at not in substitutions:
                if source.startswith(("<(", ">("), at):
                    raise UnreadableError("a possible process substitution inside [[ ]]")
                yield Word(source[at])
                at += 1
            else:
                stop = end_of_word(source, at, end, substitutions)
                if stop == at or source[at] == "#":
                    raise UnreadableError("an operator or a comment inside [ ]")
                inside = {place: hole for place, hole in substitutions.items() if at <= place < stop}
                yield lex_word(source, at, stop, inside)
                at = stop

    def _substitutions(self, node: Node, nested: list[Statement]) -> Substitutions:
        return find_substitutions(node, self._source, self._visit, nested)


def _targets(node: Node) -> tuple[list[Node], list[Node]]:
    """Return a redirection's target and the arguments after it. A closed descriptor has no target."""
    words = node.children_by_field_name("destination")
    closes = any(child.type in ("<&-", ">&-") for child in node.children)
    return ([], words) if closes else (words[:1], words[1:])


def _check_reserved(words: list[str]) -> None:
    """Refuse grammar words in place of a name, also after `time`, which takes any command."""
    behind = iter(words[1:] if words[:1] == ["time"] else [])
    for word in (*words[:1], next((word for word in behind if word not in ("-p", "--")), "")):
        if word in RESERVED:
            raise UnreadableError(f"{word!r} where a command's name was expected")
