"""Expansion of words as the shell does it, on the current state of the file system.

The result contains every word that bash may produce, and sometimes more: here, brackets in a pattern match any
character. An uncertain result contains the mark `UNKNOWN`, which no safety check accepts.
"""

import fnmatch
import glob
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise, product
from math import prod
from typing import Literal

from .syntax import MARKS, SUM, UNKNOWN, VARIABLE, SimpleCommand, Variable, Word

MAX_WORDS = 256
"""Maximum number of words from one word's braces; a word with more is unknown."""
MAX_BRACES = 64
"""Maximum number of opening braces, and of variables, expanded in one word."""
MAX_VALUES = 2_000
"""Maximum number of words from one word."""
MAX_TURNS = 300
"""Maximum number of combinations of variable values judged one by one."""
MAX_COMPONENTS = 200
"""Maximum number of components of a path pattern; with more, its matches are unknown."""
MAX_ENTRIES = 50_000
"""Maximum number of directory entries read for one script."""
_MAX_PATTERN = 4_096
"""Maximum length of a path pattern, that of a path, and of a word with braces, in characters."""
_MAX_RANGE = 100
"""Maximum length of the text of a range in braces, in characters."""
_MAX_CUT = 500
"""Maximum length of a value that is trimmed, in characters; the pattern has at most one star, so matching stays cheap.
"""


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

# A word is cut and joined as a plain string in which lone surrogates stand for its live characters and its variables.
_LIVE = {letter: chr(0xDC00 + ord(letter) % 0x80) for letter in f"{UNKNOWN}*?[]{{}},~"}
_FIRST_VARIABLE = 0xDD00
_PLAIN = {ord(mark): letter for letter, mark in _LIVE.items()} | {_FIRST_VARIABLE + at: VARIABLE for at in range(0x100)}
_STAR, _ONE, _BRACKET, _CLOSING_BRACKET, _OPENING, _CLOSING, _COMMA, _HOME = map(_LIVE.__getitem__, "*?[]{},~")
_GLOBS = frozenset((_STAR, _ONE, _BRACKET))
_ANY_BRACKETS = re.compile(f"{_BRACKET}.+[]{_CLOSING_BRACKET}]")
_SIMPLE_BRACKETS = re.compile(rf"{_BRACKET}[!^]?[\w.:=@%+ -]+{_CLOSING_BRACKET}")
_INEXACT = re.compile(f"{_ONE}|{_BRACKET}[^/]+[]{_CLOSING_BRACKET}]")
"""Parts of a pattern that match any character here. In bash, `?` may be a byte, and brackets depend on the language."""
_VARIABLES = re.compile("[\udd00-\uddff]")
_BRACES = re.compile(f"[{_OPENING}{_CLOSING}{_COMMA}]")
_MARK = f"[{UNKNOWN}{VARIABLE}\udc00-\udc7f\udd00-\uddff]"
_CHANGING = re.compile(f"{_MARK}(?:.*{_MARK})?", re.DOTALL)

_GLOB = frozenset("*?[")
_PLACES = ("HOME", "PWD")
_OPERATION = re.compile(r"(\w+)(%%?|##?)(.*)\Z", re.DOTALL)
_UNSPLIT = re.compile(r"[\w./:=@%+,-]*\Z")
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
        self.sets_places = False
        """True if the script may set `HOME`, `PWD` or the like, or `IFS`, with which the shell splits values."""
        self._entries_left = MAX_ENTRIES
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
        marked = _marked(word)
        for text in _alternatives(marked):
            at_home = self._with_home(text, word.text if text == marked else "", directory)
            for one in self._with_variables(at_home, word.variables, directory, bindings):
                values.extend(self._paths(one, directory))
                if len(values) > MAX_VALUES:
                    return (_known_part(marked),)
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
        text = self._with_home(_marked(Word(value.value, tildes, variables)), "", directory)
        return tuple(map(_plain, self._with_variables(text, variables, directory, bindings)))

    def _with_home(self, text: str, written: str, directory: str | None) -> str:
        """Return the text with its tilde expanded.

        To bash, a tilde whose user name is partly quoted is a plain character, so the word must be known as `written`.
        """
        if not text.startswith(_HOME):
            return text
        user, slash, rest = text.partition("/")
        prefix = f"~{user[1:]}"
        home = UNKNOWN
        may_be_set = self.sets_places and prefix in ("~", "~+")
        if written[: len(prefix) + 1] in (prefix, f"{prefix}/") and not may_be_set:
            if prefix == "~+":
                home = directory or UNKNOWN
            elif prefix == "~" or _USER.match(prefix):
                home = os.path.expanduser(prefix)
        return home + slash + rest

    def _with_variables(
        self, text: str, variables: Sequence[Variable], directory: str | None, bindings: Bindings
    ) -> list[str]:
        """Return the text with each value of its variables; a value that the shell would split counts as unknown."""
        used = {ord(mark): variables[ord(mark) - _FIRST_VARIABLE] for mark in _VARIABLES.findall(text)}
        if len(text) == 1 and used:
            [variable] = used.values()
            held = bindings.get(variable.name, OPEN)
            if held.kind == "words" and not variable.quoted:
                return [value if self._is_unsplit(value) else UNKNOWN for value in held.texts]
        choices: list[tuple[str, ...]] = []
        for variable in used.values():
            is_unknown = self.sets_places and base_name(variable.name) in _PLACES
            values = (UNKNOWN,) if is_unknown else _values_of(variable.name, directory, bindings)
            if not variable.quoted:
                if any(not _GLOB.isdisjoint(value) for value in values):
                    self._is_certain = False
                values = tuple(value if value and self._is_unsplit(value) else UNKNOWN for value in values)
            choices.append(values)
        if prod(map(len, choices)) > MAX_VALUES:
            return [_known_part(text)]
        return [text.translate(dict(zip(used, chosen, strict=True))) for chosen in product(*choices)]

    def _is_unsplit(self, value: str) -> bool:
        """True if the shell neither splits nor expands an unquoted value."""
        return not self.sets_places and _UNSPLIT.match(value) is not None

    def _paths(self, text: str, directory: str | None) -> list[str]:
        """Expand pathnames; a pattern without a match stays as it is."""
        if _GLOBS.isdisjoint(text):
            return [_plain(text)]
        is_known = UNKNOWN not in _plain(text) and (directory is not None or text.startswith("/"))
        found = self._matches(text.split("/"), directory or "/") if is_known and len(text) <= _MAX_PATTERN else None
        if found is None:
            self._is_certain = False
            return [_known_part(text)]
        # An inexact pattern may match here where bash finds nothing and keeps it.
        return found if found and not _INEXACT.search(text) else [_plain(text), *found]

    def _matches(self, components: list[str], directory: str) -> list[str] | None:
        """Return the paths that match a pattern, sorted; None if there is too much to search."""
        if len(components) > MAX_COMPONENTS + 1:
            return None
        paths = [""]
        for number, component in enumerate(components):
            starts = [f"{path}/" for path in paths] if number else paths
            if _GLOBS.isdisjoint(component):
                paths = [start + _plain(component) for start in starts]
            else:
                paths = [start + name for start in starts for name in self._names(start, component, directory)]
            if len(paths) > MAX_VALUES or self._entries_left < 0:
                return None
        # The result also shows whether a literal name exists.
        self._listed |= dict.fromkeys(os.path.join(directory, os.path.dirname(path)) for path in paths)
        return sorted(path for path in paths if os.path.lexists(os.path.join(directory, path)))

    def _names(self, start: str, component: str, directory: str) -> list[str]:
        """Return the names below `start` that match one component of a pattern."""
        pattern, place = _pattern(component), os.path.join(directory, start or ".")
        try:
            with os.scandir(place) as entries:
                self._listed[place] = None
                # Shells before bash 5.2 match the directory itself and its parent, too.
                names = [name for name in (".", "..") if pattern.match(name)]
                for entry in entries:
                    self._entries_left -= 1
                    if self._entries_left < 0:
                        break
                    # In a byte locale, `?` matches one byte of a longer character.
                    if pattern.match(entry.name) or (_INEXACT.search(component) and not entry.name.isascii()):
                        names.append(entry.name)
                return names
        except OSError:
            return []


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


# --- marked text ------------------------------------------------------------------------------------------------------


def _marked(word: Word) -> str:
    """Return a word as marked text; `UNKNOWN` if it has too many variables."""
    if len(word.variables) > MAX_BRACES:
        return UNKNOWN
    letters = list(word.value)
    for at in word.live:
        letters[at] = _LIVE[letters[at]]
    variables = (at for at, letter in enumerate(letters) if letter == VARIABLE)
    for number, at in enumerate(variables):
        letters[at] = chr(_FIRST_VARIABLE + number)
    return "".join(letters)


def _plain(text: str) -> str:
    """Return a marked text as the value of a word."""
    return text.translate(_PLAIN)


def _known_part(text: str) -> str:
    """Return the prefix and suffix that every expansion of a marked text keeps, with `UNKNOWN` between them."""
    return _CHANGING.sub(UNKNOWN, text)


# --- braces -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def expand_braces(word: Word) -> tuple[Word, ...]:
    """Return the words that a word's unquoted braces produce, in bash's order.

    No other expansion turns one word of text into several, including the command's name.
    A few results are kept, because hostile scripts repeat their words.
    """
    marked = _marked(word)
    texts = _alternatives(marked)
    return (word,) if texts == (marked,) else tuple(_word(text, word.variables) for text in texts)


def _word(text: str, variables: Sequence[Variable]) -> Word:
    live = frozenset(at for at, letter in enumerate(text) if "\udc00" <= letter <= "\udc7f")
    return Word(_plain(text), live, tuple(variables[ord(mark) - _FIRST_VARIABLE] for mark in _VARIABLES.findall(text)))


@lru_cache(maxsize=4)
def _alternatives(text: str) -> tuple[str, ...]:
    """Return the texts that a marked text's braces produce."""
    if _OPENING not in text:
        return (text,)
    is_short = len(text) <= _MAX_PATTERN and text.count(_OPENING) <= MAX_BRACES
    found = list(islice(_expanded(text), MAX_WORDS + 1)) if is_short else []
    # The shell drops an empty word unless it was quoted, which the text no longer tells.
    return tuple(one or UNKNOWN for one in found) if 0 < len(found) <= MAX_WORDS else (_known_part(text),)


def _expanded(text: str) -> Iterator[str]:
    """Expand the first pair of braces, then everything in and after it."""
    for start in (brace.start() for brace in re.finditer(_OPENING, text)):
        alternatives, end = _choices(text, start)
        if alternatives:
            for alternative in alternatives:
                for middle in _expanded(alternative):
                    for rest in _expanded(text[end:]):
                        yield text[:start] + middle + rest
            return
    yield text


def _choices(text: str, start: int) -> tuple[list[str], int]:
    """Return the alternatives of the braces that open at `start`, none for literal text, and their end."""
    depth = 0
    cuts = [start]
    for brace in _BRACES.finditer(text, start):
        depth += {_OPENING: 1, _CLOSING: -1}.get(brace[0], 0)
        if (brace[0] == _COMMA and depth == 1) or depth == 0:
            cuts.append(brace.start())
        if depth == 0:
            parts = [text[cut + 1 : following] for cut, following in pairwise(cuts)]
            return (parts if len(parts) > 1 else _counted(parts[0])), brace.end()
    return [], start


def _counted(text: str) -> list[str]:
    """Return the words of `1..5` or `a..e`, at most one more than the limit."""
    match = _RANGE.match(text)
    if match is None:
        return []
    if len(text) > _MAX_RANGE:
        return [UNKNOWN]
    first, last, first_letter, last_letter, step_text = match.groups()
    low, high = (int(first), int(last)) if first else (ord(first_letter), ord(last_letter))
    step = max(abs(int(step_text or 1)), 1)
    is_padded = first and (_PADDED.match(first) or _PADDED.match(last))
    width = max(len(first), len(last)) if is_padded else 0
    numbers = range(low, high + 1, step) if low <= high else range(low, high - 1, -step)
    return [f"{number:0{width}d}" if first else chr(number) for number in numbers[: MAX_WORDS + 1]]


# --- values -----------------------------------------------------------------------------------------------------------


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


# --- patterns ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _pattern(component: str) -> re.Pattern[str]:
    """Return an expression for all names that one component of a pattern may match in bash."""
    wild = {_STAR: "*", _ONE: "?"}
    known = _SIMPLE_BRACKETS.sub(_ONE, component)
    if _BRACKET in known:
        # Where brackets such as `[[:lower:]]` or `[!]a]` end is easily misread: they match any text.
        known = _ANY_BRACKETS.sub(_STAR, component)
    pieces = re.split(f"([{_STAR}{_ONE}])", known)
    text = "".join(wild.get(piece) or glob.escape(_plain(piece)) for piece in pieces)
    hidden = "" if component.startswith(".") else r"(?!\.)"
    return re.compile(hidden + fnmatch.translate(text))
