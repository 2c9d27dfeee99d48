"""The one parse: bash's grammar (tree-sitter) over a command's bytes, under limits that only ever tighten.

Everything else in this room works on the tree that comes from here; there is no second parser for another purpose.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point

from .shell_lexer import UnreadableError

MAX_BYTES = 65_536
"""Longest command that is analysed; what is longer is never allowed without a person."""

_LANGUAGE = Language(tree_sitter_bash.language())
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Up to here a parse cannot take long enough to need a budget."""


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
    """Parses; a budget of steps, not of time, keeps the answer the same on every machine.

    Error recovery is quadratic in places (a chain of bars without commands), so long text needs a bound.
    """
    parser = Parser(_LANGUAGE)
    if len(source) <= _DIRECT_BYTES:
        return parser.parse(source).root_node
    steps = 0
    budget = 150 + len(source) // 20

    def read(offset: int, _: Point) -> bytes:
        return source[offset:]

    def is_over(_: int, __: bool) -> bool:
        nonlocal steps
        steps += 1
        return steps > budget

    try:
        return parser.parse(read, progress_callback=is_over).root_node
    except ValueError as error:
        raise UnreadableError("the command is too intricate to be analysed") from error
