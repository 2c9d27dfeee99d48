"""Substitutions inside words: their offsets, the commands in them, and the forms that can hide a command.

`$name` and the plain forms of `${…}` only produce text. Arithmetic, indirection and subscripts evaluate a variable's
value, which can run commands: each such form becomes an `Unsupported`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from tree_sitter import Node

from .syntax import PIPE, SUM, UNKNOWN, VARIABLE, Arithmetic, Statement, Subshell, Unsupported
from .words import Substitution, UnreadableError

Substitutions = dict[int, Substitution]
"""Substitutions by start offset."""
Visit = Callable[[Node], Statement]
"""Reads the commands inside a substitution."""

_NAME = r"(?:[A-Za-z_]\w*|[0-9]|[@*#?$!-])"
_SIMPLE = re.compile(rf"\$({_NAME})\Z")
_BRACED_NAME = re.compile(r"\$\{([A-Za-z_]\w*)\}\Z")
_ARRAY = re.compile(r"\$\{([A-Za-z_]\w*\[@\])\}\Z", re.ASCII)
_PART = re.compile(r"\$\{([A-Za-z_]\w*(?:%%?|##?)[\w./*?@,+=: -]*)\}\Z", re.ASCII)
_TEXT = r"[\w./*?@,+=: ~^-]*"
_HARMLESS = re.compile(
    rf"\$\{{(?:#?{_NAME}|#?[A-Za-z_]\w*\[[@*\d]\d*\]|{_NAME}:?[-+?]{_TEXT}|{_NAME}(?:%%?|##?|//?|\^\^?|,,?){_TEXT}"
    r"|[A-Za-z_]\w*: ?-?\d+(?:: ?-?\d+)?)\}\Z"
)
_NUMBERS_ONLY = re.compile(r"\$\(\([\d\s+*/%()<>=!&|^~?:,-]*\)\)\Z")
_SUBSTITUTIONS = frozenset(
    ("simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion")
)

_INSIDE = re.compile(r"(?:\$|for\s*)?\(\((.*)\)\)[;\s]*\Z", re.DOTALL)
_EXPANDED = re.compile(r"(?<![\w$}])(?:\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}|\$\{?#\}?)(?![\w${])", re.ASCII)
_PLAIN_SUM = re.compile(r"[\w\s+*/%()<>=!&|^~?:;,-]*\Z", re.ASCII)
_NAMES = re.compile(r"(?<![\w])[A-Za-z_]\w*", re.ASCII)
_SET = re.compile(
    r"(?<!\w)([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII
)


def find_substitutions(node: Node, source: str, visit: Visit, nested: list[Statement]) -> Substitutions:
    """Return the outermost substitutions at or below `node`; add their commands to `nested`.

    Raises:
        UnreadableError: the grammar may have read a form of substitution wrongly.
    """
    substitutions: Substitutions = {}
    for found in _outermost(node):
        substitutions[found.start_byte] = _hole(found, source[found.start_byte : found.end_byte], visit, nested)
    return substitutions


def _outermost(node: Node) -> Iterator[Node]:
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in _SUBSTITUTIONS:
            yield current
        elif current.child_count:
            stack.extend(reversed(current.children))


def _hole(node: Node, text: str, visit: Visit, nested: list[Statement]) -> Substitution:
    match node.type:
        case "simple_expansion":
            match = _SIMPLE.match(text)
            if match is None:
                raise UnreadableError("a variable of an unknown form")
            name = match.group(1)
            return (
                Substitution(node.end_byte, VARIABLE, name)
                if name.isidentifier() or name in "123456789@"
                else Substitution(node.end_byte, UNKNOWN)
            )
        case "expansion":
            return _braced(node, text, visit, nested)
        case "arithmetic_expansion":
            if not _NUMBERS_ONLY.match(text):
                _hidden(node, text, "arithmetic with variables can run commands", visit, nested)
            return Substitution(node.end_byte, VARIABLE, SUM)
        case "process_substitution":
            nested.append(visit(node))
            return Substitution(node.end_byte, PIPE if text.startswith("<") else UNKNOWN)
        case _:
            _check_command_substitution(text)
            # The bracket keeps the name apart from the names of variables; the offset makes it unique.
            inside, name = visit(node), f"({node.start_byte}"
            nested.append(replace(inside, name=name) if isinstance(inside, Subshell) else inside)
            return Substitution(node.end_byte, VARIABLE, name)


def _braced(node: Node, text: str, visit: Visit, nested: list[Statement]) -> Substitution:
    if match := _BRACED_NAME.match(text) or _ARRAY.match(text) or _PART.match(text):
        return Substitution(node.end_byte, VARIABLE, match.group(1))
    if not (text.startswith("${") and text.endswith("}")):
        raise UnreadableError("a parameter expansion of an unknown form")
    if not _HARMLESS.match(text):
        _hidden(node, text, "this form of parameter expansion can run commands", visit, nested)
    return Substitution(node.end_byte, UNKNOWN)


def _hidden(node: Node, text: str, reason: str, visit: Visit, nested: list[Statement]) -> None:
    """Add an `Unsupported` for a form that evaluates variables, and the commands that are visible in it."""
    stack = list(reversed(node.children))
    while stack:
        current = stack.pop()
        if current.type in ("command_substitution", "process_substitution"):
            nested.append(visit(current))
        else:
            stack.extend(reversed(current.children))
    shown = text.encode("latin-1").decode("utf-8", "replace")
    nested.append(Unsupported(shown, reason, unreadable=False, arithmetic=arithmetic_in(text)))


def _check_command_substitution(text: str) -> None:
    if text.startswith("`"):
        if "\\" in text or '"' in text or not text.endswith("`") or len(text) < 2:
            raise UnreadableError("backquotes with quoting inside")
    elif text.startswith("$((") or not (text.startswith("$(") and text.endswith(")")):
        raise UnreadableError("a command substitution of an unknown form")


def arithmetic_in(text: str) -> Arithmetic | None:
    """Return the variables of `$((…))`, `((…))` or `for ((…))`, or None if it is more than plain arithmetic."""
    found = _INSIDE.match(text)
    if found is None:
        return None
    inside = _EXPANDED.sub(lambda found: found[1] or found[2] or "0", found.group(1))
    if not _PLAIN_SUM.match(inside):
        return None
    names = frozenset(_NAMES.findall(inside))
    return Arithmetic(names, frozenset(first or second for first, second in _SET.findall(inside)))
