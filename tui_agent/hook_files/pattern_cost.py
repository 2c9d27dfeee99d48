"""Bounds the time that a regular expression of a hook file can take, before it is ever used."""

import re
from dataclasses import dataclass, field

LONGEST_SUBJECT = 128
"""Most characters of a text that matchers are compared with."""
MAX_WAYS = LONGEST_SUBJECT**3
"""Most ways in which an accepted pattern may match a text from one place: those of three repeats in a row."""

_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?P<group>\(\??)|(?P<end>\))|(?P<or>\|)"
    r"|(?P<repeat>(?:[*+?]|\{(?P<least>\d*),?(?P<most>\d*)\})[?+]?)|.",
    re.DOTALL,
)
_COMMENTED = re.compile(r"\(\?(?:[a-zA-Z]*x|#)")
"""Begins a verbose pattern or a comment: comments may contain anything."""


@dataclass(slots=True)
class _Group:
    """The alternatives of a group, read so far."""

    closed: int = 0
    """Ways of the alternatives before the present one."""
    atoms: list[int] = field(default_factory=list[int])
    """Ways of each part of the present one."""

    def ways(self) -> int:
        product = 1
        for ways in self.atoms:
            product = min(product * ways, MAX_WAYS + 1)
        return min(self.closed + product, MAX_WAYS + 1)


def is_costly(pattern: str) -> bool:
    """Return True if matching a valid pattern could take long, because it could match in very many ways.

    The count is an upper bound: parts in a row multiply, alternatives add up, and a repeat of what itself can match in
    several ways is always too much. An exact number of repeats counts like any other, because a group can match nothing
    many times.
    """
    groups = [_Group()]
    for token in _TOKEN.finditer(pattern):
        group = groups[-1]
        if token["group"]:
            groups.append(_Group())
        elif token["or"]:
            group.closed, group.atoms = group.ways(), []
        elif token["end"]:
            if len(groups) == 1:
                return True
            groups.pop()
            groups[-1].atoms.append(group.ways())
        elif token["repeat"] and group.atoms:
            group.atoms[-1] = _repeated(group.atoms[-1], token)
        else:
            group.atoms.append(1)
    return len(groups) > 1 or groups[0].ways() > MAX_WAYS or _COMMENTED.search(pattern) is not None


def _repeated(ways: int, token: re.Match[str]) -> int:
    if token[0].startswith("?"):
        return ways + 1
    if ways > 1 or max(int(token[name] or 0) for name in ("least", "most")) > LONGEST_SUBJECT:
        return MAX_WAYS + 1
    return LONGEST_SUBJECT
