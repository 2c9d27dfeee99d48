"""Brace expansion: the only expansion that turns one word of text into several, including the command's name."""

import re
from collections.abc import Iterator

from .syntax import UNKNOWN, VARIABLE, Word

MAX_WORDS = 256
"""Maximum number of words from one word's braces; a word with more is unknown."""
MAX_BRACES = 64
"""Maximum number of opening braces expanded in one word."""

_RANGE = re.compile(r"(?:(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d+))?\Z")
_PADDED = re.compile(r"-?0\d")


def expand_braces(word: Word) -> tuple[Word, ...]:
    """Return the words that a word's unquoted braces produce, in bash's order."""
    braces = sum(1 for at in word.live if word.value[at] == "{")
    if not braces:
        return (word,)
    if braces > MAX_BRACES or _least_count(word) > MAX_WORDS:
        return (Word(plain_part(word)),)
    expanded: list[Word] = []
    try:
        for found in _expanded(word, 0):
            # The shell drops an empty word unless it was quoted, which the value no longer tells.
            expanded.append(found if found.value else Word(UNKNOWN))
            if len(expanded) > MAX_WORDS:
                return (Word(plain_part(word)),)
    except RecursionError:
        return (Word(plain_part(word)),)
    return tuple(expanded)


def plain_part(word: Word) -> str:
    """Return the prefix and suffix that every expansion of a word keeps, with `UNKNOWN` between them."""
    open_places = [*word.live, *(at for at, letter in enumerate(word.value) if letter in (UNKNOWN, VARIABLE))]
    if not open_places:
        return word.value
    return word.value[: min(open_places)] + UNKNOWN + word.value[max(open_places) + 1 :]


def part_of(word: Word, start: int, end: int) -> Word:
    """Return the part of a word between two offsets of its value."""
    before = word.value[:start].count(VARIABLE)
    inside = word.value[start:end].count(VARIABLE)
    live = frozenset(at - start for at in word.live if start <= at < end)
    return Word(word.value[start:end], live, word.variables[before : before + inside])


def joined_words(first: Word, second: Word) -> Word:
    """Join two parts to one word."""
    shift = len(first.value)
    live = first.live | {at + shift for at in second.live} if second.live else first.live
    return Word(first.value + second.value, live, first.variables + second.variables)


def _least_count(word: Word) -> int:
    """Return a lower bound of the number of words: the product of the alternatives of consecutive braces."""
    count, end = 1, -1
    for start in sorted(at for at in word.live if word.value[at] == "{"):
        if start > end and count <= MAX_WORDS and (choices := _choices(word, start)):
            alternatives, end = choices
            count *= len(alternatives)
    return count


def _expanded(word: Word, at: int) -> Iterator[Word]:
    """Expand the first pair of braces at or after `at`, then everything after it."""
    for start in sorted(place for place in word.live if place >= at and word.value[place] == "{"):
        choices = _choices(word, start)
        if choices is None:
            continue
        alternatives, end = choices
        before = part_of(word, 0, start)
        after = part_of(word, end + 1, len(word.value))
        for alternative in alternatives:
            for middle in _expanded(alternative, 0):
                for rest in _expanded(after, 0):
                    yield joined_words(joined_words(before, middle), rest)
        return
    yield word


def _choices(word: Word, start: int) -> tuple[list[Word], int] | None:
    """Return the alternatives of the braces that open at `start` and their end, or None for literal text."""
    depth = 0
    cuts = [start]
    for at in sorted(place for place in word.live if place >= start):
        letter = word.value[at]
        if letter == "{":
            depth += 1
        elif letter == "," and depth == 1:
            cuts.append(at)
        elif letter == "}":
            depth -= 1
            if depth == 0:
                cuts.append(at)
                break
    else:
        return None
    end = cuts[-1]
    if len(cuts) > 2:
        return [part_of(word, cuts[i] + 1, cuts[i + 1]) for i in range(len(cuts) - 1)], end
    counted = _counted(word.value[start + 1 : end])
    return (counted, end) if counted else None


def _counted(text: str) -> list[Word]:
    """Return the words of `1..5` or `a..e`, at most one more than the limit."""
    match = _RANGE.match(text)
    if match is None:
        return []
    first, last, first_letter, last_letter, step_text = match.groups()
    low, high = (int(first), int(last)) if first else (ord(first_letter), ord(last_letter))
    step = max(abs(int(step_text or 1)), 1)
    is_padded = first and (_PADDED.match(first) or _PADDED.match(last))
    width = max(len(first), len(last)) if is_padded else 0
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    shown = [f"{number:0{width}d}" if first else chr(number) for number in numbers[: MAX_WORDS + 1]]
    return [Word(text) for text in shown]
