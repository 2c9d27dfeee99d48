"""Simple commands: words, assignments and redirections, collected from the nodes of the tree.

The grammar puts arguments that follow a redirection or a here-document below that redirection. Here the parts of a
command are put back in the order of the text, and only blanks may be between them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tree_sitter import Node

from .heredoc import HeredocParts, check_heredoc
from .source_text import BLANKS, CommandText
from .substitutions import Substitutions, Visit, find_substitutions
from .syntax import Assignment, Redirect, SimpleCommand, Statement, Unsupported, Word, names
from .words import UnreadableError, check_expanding_text, end_of_word, lex_word

RESERVED = names("! { } [[ ]] case coproc do done elif else esac fi for function if in select then until while")
"""Words that bash treats as grammar in place of a command's name."""

MAX_REDIRECTS = 100
"""Maximum number of redirections of one command."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_DASH = re.compile(r"[ \t]+-[ \t]*\Z")
_DESCRIPTOR_WORD = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})\Z")
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_OPERATORS = frozenset(("<", ">", ">>", "&>", "&>>", "<&", ">&", ">|", "<&-", ">&-"))


@dataclass(slots=True)
class _Gathered:
    """The parts of one command while they are collected."""

    end: int
    """End offset of the last part."""
    words: list[Word] = field(default_factory=list[Word])
    raw_words: list[str] = field(default_factory=list[str])
    assignments: list[Assignment] = field(default_factory=list[Assignment])
    redirects: list[Redirect] = field(default_factory=list[Redirect])
    nested: list[Statement] = field(default_factory=list[Statement])
    heredoc: str | None = None
    is_empty: bool = True


class CommandReader:
    """Reads the simple commands of one text."""

    def __init__(self, text: CommandText, visit: Visit) -> None:
        self._text = text
        self._visit = visit

    def command(self, nodes: Iterable[Node]) -> SimpleCommand:
        """Return the command that consists of these nodes.

        Raises:
            UnreadableError: bash may read it differently.
        """
        items = sorted(self._items(nodes), key=lambda item: (item.start_byte, -item.end_byte))
        if sum(1 for item in items if item.type in _REDIRECTS) > MAX_REDIRECTS:
            raise UnreadableError(f"more than {MAX_REDIRECTS} redirections of one command")
        start = items[0].start_byte
        gathered = _Gathered(start)
        for item in items:
            self._check_gap(gathered, item)
            self._gather(item, gathered)
            gathered.is_empty = False
        self._text.expect_end_of_word(gathered.end)
        _check_reserved(gathered.raw_words)
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
        substitutions = self._substitutions(node, nested)
        words = list(self._condition_words(node, substitutions))
        values = [word.value for word in words]
        closing = "]]" if values[0] == "[[" else "]"
        if values.count(closing) != 1 or values[-1] != closing:
            raise UnreadableError("a condition that ends more than once")
        self._text.expect_end_of_word(node.end_byte)
        return SimpleCommand(self._text.written(node.start_byte, node.end_byte), tuple(words), nested=tuple(nested))

    def word(self, node: Node, nested: list[Statement]) -> Word:
        """Return one word; add the statements inside it to `nested`."""
        if self._text.source[node.start_byte] == "#":
            raise UnreadableError("a comment that the grammar took for a word")
        word = lex_word(self._text.source, node.start_byte, node.end_byte, self._substitutions(node, nested))
        self._text.expect_end_of_word(node.end_byte)
        return word

    def heredoc(self, node: Node) -> HeredocParts:
        """Return the parts of a here-document, checked against bash's rules."""
        return check_heredoc(node, self._text.source)

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

    def _check_gap(self, gathered: _Gathered, item: Node) -> None:
        if item.type == "heredoc_redirect" and _DASH.match(self._text.source[gathered.end : item.start_byte]):
            # The grammar skips a dash before `<<`, as in `python3 - <<EOF`.
            gathered.words.append(Word("-", text="-"))
            gathered.raw_words.append("-")
            return
        gap = self._text.expect(BLANKS, gathered.end, item.start_byte)
        touches = not gathered.is_empty and gap.replace("\\\n", "") == ""
        if not touches:
            return
        if item.type not in _REDIRECTS:
            raise UnreadableError("two words without a blank between them")
        if gathered.raw_words and _DESCRIPTOR_WORD.match(gathered.raw_words[-1]):
            raise UnreadableError("a file descriptor that the grammar took for a word")

    def _gather(self, item: Node, gathered: _Gathered) -> None:
        if item.type in _REDIRECTS:
            self._check_descriptor(item)
        if item.type == "variable_assignment" and not gathered.words:
            self._assign(item, gathered)
        elif item.type == "heredoc_redirect":
            self._read_heredoc(item, gathered)
        elif item.type == "herestring_redirect":
            self._text.expect(BLANKS, item.children[-2].end_byte, item.children[-1].start_byte)
            gathered.heredoc = self.word(item.children[-1], gathered.nested).value
            gathered.end = item.end_byte
        elif item.type == "file_redirect":
            self._redirect(item, gathered)
        else:
            gathered.words.append(self.word(item, gathered.nested))
            gathered.raw_words.append(self._text.raw(item))
            gathered.end = item.end_byte

    def _assign(self, node: Node, gathered: _Gathered) -> None:
        source = self._text.source
        match = _ASSIGNMENT.match(source, node.start_byte, node.end_byte)
        value = node.child_by_field_name("value")
        text = self._text.written(node.start_byte, node.end_byte)
        substitutions = self._substitutions(node, gathered.nested)
        gathered.end = node.end_byte
        items = self._items_of_array(value) if match and value and match.group(2) == "=" else None
        if items is not None and match is not None:
            gathered.assignments.append(Assignment(match.group(1), Word(""), text, items))
            return
        if match is None or (value is not None and value.type == "array"):
            gathered.nested.append(Unsupported(text, "subscripts of arrays can run commands", unreadable=False))
            name = text.partition("[")[0].partition("=")[0].rstrip("+")
            gathered.assignments.append(Assignment(name, Word(""), text))
            return
        word = lex_word(source, match.end(), node.end_byte, substitutions)
        gathered.assignments.append(Assignment(match.group(1), word, text))

    def _items_of_array(self, node: Node) -> tuple[Word, ...] | None:
        """Return the elements of `(a b)` if each is literal text, else None."""
        source, at, items = self._text.source, node.start_byte + 1, list[Word]()
        if node.type != "array":
            return None
        for child in node.children[1:-1]:
            gap = source[at : child.start_byte]
            if gap.strip(" \t\n") or (items and not gap) or source[child.start_byte] in "[#":
                return None
            try:
                word = self.word(child, [])
            except UnreadableError:
                return None
            if not word.is_fixed or word.live:
                return None
            items.append(word)
            at = child.end_byte
        return None if source[at : node.end_byte - 1].strip(" \t\n") else tuple(items)

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
            check_expanding_text(self._text.source, parts.body_start, parts.body_end, substitutions)
        gathered.heredoc, gathered.end = parts.body, parts.operator_end

    def _condition_words(self, node: Node, substitutions: Substitutions) -> Iterator[Word]:
        source, at, end = self._text.source, node.start_byte, node.end_byte
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
        return find_substitutions(node, self._text.source, self._visit, nested)


def _targets(node: Node) -> tuple[list[Node], list[Node]]:
    """Return a redirection's target and the arguments after it. A closed descriptor has no target."""
    words = node.children_by_field_name("destination")
    closes = any(child.type in ("<&-", ">&-") for child in node.children)
    return ([], words) if closes else (words[:1], words[1:])


def _check_reserved(raw_words: list[str]) -> None:
    """Refuse grammar words in place of a name, also after `time`, which takes any command."""
    position = 0
    if raw_words and raw_words[0] == "time":
        position = 1
        while position < len(raw_words) and raw_words[position] in ("-p", "--"):
            position += 1
    for raw in (*raw_words[:1], *raw_words[position : position + 1]):
        if raw in RESERVED:
            raise UnreadableError(f"{raw!r} where a command's name was expected")
