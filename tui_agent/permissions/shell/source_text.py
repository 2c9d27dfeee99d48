"""Check of a command's text against its tree: between two tokens there may only be text that bash skips.

This exposes wrong guesses of the grammar: skipped text, a keyword inside a longer word, a false comment.
"""

import re

from tree_sitter import Node

from .syntax import names
from .words import UnreadableError

BLANKS = re.compile(r"(?:[ \t]|\\\n)*\Z")
"""Text allowed between the words of one command."""
STRUCTURE = re.compile(r"(?:[ \t\n]|\\\n)*\Z")
"""Text allowed between statements and keywords."""

_BOUNDARY = frozenset(" \t\n;|&()<>`")
_SEPARATORS = frozenset((";", "&", "\n"))
_CASE_ENDS = frozenset((";;", ";&", ";;&"))
_BRACKETS = frozenset(("(", ")", "$(", "`", "<(", ">("))
_BEFORE_BLANK = frozenset(("{", "!"))
_KEYWORDS = names("{ } ! if then elif else fi while until for in do done case esac function")


class CommandText:
    """A command's source, addressed by the byte offsets of its tree."""

    def __init__(self, source: bytes) -> None:
        self.source = source.decode("latin-1")
        """One character a byte."""

    def raw(self, node: Node) -> str:
        """Return a node's text, one character a byte."""
        return self.source[node.start_byte : node.end_byte]

    def written(self, start: int, end: int) -> str:
        """Return the text between two offsets, decoded."""
        return self.source[start:end].encode("latin-1").decode("utf-8", "replace")

    def expect(self, pattern: re.Pattern[str], start: int, end: int) -> str:
        """Return the text between two tokens.

        Raises:
            UnreadableError: it contains more than `pattern` allows.
        """
        gap = self.source[start:end]
        if start > end or not pattern.match(gap):
            raise UnreadableError("text that the grammar skipped")
        return gap

    def expect_end_of_word(self, end: int) -> None:
        """Raise `UnreadableError` if a word continues at `end`."""
        if (self.source[end : end + 1] or "\n") not in _BOUNDARY:
            raise UnreadableError("a word that continues after its end")

    def check_token(self, node: Node) -> None:
        """Raise `UnreadableError` unless the token is a separator, or a keyword that is a word of its own."""
        token = node.type
        if token in _CASE_ENDS and node.parent is not None and node.parent.type == "case_item":
            return
        if token in _SEPARATORS or token in _BRACKETS:
            return
        if token not in _KEYWORDS:
            raise UnreadableError(f"{token!r} where a command was expected")
        before = self.source[node.start_byte - 1 : node.start_byte] or "\n"
        after = self.source[node.end_byte : node.end_byte + 1] or "\n"
        if before not in _BOUNDARY or after not in _BOUNDARY or (token in _BEFORE_BLANK and after not in " \t\n"):
            raise UnreadableError(f"{token!r} is not a word of its own")

    def check_comment(self, node: Node) -> None:
        """Raise `UnreadableError` if bash would read on where the grammar found a comment."""
        before = self.source[node.start_byte - 1 : node.start_byte] or "\n"
        text = self.raw(node)
        if before not in _BOUNDARY or "\n" in text or text.endswith("\\"):
            raise UnreadableError("something that only looks like a comment")

    def children(self, node: Node, count: int | None = None) -> list[Node]:
        """Return a node's children without comments, with nothing but blanks and line ends between them.

        Raises:
            UnreadableError: there is other text, or the number of children is not `count`.
        """
        kept: list[Node] = []
        start = node.start_byte
        for child in node.children:
            self.expect(STRUCTURE, start, child.start_byte)
            start = child.end_byte
            if child.type == "comment":
                self.check_comment(child)
            else:
                kept.append(child)
        if count is not None and len(kept) != count:
            raise UnreadableError(f"a {node.type.replace('_', ' ')} of an unknown form")
        return kept
