"""The parser: bash's grammar (tree-sitter) over a command's bytes, under limits that only ever tighten.

All analysis of commands works on this tree; there is no second parser.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from .words import UnreadableError

MAX_BYTES = 65_536
"""Maximum length of an analysed command; the policy asks about a longer one."""

MAX_STEPS = 600
"""Maximum length of a parse in the parser's own steps: enough for a thousand ordinary commands.

An error at the end of a long text costs the square of its length, in one step that cannot be interrupted.
"""

_LANGUAGE = Language(tree_sitter_bash.language())
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Length up to which a parse is too short to need a budget."""
_CHUNK_BYTES = 1_024
"""Bytes passed to the parser at once; after looking far ahead it requests them again."""
_FREE_READS, _READS_A_CHUNK = 200, 10
"""Budget of reads. Ordinary text is read at most three times; a text that needs more is given up."""


def parse(source: bytes) -> Node:
    """Return the tree of a command, free of errors.

    Raises:
        UnreadableError: the text is not bash as the grammar knows it, contains control characters, or is too long
            or too complex to be parsed in time.
    """
    if len(source) > MAX_BYTES:
        raise UnreadableError(f"the command is longer than {MAX_BYTES} bytes")
    if _CONTROL.search(source.decode("latin-1")):
        raise UnreadableError("the command contains control characters")
    root = _tree(source)
    if root.has_error:
        raise UnreadableError("the command does not look like valid bash")
    return root


def _tree(source: bytes) -> Node:
    """Parse the source.

    Budgets of steps and reads, not of time, keep the answer the same on every machine. The first error ends the parse,
    because error recovery is quadratic in places.
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
