"""The one parse: bash's grammar (tree-sitter) over a command's bytes, under limits that only ever tighten.

Everything else in this room works on the tree that comes from here; there is no second parser for another purpose.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from .shell_lexer import UnreadableError

MAX_BYTES = 65_536
"""Longest command that is analysed; what is longer is never allowed without a person."""

MAX_STEPS = 600
"""Longest parse, in the parser's own steps: enough for a thousand ordinary commands. What is wrong at the end of a long
text costs the square of them, in one step that nothing can stop."""

_LANGUAGE = Language(tree_sitter_bash.language())
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Up to here a parse cannot take long enough to need a budget."""
_CHUNK_BYTES = 1_024
"""Handed to the parser at once; it asks anew whenever it looks far ahead and goes back."""
_FREE_READS, _READS_A_CHUNK = 200, 10
"""Ordinary text is read three times at most; what is looked through again and again is given up on."""


def parse(source: bytes) -> Node:
    """The tree of a command that has no errors in it.

    Raises:
        UnreadableError: the text is no bash as the grammar knows it, holds control characters, or is too long or too
            intricate to be parsed in time.
    """
    if len(source) > MAX_BYTES:
        raise UnreadableError(f"the command is longer than {MAX_BYTES} bytes")
    if _CONTROL.search(source.decode("latin-1")):
        raise UnreadableError("the command holds control characters")
    root = _tree(source)
    if root.has_error:
        raise UnreadableError("the command is not valid bash as far as can be told")
    return root


def _tree(source: bytes) -> Node:
    """Parses; budgets of steps and of reading, not of time, keep the answer the same on every machine.

    The first error ends the parse, because recovering from errors is quadratic in places.
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
        raise UnreadableError("the command has an error, or is too intricate to be analysed") from error
    if reads_left < 0:
        raise UnreadableError("the command is too intricate to be analysed")
    return root
