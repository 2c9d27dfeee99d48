"""Brace expansion, the one expansion that can turn one word of text into several, the command's name included."""

import re
from collections.abc import Iterator

from .shell_syntax import UNKNOWN, VARIABLE, Word

MAX_WORDS = 256
"""Most words that one word's braces may become; beyond, what it becomes counts as unknown."""
MAX_BRACES = 64
"""Most opening braces that are followed in one word."""

_RANGE = re.compile(r"(?:(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d+))?\Z")
_PADDED = re.compile(r"-?0\d")


def expand_braces(word: Word) -> tuple[Word, ...]:
    """The words that a word's unquoted braces become, in bash's order; a word without braces is itself."""
    braces = sum(1 for at in word.live if word.value[at] == "{")
    if not braces:
        return (word,)
    if braces > MAX_BRACES or _least_count(word) > MAX_WORDS:
        return (Word(plain_part(word)),)
    expanded: list[Word] = []
    try:
        for found in _expanded(word, 0):
            # An empty word vanishes unless it was quoted, which is not known any more.
            expanded.append(found if found.value else Word(UNKNOWN))
            if len(expanded) > MAX_WORDS:
                return (Word(plain_part(word)),)
    except RecursionError:
        return (Word(plain_part(word)),)
    return tuple(expanded)


def plain_part(word: Word) -> str:
    """What of a word is sure to stand in whatever it becomes: how it begins and how it ends."""
    open_places = [*word.live, *(at for at, letter in enumerate(word.value) if letter in (UNKNOWN, VARIABLE))]
    if not open_places:
        return word.value
    return word.value[: min(open_places)] + UNKNOWN + word.value[max(open_places) + 1 :]


def part_of(word: Word, start: int, end: int) -> Word:
    """The piece of a word between two places of its value."""
    before = word.value[:start].count(VARIABLE)
    inside = word.value[start:end].count(VARIABLE)
    live = frozenset(at - start for at in word.live if start <= at < end)
    return Word(word.value[start:end], live, word.variables[before : before + inside])


def joined_words(first: Word, second: Word) -> Word:
    """Two pieces as one word."""
    shift = len(first.value)
    live = first.live | {at + shift for at in second.live}
    return Word(first.value + second.value, live, first.variables + second.variables)


def _least_count(word: Word) -> int:
    """How many words there will be at least: the pairs of braces that follow one another, multiplied."""
    count, end = 1, -1
    for start in sorted(at for at in word.live if word.value[at] == "{"):
        if start > end and count <= MAX_WORDS and (choices := _choices(word, start)):
            alternatives, end = choices
            count *= len(alternatives)
    return count


def _expanded(word: Word, at: int) -> Iterator[Word]:
    """Expands the first pair of braces at or behind `at`, then everything behind it."""
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
    """The alternatives of the braces that open at `start`, and where they close; None if they are only text."""
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
    """The words of `1..5` or `a..e`, one more than allowed at most."""
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
