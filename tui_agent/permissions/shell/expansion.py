"""Expansion of words as the shell does it, on the current state of the file system.

The result contains every word that bash may produce, and sometimes more: here, brackets in a pattern match any
character. An uncertain result contains the mark `UNKNOWN`, which no safety check accepts.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise, product
from math import prod
from typing import Literal, TypeAlias

from .syntax import MARKS, SUM, UNKNOWN, VARIABLE, SimpleCommand, Variable, Word

MAX_WORDS = 256
"""Maximum number of words from one word's braces; a word with more is unknown."""
MAX_BRACES = 64
"""Maximum number of opening braces expanded in one word."""
MAX_VALUES = 2_000
"""Maximum number of words from one word."""
MAX_TURNS = 300
"""Maximum number of combinations of variable values judged one by one."""
MAX_COMPONENTS = 200
"""Maximum number of components of a path pattern; with more, its matches are unknown."""
_MAX_PATTERN = 4_096
"""Maximum length of a path pattern in characters, that of a path."""
MAX_ENTRIES = 50_000
"""Maximum number of directory entries read for one script."""


@dataclass(frozen=True, slots=True)
class Value:
    """Value of a variable, or of the word that a `$(…)` becomes, as far as a script tells."""

    kind: Literal["text", "words", "number", "revision", "open"]
    """`text`: one of `texts`. `words`: a list of `texts`. `open`: unknown, and set by the script."""
    texts: tuple[str, ...] = ()

    @property
    def is_one_of_several(self) -> bool:
        """True if it is a text of which several are possible."""
        return self.kind == "text" and len(self.texts) > 1


NUMBER = Value("number")
"""A number, or nothing."""
REVISION = Value("revision")
"""Names of revisions, or nothing."""
OPEN = Value("open")
Bindings = Mapping[str, Value]
"""Values of the variables that a script sets. One that is missing has the value of the environment, if any."""

_NAME = re.compile(r"\w+")
_OPERATION = re.compile(r"(\w+)(%%?|##?)(.*)\Z", re.DOTALL)
_MAX_CUT = 500
"""Maximum length of a value that is trimmed, in characters; the pattern has at most one star, so matching stays cheap.
"""
_UNSPLIT = re.compile(r"[\w./:=@%+,-]*\Z")
_GLOB = frozenset("*?[")
_SET = re.compile(r"\[(?:[\w.]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)+\]\Z", re.ASCII)
_QUOTING = frozenset("'\"\\")
_USER = re.compile(r"~[A-Za-z_][\w.-]*\Z")
_RANGE = re.compile(r"(?:(-?\d+)\.\.(-?\d+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.(-?\d+))?\Z")
_PADDED = re.compile(r"-?0\d")


@dataclass(frozen=True, slots=True)
class ListedDirectories:
    """Directories that patterns were matched against, and whose names the expansion therefore shows."""

    directories: tuple[str, ...] = ()
    """Absolute paths, links not followed."""
    is_certain: bool = True
    """False if there are others that only the running shell knows."""


class Expander:
    """Expands the words of one script, reading at most `MAX_ENTRIES` directory entries in total."""

    def __init__(self) -> None:
        self.unknown_places: set[str] = set()
        """Variables with which the shell finds directories (`HOME`, …) or splits values, if the script sets them."""
        self._entries = MAX_ENTRIES
        self._listed: dict[str, None] = {}
        self._is_certain = True

    def take_listed_directories(self) -> ListedDirectories:
        """Return the directories listed since the previous call."""
        listed = ListedDirectories(tuple(self._listed), self._is_certain)
        self._listed, self._is_certain = {}, True
        return listed

    def expand(self, word: Word, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
        """Return the words that one word becomes in a working directory, None if unknown."""
        if not word.live and not word.variables:
            return (word.value,)
        values: list[str] = []
        for one in expand_braces(word):
            for fixed in self._with_variables(self._with_home(one, directory), directory, bindings):
                values.extend(self._paths(fixed, directory))
                if len(values) > MAX_VALUES:
                    return (plain_part(word),)
        return tuple(values)

    def words_of(self, command: SimpleCommand, directory: str, bindings: Bindings) -> list[str] | None:
        """Return the words of a command if each variable has exactly one value, else None."""
        turns = single_bindings(bindings, command.words)
        if turns is None or len(turns) != 1:
            return None
        return [value for word in command.words for value in self.expand(word, directory, bindings)]

    def assigned(self, value: Word, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
        """Return the values of a variable after an assignment, where words are not split and patterns not expanded."""
        variables = tuple(Variable(variable.name, quoted=True) for variable in value.variables)
        tildes = frozenset(at for at in value.live if value.value[at] == "~")
        if not tildes <= {0}:
            return (UNKNOWN,)  # In an assignment, a tilde after a colon is a home directory, too.
        word = self._with_home(Word(value.value, tildes, variables), directory)
        found = self._with_variables(word, directory, bindings)
        return tuple(word.value for word in found)

    def _with_home(self, word: Word, directory: str | None) -> Word:
        """Return the word with its tilde expanded.

        To bash, a tilde whose user name is partly quoted is a plain character.
        """
        if 0 not in word.live or word.value[0] != "~":
            return word
        prefix = word.value.partition("/")[0]
        end = len(prefix)
        home = UNKNOWN
        may_be_set = self.unknown_places and prefix in ("~", "~+")
        if word.text[: end + 1] in (prefix, f"{prefix}/") and not may_be_set:
            if prefix == "~+":
                home = directory or UNKNOWN
            elif prefix == "~" or _USER.match(prefix):
                home = os.path.expanduser(prefix)
        return joined_words(Word(home), part_of(word, end, len(word.value)))

    def _paths(self, word: Word, directory: str | None) -> list[str]:
        """Expand pathnames; a pattern without a match stays as it is."""
        if not has_glob(word):
            return [word.value]
        search = _Search(directory or "/", self._entries)
        is_known = UNKNOWN not in word.value and (directory is not None or word.value.startswith("/"))
        found = search.run(word) if is_known else None
        self._entries = search.entries_left
        self._listed |= dict.fromkeys(search.listed)
        if found is None:
            self._is_certain = False
            return [plain_part(word)]
        # A wide search may match where bash finds nothing and keeps the pattern.
        # A quoted `-` in brackets is not a range; the text of a word with variables is not kept.
        is_plain = _QUOTING.isdisjoint(word.text) if word.text else "-" not in word.value
        is_certain = not search.is_wide or (is_plain and any(map(search.is_certain, found)))
        return found if found and is_certain else [*found, word.value]

    def _with_variables(self, word: Word, directory: str | None, bindings: Bindings) -> list[Word]:
        """Return the word with each value of its variables; a value that the shell would split counts as unknown."""
        if not word.variables:
            return [word]
        is_splitting = "IFS" in self.unknown_places
        if word.value == VARIABLE and not word.variables[0].quoted and not is_splitting:
            held = bindings.get(word.variables[0].name, OPEN)
            if held.kind == "words":
                return [Word(value if _UNSPLIT.match(value) else UNKNOWN) for value in held.texts]
        choices: list[tuple[str, ...]] = []
        combinations = 1
        for variable in word.variables:
            is_unknown = not self.unknown_places.isdisjoint(_NAME.findall(variable.name)[:1])
            values = (UNKNOWN,) if is_unknown else _values_of(variable.name, directory, bindings)
            if not variable.quoted and (is_splitting or not all(value and _UNSPLIT.match(value) for value in values)):
                if any(not _GLOB.isdisjoint(value) for value in values):
                    self._is_certain = False
                values = (UNKNOWN,)
            choices.append(values)
            combinations *= len(values)
        if combinations > MAX_VALUES:
            return [Word(plain_part(word))]
        return [_filled(word, chosen) for chosen in product(*choices)]


def single_bindings(bindings: Bindings, words: Sequence[Word]) -> list[Bindings] | None:
    """Return the bindings once for each combination of the words' variables, or None if there are too many."""
    used = sorted({base_name(variable.name) for word in words for variable in word.variables})
    held = {name: bindings[name] for name in used if name in bindings}
    several = {name: value.texts for name, value in held.items() if value.is_one_of_several}
    if prod(map(len, several.values())) > MAX_TURNS:
        return None
    chosen = (zip(several, texts, strict=True) for texts in product(*several.values()))
    return [{**bindings, **{name: Value("text", (text,)) for name, text in turn}} for turn in chosen]


def without_expansion(word: Word) -> Word:
    """Return a word of `[[ … ]]`, where braces and patterns are not expanded."""
    return Word(word.value, frozenset(), word.variables, word.text)


def base_name(name: str) -> str:
    """Return the variable that `name%pattern` and the like trim; any other name is returned as it is."""
    found = _OPERATION.match(name)
    return found.group(1) if found else name


def is_computed_name(name: str) -> bool:
    """True if a value is none of the environment: an output, an argument, an array."""
    return name != SUM and not base_name(name).isidentifier()


def has_glob(word: Word) -> bool:
    """True if pathname expansion applies to the word."""
    return any(word.value[at] in _GLOB for at in word.live)


def expand_braces(word: Word) -> tuple[Word, ...]:
    """Return the words that a word's unquoted braces produce, in bash's order.

    No other expansion turns one word of text into several, including the command's name.
    """
    braces = sum(1 for at in word.live if word.value[at] == "{")
    return _without_braces(word, braces) if braces else (word,)


@lru_cache(maxsize=4)
def _without_braces(word: Word, braces: int) -> tuple[Word, ...]:
    """Return the words for a word with braces; a few are kept, because hostile scripts repeat their words."""
    expanded: list[Word] = []
    if braces <= MAX_BRACES and _least_count(word) <= MAX_WORDS:
        for found in _expanded(word, 0):
            # The shell drops an empty word unless it was quoted, which the value no longer tells.
            expanded.append(found if found.value else Word(UNKNOWN))
            if len(expanded) > MAX_WORDS:
                break
        else:
            return tuple(expanded)
    return (Word(plain_part(word)),)


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


def joined_words(*parts: Word) -> Word:
    """Join parts to one word."""
    live: set[int] = set()
    value = ""
    for part in parts:
        live.update(at + len(value) for at in part.live)
        value += part.value
    return Word(value, frozenset(live), tuple(variable for part in parts for variable in part.variables))


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
        if choices := _choices(word, start):
            alternatives, end = choices
            before, after = part_of(word, 0, start), part_of(word, end + 1, len(word.value))
            for alternative in alternatives:
                for middle in _expanded(alternative, 0):
                    for rest in _expanded(after, 0):
                        yield joined_words(before, middle, rest)
            return
    yield word


def _choices(word: Word, start: int) -> tuple[list[Word], int] | None:
    """Return the alternatives of the braces that open at `start` and their end, or None for literal text."""
    depth = 0
    cuts = [start]
    for at in sorted(place for place in word.live if place >= start):
        letter = word.value[at]
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if (letter == "," and depth == 1) or depth == 0:
            cuts.append(at)
        if depth == 0:
            break
    else:
        return None
    if len(cuts) > 2:
        return [part_of(word, cut + 1, following) for cut, following in pairwise(cuts)], cuts[-1]
    counted = _counted(word.value[start + 1 : cuts[-1]])
    return (counted, cuts[-1]) if counted else None


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
    return [Word(f"{number:0{width}d}" if first else chr(number)) for number in numbers[: MAX_WORDS + 1]]


def _filled(word: Word, chosen: Sequence[str]) -> Word:
    """Return the word with these texts in place of its variables."""
    pieces: list[Word] = []
    at = 0
    for text, piece in zip(("", *chosen), word.value.split(VARIABLE), strict=True):
        pieces += (
            Word(text),
            Word(piece, frozenset(place - at for place in word.live if 0 <= place - at < len(piece))),
        )
        at += len(piece) + 1
    return joined_words(*pieces)


def _values_of(name: str, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
    if (held := bindings.get(name)) is not None and held.kind == "text":
        return held.texts
    if name == "HOME":
        return (os.path.expanduser("~"),)
    if name == "PWD" and directory is not None:
        return (directory,)
    if operation := _OPERATION.match(name):
        base, operator, pattern = operation.groups()
        return tuple(dict.fromkeys(_part(value, operator, pattern) for value in _values_of(base, directory, bindings)))
    return (UNKNOWN,)


def _part(value: str, operator: str, pattern: str) -> str:
    """Return a value without its shortest or longest prefix (`#`) or suffix (`%`) that matches a pattern."""
    if not MARKS.isdisjoint(value) or len(value) > _MAX_CUT or pattern.count("*") > 1:
        return UNKNOWN
    fits = re.compile(re.escape(pattern).replace("\\*", ".*").replace("\\?", "."), re.DOTALL).fullmatch
    is_ending = operator.startswith("%")
    found = [at for at in range(len(value) + 1) if fits(value[at:] if is_ending else value[:at])]
    if not found:
        return value
    # A longer suffix begins earlier, a longer prefix ends later.
    is_longest = len(operator) == 2
    at = found[0] if is_ending == is_longest else found[-1]
    return value[:at] if is_ending else value[at:]


_Patterns: TypeAlias = tuple[re.Pattern[str], re.Pattern[str]]


@dataclass(slots=True)
class _Search:
    """Matching of one pattern, directory by directory."""

    directory: str
    entries_left: int
    is_wide: bool = False
    """True if it matches more than bash would."""
    patterns: list[_Patterns | None] = field(default_factory=list[_Patterns | None])
    """For each component; None for a literal one."""
    listed: list[str] = field(default_factory=list[str])
    """Absolute paths of the directories read."""

    def run(self, word: Word) -> list[str] | None:
        """Return the paths that match; None if there is too much to search."""
        components = word.value.split("/")
        if len(components) > MAX_COMPONENTS + 1 or len(word.value) > _MAX_PATTERN:
            return None
        start = 0
        for component in components:
            part = part_of(word, start, start + len(component))
            start += len(component) + 1
            self.patterns.append(_patterns(part) if has_glob(part) else None)
        self.is_wide = any(found and found[0] != found[1] for found in self.patterns)
        paths = [""]
        for number, (component, patterns) in enumerate(zip(components, self.patterns, strict=True)):
            starts = [f"{path}/" for path in paths] if number else paths
            paths = [start + name for start in starts for name in self._names(start, component, patterns)]
            if len(paths) > MAX_VALUES or self.entries_left < 0:
                return None
        # The result also shows whether a literal name exists.
        self.listed.extend(os.path.join(self.directory, os.path.dirname(path)) for path in paths)
        return [path for path in paths if os.path.lexists(os.path.join(self.directory, path))]

    def is_certain(self, path: str) -> bool:
        """True if bash matches a path that was found, too."""
        names = zip(self.patterns, path.split("/"), strict=True)
        return all(patterns is None or patterns[1].match(name) for patterns, name in names)

    def _names(self, start: str, component: str, patterns: _Patterns | None) -> list[str]:
        """Return the names of one component below `start`."""
        if patterns is None:
            return [component]
        pattern, place = patterns[0], os.path.join(self.directory, start or ".")
        try:
            with os.scandir(place) as entries:
                self.listed.append(place)
                # Shells before bash 5.2 match the directory itself and its parent, too.
                names = [name for name in (".", "..") if pattern.match(name)]
                for entry in entries:
                    self.entries_left -= 1
                    if self.entries_left < 0:
                        break
                    # In a byte locale, `?` matches one byte of a longer character.
                    if pattern.match(entry.name) or (self.is_wide and not entry.name.isascii()):
                        names.append(entry.name)
                return names
        except OSError:
            return []


def _patterns(component: Word) -> _Patterns:
    """Return expressions for one component: one that matches all that it may match in bash, one only what is certain.

    They differ in `?`, which matches one byte in some locales, and in `[…]`.
    """
    value = component.value
    wide, certain = [""], [""]
    at = 0
    while at < len(value):
        letter = value[at]
        is_live = at in component.live and letter in _GLOB
        close = value.find("]", at + 2) if is_live and letter == "[" else at
        if not is_live or close < 0:
            wide[-1] += re.escape(letter)
            certain[-1] += re.escape(letter)
        elif letter == "*":
            wide.append("")
            certain.append("")
        else:
            one = value[at : close + 1]
            wide[-1] += "."
            certain[-1] += r"[\x00-\x7f]" if one == "?" else one if _SET.match(one) else "(?!)"
        at = max(at, close) + 1
    hidden = "" if value.startswith(".") else r"(?!\.)"
    return _compiled(hidden, wide), _compiled(hidden, certain)


def _compiled(hidden: str, pieces: list[str]) -> re.Pattern[str]:
    # Atomic groups take the first match of each piece for good, so no pattern can make matching slow.
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    last = f".*{pieces[-1]}" if len(pieces) > 1 else ""
    return re.compile(rf"(?s:{hidden}{pieces[0]}{middle}{last})\Z")
