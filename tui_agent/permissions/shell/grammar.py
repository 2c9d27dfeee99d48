"""Bash's grammar (tree-sitter) as a second reading of a command.

Our parser makes the statements. This grammar, which knows nothing about it, must find the commands at the same places;
else one of the two reads the text differently from bash, and it counts as unreadable.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser, Point, Query, QueryCursor

from .syntax import UnreadableError

MAX_BYTES = 65_536
"""Maximum length of an analysed command; the policy asks about a longer one."""
MAX_STEPS = 600
"""Maximum length of a parse in the grammar's own steps: enough for a thousand ordinary commands.

An error at the end of a long text costs the square of its length, in one step that cannot be interrupted.
"""

_LANGUAGE = Language(tree_sitter_bash.language())
_COMMANDS = Query(_LANGUAGE, "[(command_name) (declaration_command) (unset_command) (test_command)] @command")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_DIRECT_BYTES = 512
"""Length up to which a parse is too short to need a budget."""
_CHUNK_BYTES = 1_024
"""Bytes passed to the grammar at once; after looking far ahead it requests them again."""
_FREE_READS, _READS_A_CHUNK = 200, 10
"""Budget of reads. Ordinary text is read at most three times; a text that needs more is given up."""


def check_text(text: str) -> None:
    """Raise `UnreadableError` for a text that is too long or contains control characters."""
    if len(text.encode()) > MAX_BYTES:
        raise UnreadableError(f"the command is longer than {MAX_BYTES} bytes")
    if _CONTROL.search(text):
        raise UnreadableError("the command contains control characters")


def check_commands(text: str, starts: set[int]) -> None:
    """Check that the grammar finds commands at these offsets and nowhere else.

    Raises:
        UnreadableError: it finds others or errors, or cannot parse the text in time.
    """
    root = _tree(text.encode())
    if root.has_error:
        raise UnreadableError("the command does not look like valid bash")
    ours, offset, last = set[int](), 0, 0
    for start in sorted(starts):
        offset += len(text[last:start].encode())
        last = start
        ours.add(offset)
    theirs = {node.start_byte for nodes in QueryCursor(_COMMANDS).captures(root).values() for node in nodes}
    if ours != theirs:
        raise UnreadableError("text that can be read in several ways")


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
