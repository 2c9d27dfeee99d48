"""Bash's grammar (tree-sitter) over a command's bytes, and the check of its tree against the text.

All analysis works on this tree; there is no second parser. The limits only ever tighten. Between two tokens there may
only be text that bash skips, which exposes wrong guesses of the grammar: skipped text, a keyword inside a longer word,
a false comment.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from .syntax import names
from .words import UnreadableError

MAX_BYTES = 65_536
"""Maximum length of an analysed command; the policy asks about a longer one."""
MAX_STEPS = 600
"""Maximum length of a parse in the parser's own steps: enough for a thousand ordinary commands.

An error at the end of a long text costs the square of its length, in one step that cannot be interrupted.
"""
BLANKS = re.compile(r"(?:[ \t]|\\\n)*\Z")
"""Text allowed between the words of one command."""
STRUCTURE = re.compile(r"(?:[ \t\n]|\\\n)*\Z")
"""Text allowed between statements and keywords."""

_LANGUAGE = Language(tree_sitter_bash.language())
_CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Length up to which a parse is too short to need a budget."""
_CHUNK_BYTES = 1_024
"""Bytes passed to the parser at once; after looking far ahead it requests them again."""
_FREE_READS, _READS_A_CHUNK = 200, 10
"""Budget of reads. Ordinary text is read at most three times; a text that needs more is given up."""
_BOUNDARY = frozenset(" \t\n;|&()<>`")
_SEPARATORS = frozenset((";", "&", "\n", "(", ")", "$(", "`", "<(", ">("))
_CASE_ENDS = frozenset((";;", ";&", ";;&"))
_BEFORE_BLANK = frozenset(("{", "!"))
_KEYWORDS = names("{ } ! if then elif else fi while until for in do done case esac function")


def parse(source: bytes) -> Node:
    """Return the tree of a command, free of errors.

    Raises:
        UnreadableError: the text is not bash as the grammar knows it, contains control characters, or is too long
            or too complex to be parsed in time.
    """
    if len(source) > MAX_BYTES:
        raise UnreadableError(f"the command is longer than {MAX_BYTES} bytes")
    if _CONTROL.search(source):
        raise UnreadableError("the command contains control characters")
    root = _tree(source)
    if root.has_error:
        raise UnreadableError("the command does not look like valid bash")
    return root


def _tree(source: bytes) -> Node:
    """Parse the source within budgets of steps and reads, so that the answer is the same on every machine.

    The first error ends the parse, because error recovery is quadratic in places.
    """
    parser = Parser(_LANGUAGE)
    if len(source) <= _DIRECT_BYTES:
        return parser.parse(source).root_node
    steps = 0
    reads_left = _FREE_READS + _READS_A_CHUNK * (len(source) // _CHUNK_BYTES)

    def read(offset: int, _: Point) -> bytes:
        nonlocal reads_left
        reads_left -= 1
        return source[offset : offset + _CHUNK_BYTES] if reads_left >= 0 else b""

    def is_over(_: int, has_error: bool) -> bool:
        nonlocal steps
        steps += 1
        return has_error or steps > MAX_STEPS or reads_left < 0

    try:
        root = parser.parse(read, progress_callback=is_over).root_node
    except ValueError as error:
        raise UnreadableError("the command has an error, or is too complex to analyse") from error
    if reads_left < 0:
        raise UnreadableError("the command is too complex to analyse")
    return root


class CommandText:
    """A command's source, addressed by the byte offsets of its tree. Its checks raise `UnreadableError`."""

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
        """Return the text between two tokens, which must match `pattern`."""
        gap = self.source[start:end]
        if start > end or not pattern.match(gap):
            raise UnreadableError("text that the grammar skipped")
        return gap

    def expect_end_of_word(self, end: int) -> None:
        """Check that no word continues at `end`."""
        if (self.source[end : end + 1] or "\n") not in _BOUNDARY:
            raise UnreadableError("a word that continues after its end")

    def check_token(self, node: Node) -> None:
        """Check that a token is a separator, or a keyword that is a word of its own."""
        token = node.type
        is_case_end = token in _CASE_ENDS and node.parent is not None and node.parent.type == "case_item"
        if is_case_end or token in _SEPARATORS:
            return
        if token not in _KEYWORDS:
            raise UnreadableError(f"{token!r} where a command was expected")
        after = self.source[node.end_byte : node.end_byte + 1] or "\n"
        is_word = self._before(node) in _BOUNDARY and after in _BOUNDARY
        if not is_word or (token in _BEFORE_BLANK and after not in " \t\n"):
            raise UnreadableError(f"{token!r} is not a word of its own")

    def check_comment(self, node: Node) -> None:
        """Check that bash, too, finds a comment here, with the same end."""
        text = self.raw(node)
        if self._before(node) not in _BOUNDARY or "\n" in text or text.endswith("\\"):
            raise UnreadableError("something that only looks like a comment")

    def children(self, node: Node, count: int | None = None) -> list[Node]:
        """Return a node's children without comments, `count` if given; between them are only blanks and line ends."""
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

    def _before(self, node: Node) -> str:
        return self.source[node.start_byte - 1 : node.start_byte] or "\n"
