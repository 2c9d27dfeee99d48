"""Here-documents: their ends, computed without the grammar and compared with it.

The classic way to smuggle a command past a checker is a delimiter that checker and shell read differently. So the
delimiter, its line and the line that ends the text are all computed again here.
"""

from dataclasses import dataclass

from tree_sitter import Node

from .syntax import names
from .words import UnreadableError, lex_word

_ITEMS = names(
    "file_redirect herestring_redirect word string raw_string ansi_c_string number concatenation simple_expansion "
    "expansion command_substitution process_substitution arithmetic_expansion brace_expression"
)


@dataclass(frozen=True, slots=True)
class HeredocParts:
    """Parts of one here-document."""

    operator_end: int
    """End offset of `<<WORD`."""
    body: str
    """Its lines as written, without the last."""
    body_start: int
    body_end: int
    is_quoted: bool
    """True if the delimiter was quoted: nothing in the body is expanded."""
    items: tuple[Node, ...]
    """Arguments and redirections after it on its line; they belong to its command."""
    rest: tuple[Node, ...]
    """The rest of that line: a `pipeline` node, or an operator and a statement."""


def check_heredoc(node: Node, source: str) -> HeredocParts:
    """Return the parts of a `heredoc_redirect`.

    Raises:
        UnreadableError: bash may read it differently.
    """
    children = node.children
    position = next((i for i, child in enumerate(children) if child.type == "heredoc_start"), None)
    if position is None:
        raise UnreadableError("a here-document without a delimiter")
    start = children[position]
    raw = source[start.start_byte : start.end_byte]
    if position == 0 or source[children[position - 1].end_byte : start.start_byte].strip(" \t"):
        raise UnreadableError("a here-document with an unclear delimiter")
    operator = children[position - 1]
    if source[operator.start_byte : operator.end_byte] not in ("<<", "<<-"):
        raise UnreadableError("a word that the grammar took for a part of a here-document")
    delimiter = lex_word(source, start.start_byte, start.end_byte, {})
    if not delimiter.value or not delimiter.is_fixed or "\n" in raw:
        raise UnreadableError("a here-document with an unclear delimiter")
    line_end = source.find("\n", start.end_byte)
    behind = [child for child in children[position + 1 :] if child.start_byte <= line_end]
    if line_end < 0 or any(child.end_byte > line_end for child in behind):
        raise UnreadableError("a here-document whose line continues")
    at = start.end_byte
    for child in behind:
        # A redirection's node includes the arguments after it, so it may end after the next node begins.
        if source[at : child.start_byte].strip(" \t"):
            raise UnreadableError("several things on the line of a here-document")
        at = max(at, child.end_byte)
    if source[at:line_end].strip(" \t"):
        raise UnreadableError("several things on the line of a here-document")
    strips_tabs = any(child.type == "<<-" for child in children[:position])
    body_end = _find_end(source, line_end + 1, delimiter.value, strips_tabs)
    ends = [child.start_byte for child in children if child.type == "heredoc_end"]
    tabs = len(source[body_end:]) - len(source[body_end:].lstrip("\t")) if strips_tabs else 0
    if ends != [body_end + tabs]:
        raise UnreadableError("a here-document that ends elsewhere than it seems")
    is_quoted = raw != delimiter.value
    body = source[line_end + 1 : body_end]
    if not is_quoted and "\\\n" in body:
        raise UnreadableError("a here-document with joined lines")
    items = tuple(child for child in behind if child.is_named and child.type in _ITEMS)
    rest = tuple(child for child in behind if child not in items)
    _check_rest(rest)
    text = body.encode("latin-1").decode("utf-8", "replace")
    return HeredocParts(start.end_byte, text, line_end + 1, body_end, is_quoted, items, rest)


def _find_end(source: str, at: int, delimiter: str, strips_tabs: bool) -> int:
    """Return the offset of the line that ends the text."""
    wanted = delimiter.encode("utf-8").decode("latin-1")
    while at <= len(source):
        line_end = source.find("\n", at)
        line = source[at : line_end if line_end >= 0 else len(source)]
        if (line.lstrip("\t") if strips_tabs else line) == wanted:
            return at
        if line_end < 0:
            break
        at = line_end + 1
    raise UnreadableError("a here-document that does not end")


def _check_rest(rest: tuple[Node, ...]) -> None:
    if not rest:
        return
    is_pipeline = len(rest) == 1 and rest[0].type == "pipeline"
    is_joined = len(rest) == 2 and rest[0].type in ("&&", "||") and rest[1].is_named
    if not (is_pipeline or is_joined):
        raise UnreadableError("unknown text after a here-document")
