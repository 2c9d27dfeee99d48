"""Texts and names that look equal and are not: other kinds of blanks, quotes and dashes, other compositions of letters,
and characters without a width."""

import re
import unicodedata
from collections.abc import Iterable

_KINDS = {
    " ": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u2800\u3000",
    "'": "\u2018\u2019\u201a\u201b\u2032\u02bc\uff07",
    '"': "\u201c\u201d\u201e\u201f\u2033\uff02",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d",
}
_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U000e0001-\U000e007f"
)
"""Characters without a width, as the inside of a pattern's brackets."""
_HIDDEN = re.compile(f"[{_UNSEEN}]+")
_PLAIN = {ord(other): plain for plain, others in _KINDS.items() for other in others}
_LONGEST = 20_000
_MOST_NAMED = 4


def plain_form(text: str) -> str:
    """Return a text as all texts that look equal to it have it."""
    return text if text.isascii() else unicodedata.normalize("NFC", _HIDDEN.sub("", text.translate(_PLAIN)))


def hidden_difference(there: str, wanted: str) -> str:
    """Name the characters because of which a text does not contain one that may look equal; empty without any.

    It may look equal if it differs only in few characters beyond ASCII, such as letters of another alphabet, or in
    forms of the same letters.
    """
    if there == wanted or (there + wanted).isascii():
        return ""
    if len(there) == len(wanted):
        pairs = [(one, other) for one, other in zip(there, wanted, strict=True) if one != other]
        if all(not (one + other).isascii() for one, other in pairs):
            return code_points(there, wanted)
    if _rough_form(wanted) not in _rough_form(there):
        return ""
    here = "".join(one for one in dict.fromkeys(there) if not one.isascii() and one not in wanted)
    missing = "".join(one for one in dict.fromkeys(wanted) if not one.isascii() and one not in there)
    found = code_points(here, "") if here else ""
    return found + (f"{' ' if found else ''}instead of {code_points(missing, '')}" if missing else "")


def _rough_form(text: str) -> str:
    """Return a text in which all forms of a letter are the same, such as those of full width and ligatures."""
    return plain_form(unicodedata.normalize("NFKC", plain_form(text))).strip()


def find_lookalikes(text: str, wanted: str, most: int) -> list[tuple[int, int]]:
    """Return start and end of at most `most` places in a text that look equal to `wanted`."""
    if len(wanted) > _LONGEST or (text.isascii() and wanted.isascii()):
        return []
    pattern = f"[{_UNSEEN}]*".join(map(_alternatives, plain_form(wanted)))
    if not pattern:
        return []
    found: list[tuple[int, int]] = []
    for match in re.finditer(pattern, text):
        found.append(match.span())
        if len(found) == most:
            break
    return found


def code_points(there: str, wanted: str) -> str:
    """Name the characters in which two texts that look equal differ, such as `U+00A0 NO-BREAK SPACE instead of …`.

    If nothing is `wanted`, name all characters.
    """
    if not wanted:
        return _listed(map(_named, there))
    if len(there) == len(wanted):
        pairs = dict.fromkeys((one, other) for one, other in zip(there, wanted, strict=True) if one != other)
        return _listed(f"{_named(one)} instead of {_named(other)}" for one, other in pairs)
    here = [character for character in dict.fromkeys(there) if character not in wanted]
    missing = [character for character in dict.fromkeys(wanted) if character not in there]
    found = _listed(map(_named, here)) or f"{len(there):,} characters"
    if here and not missing:
        return found
    return f"{found} instead of {_listed(map(_named, missing)) or f'{len(wanted):,} characters'}"


def _alternatives(character: str) -> str:
    """Return a pattern for the characters that look equal to one."""
    if character in _KINDS:
        return f"[{re.escape(character + _KINDS[character])}]"
    apart = unicodedata.normalize("NFD", character)
    return re.escape(character) if apart == character else f"(?:{re.escape(character)}|{re.escape(apart)})"


def _named(character: str) -> str:
    name = unicodedata.name(character, "")
    return f"U+{ord(character):04X}{f' {name}' if name else ''}"


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return ", ".join(shown[:_MOST_NAMED]) + more
