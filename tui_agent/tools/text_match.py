"""Exact replacement in a text, else of the only text that looks equal, else with a hint at similar lines."""

import difflib
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tui_agent.protocol.errors import ToolError

from .text_format import printable, uses_crlf

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
    """Return the form that all texts have in common which look equal to a text, for comparisons."""
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


_PLACES_SHOWN = 10
_CANDIDATES = 3
_LINES_COMPARED = 5_000
_LONGEST_COMPARED = 300
_LINE_END = "\n"
_NUMBERED = re.compile(r"\s*\d+\t")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Result of a replacement."""

    text: str
    """The whole new text; everything else, line endings included, is unchanged."""
    count: int
    lines: tuple[tuple[int, int], ...] = ()
    """First and last line of each place in the old text, from 0."""
    note: str = ""
    """A note if the text differs from the one asked for, although it looks equal."""


def replace_text(text: str, old: str, new: str, *, everywhere: bool) -> Replacement:
    """Replace `old`, which must occur exactly, with `new`: every occurrence, or the only one.

    The search treats CR LF and LF as the same line ending; `new` gets the line endings of the text it replaces. If
    `old` does not occur, and exactly one text looks equal to it, that one is replaced.

    Raises:
        ToolError: nothing would change, `old` is not found, or it occurs more than once without `everywhere`.
    """
    view, old, new = (part.replace("\r\n", "\n") for part in (text, old, new))
    if old == new:
        raise ToolError("old_string and new_string are the same (edit does not change line endings)")
    note = ""
    if old not in view:
        old, note = _lookalike(view, old, everywhere=everywhere)
    first = view.find(old)
    # From the next character on, not from behind the first: overlapping places are ambiguous, too.
    if not everywhere and view.find(old, first + 1) >= 0:
        lines = [view.count("\n", 0, place) + 1 for place in _places(view, old, overlapping=True)]
        raise ToolError(_ambiguous(lines))
    places = list(_places(view, old, overlapping=False)) if everywhere else [first]
    lines = tuple(_lines_of(view, places, old))
    # Without CR LF, places in the view are places in the text.
    if len(view) == len(text):
        return Replacement(text.replace(old, new, -1 if everywhere else 1), len(places), lines, note)
    return Replacement(_replaced_with_endings(text, places, old, new), len(places), lines, note)


def _lookalike(view: str, old: str, *, everywhere: bool) -> tuple[str, str]:
    """Return the only text that looks equal to `old`, and a note on how it differs."""
    spans = find_lookalikes(view, old, _PLACES_SHOWN + 1)
    texts = list(dict.fromkeys(view[start:end] for start, end in spans))
    if not texts:
        raise ToolError(_not_found(view, old))
    if len(texts) == 1 and (everywhere or len(spans) == 1):
        return texts[0], f"the file had {code_points(texts[0], old)} in old_string; new_string was written as it is"
    lines = [
        f"line {view.count(_LINE_END, 0, start) + 1:,}: {code_points(view[start:end], old)}" for start, end in spans
    ]
    raise ToolError(
        f"old_string was not found, but {len(spans)} places look equal to it; use their characters, and more of the "
        f"surrounding lines: {'; '.join(lines)}"
    )


def _lines_of(text: str, places: list[int], part: str) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line, from 0, of each place at which `part` stands."""
    line, counted = 0, 0
    # A line end at its end belongs to its last line.
    height = part.removesuffix("\n").count("\n")
    for place in places:
        line += text.count("\n", counted, place)
        counted = place
        yield line, line + height


def _places(text: str, part: str, *, overlapping: bool) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + (1 if overlapping else len(part)))


def _replaced_with_endings(text: str, places: list[int], old: str, new: str) -> str:
    """Replace in a text with CR LF; `places` are positions in the same text with LF only."""
    usual = "\r\n" if uses_crlf(text) else "\n"
    ends = [match.start() - number for number, match in enumerate(re.finditer("\r\n", text))]
    pieces: list[str] = []
    done = 0
    for place in places:
        start, end = (position + bisect_left(ends, position) for position in (place, place + len(old)))
        replaced = text[start:end]
        ending = usual if "\n" not in replaced else "\r\n" if "\r\n" in replaced else "\n"
        pieces += (text[done:start], new.replace("\n", ending))
        done = end
    return "".join([*pieces, text[done:]])


def _ambiguous(lines: list[int]) -> str:
    shown = ", ".join(f"{line:,}" for line in lines[:_PLACES_SHOWN])
    more = f" and {len(lines) - _PLACES_SHOWN:,} more" if len(lines) > _PLACES_SHOWN else ""
    return (
        f"old_string occurs {len(lines):,} times, at lines {shown}{more}; include more of the surrounding lines until "
        "it is unique, or set replace_all"
    )


def _not_found(view: str, old: str) -> str:
    """Return a probable reason why `old` was not found, and the lines most similar to it."""
    words = "old_string was not found"
    if all(_NUMBERED.match(line) for line in old.split("\n") if line.strip()) and old.strip():
        return f"{words}; remove the line number and the tab that read shows before each line"
    lines = view.split("\n")
    spaced = _match_ignoring_whitespace(lines, old.split("\n"))
    if spaced is not None:
        first, last = spaced
        there = "\n".join(f"{number:>6}\t{printable(lines[number - 1])}" for number in range(first, last + 1))
        unusual = "".join(sorted({one for one in "".join(lines[first - 1 : last]) if one.isspace() and one != " "}))
        points = f" (they have {code_points(unusual, '')})" if unusual else ""
        return f"{words}, but lines {first:,} to {last:,} differ from it only in whitespace{points}:\n{there}"
    wanted = next((line for line in old.split("\n") if line.strip()), "")
    near = _nearest(lines, wanted)
    if not near:
        return f"{words}, nor any line similar to its first line; read the file again"
    there = "\n".join(f"{number:>6}\t{printable(line[:_LONGEST_COMPARED])}" for number, line in near)
    hidden = [f"line {number:,} has {points}" for number, line in near if (points := hidden_difference(line, wanted))]
    return f"{words}; most similar to its first line{''.join(f' ({one})' for one in hidden)}:\n{there}"


def _match_ignoring_whitespace(lines: list[str], wanted: list[str]) -> tuple[int, int] | None:
    """Return the first and last line number of the wanted lines, ignoring whitespace and outer blank lines."""
    bare = [" ".join(line.split()) for line in wanted]
    while bare and not bare[-1]:
        bare.pop()
    while bare and not bare[0]:
        bare.pop(0)
    if not bare:
        return None
    have = [" ".join(line.split()) for line in lines]
    for start in range(len(have) - len(bare) + 1):
        if have[start] == bare[0] and have[start : start + len(bare)] == bare:
            return start + 1, start + len(bare)
    return None


def _nearest(lines: list[str], wanted: str) -> list[tuple[int, str]]:
    """Return the lines most similar to `wanted`, with their numbers, in order."""
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        bare = line.strip()[:_LONGEST_COMPARED]
        if bare and len(numbers) < _LINES_COMPARED:
            numbers.setdefault(bare, number)
    near = difflib.get_close_matches(wanted.strip()[:_LONGEST_COMPARED], list(numbers), n=_CANDIDATES, cutoff=0.5)
    near = near or [bare for bare in numbers if hidden_difference(bare, wanted.strip())][:_CANDIDATES]
    return sorted((numbers[bare], lines[numbers[bare] - 1]) for bare in near)
