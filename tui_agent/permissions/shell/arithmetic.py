"""Shell arithmetic: the variables that an expression reads and sets.

Arithmetic evaluates the value of a variable, which can run a command. An expression of numbers, operators and plain
names is as harmless as the values of these names.
"""

import re
from dataclasses import dataclass

_INSIDE = re.compile(r"(?:\$|for\s*)?\(\((.*)\)\)[;\s]*\Z", re.DOTALL)
_EXPANDED = re.compile(r"(?<![\w$}])(?:\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)\}|\$\{?#\}?)(?![\w${])", re.ASCII)
_PLAIN = re.compile(r"[\w\s+*/%()<>=!&|^~?:;,-]*\Z", re.ASCII)
_NAME = re.compile(r"(?<![\w])[A-Za-z_]\w*", re.ASCII)
_SET = re.compile(
    r"(?<!\w)([A-Za-z_]\w*)\s*(?:\+\+|--|(?:[-+*/%&^|]|<<|>>)?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Variables of an expression."""

    reads: frozenset[str] = frozenset()
    """Every name in the expression."""
    sets: frozenset[str] = frozenset()


def arithmetic_in(text: str) -> Arithmetic | None:
    """Return the variables of `$((…))`, `((…))` or `for ((…))`, or None if it is more than plain arithmetic."""
    found = _INSIDE.match(text)
    if found is None:
        return None
    inside = _EXPANDED.sub(lambda one: one.group(1) or one.group(2) or "0", found.group(1))
    if not _PLAIN.match(inside):
        return None
    names = frozenset(name for name in _NAME.findall(inside))
    return Arithmetic(names, frozenset(first or second for first, second in _SET.findall(inside)))
