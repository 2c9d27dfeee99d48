"""Expansion of words as the shell does it, on the current state of the file system.

The result contains every word that bash may produce, and sometimes more: here, brackets in a pattern match any
character. An uncertain result contains the mark `UNKNOWN`, which no safety check accepts.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from .braces import expand_braces, part_of, plain_part
from .syntax import MARKS, SUM, UNKNOWN, VARIABLE, Variable, Word

MAX_VALUES = 2_000
"""Maximum number of words from one word."""
MAX_TURNS = 300
"""Maximum number of combinations of variable values judged one by one."""
MAX_COMPONENTS = 200
"""Maximum number of components of a path pattern; with more, its matches are unknown."""
MAX_ENTRIES = 50_000
"""Maximum number of directory entries read for one script."""

Bindings = Mapping[str, tuple[str, ...]]
"""Possible values of the script's variables, as far as they are known.

A name with the suffix `*` (`WORDS`) maps to the words that the value splits into, for a variable that is a whole word.
"""
OPEN = "#open"
"""Suffix of a variable's name: somewhere in the script it gets an unknown value."""
WORDS = "*"
"""Suffix of a variable's name: its value is a list of words."""

_OPERATION = re.compile(r"(\w+)(%%?|##?)(.*)\Z", re.DOTALL)
_MAX_CUT = 500
"""Maximum length of a value that is trimmed, in characters; the pattern has at most one star, so matching stays cheap.
"""
_UNSPLIT = re.compile(r"[\w./:=@%+,-]*\Z")
_GLOB = frozenset("*?[")
_SET = re.compile(r"\[(?:[\w.]|[a-z]-[a-z]|[A-Z]-[A-Z]|\d-\d)+\]\Z", re.ASCII)
_QUOTING = frozenset("'\"\\")
_USER = re.compile(r"~[A-Za-z_][\w.-]*\Z")


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
        self._entries = MAX_ENTRIES
        self._listed: dict[str, None] = {}
        self._is_certain = True

    def take_listed_directories(self) -> ListedDirectories:
        """Return the directories listed since the previous call."""
        listed = ListedDirectories(tuple(self._listed), self._is_certain)
        self._listed, self._is_certain = {}, True
        return listed

    def expand(self, word: Word, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
        """Return the words that one word becomes.

        Args:
            word: after quote removal.
            directory: the working directory; None if unknown.
            bindings: values of variables.
        """
        if not word.live and not word.variables:
            return (word.value,)
        values: list[str] = []
        for expand_command_braces in expand_braces(word):
            for fixed in self._with_variables(_with_home(expand_command_braces, directory), directory, bindings):
                values.extend(self._paths(fixed, directory))
                if len(values) > MAX_VALUES:
                    return (plain_part(word),)
        return tuple(values)

    def assigned(self, value: Word, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
        """Return the values of a variable after an assignment, where words are not split and patterns not expanded."""
        variables = tuple(Variable(variable.name, quoted=True) for variable in value.variables)
        tildes = frozenset(at for at in value.live if value.value[at] == "~")
        if not tildes <= {0}:
            return (UNKNOWN,)  # In an assignment, a tilde after a colon is a home directory, too.
        found = self._with_variables(_with_home(Word(value.value, tildes, variables), directory), directory, bindings)
        return tuple(word.value for word in found)

    def _paths(self, word: Word, directory: str | None) -> list[str]:
        """Expand pathnames; a pattern without a match stays as it is."""
        if not has_glob(word):
            return [word.value]
        if UNKNOWN in word.value or (directory is None and not word.value.startswith("/")):
            self._is_certain = False
            return [plain_part(word)]
        search = _Search(directory or "/", self._entries)
        found = search.run(word)
        self._entries = search.entries_left
        self._listed |= dict.fromkeys(search.listed)
        if search.gave_up:
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
        if word.value == VARIABLE and not word.variables[0].quoted:
            words = bindings.get(word.variables[0].name + WORDS)
            if words is not None:
                return [Word(value if _UNSPLIT.match(value) else UNKNOWN) for value in words]
        choices: list[tuple[str, ...]] = []
        for variable in word.variables:
            values = _values_of(variable.name, directory, bindings)
            is_safe = variable.quoted or all(value and _UNSPLIT.match(value) for value in values)
            choices.append(values if is_safe else (UNKNOWN,))
            if not is_safe and any(not _GLOB.isdisjoint(value) for value in values):
                self._is_certain = False
        combinations = 1
        for values in choices:
            combinations *= len(values)
        if combinations > MAX_VALUES:
            return [Word(plain_part(word))]
        pieces = word.value.split(VARIABLE)
        return [_filled(word, pieces, chosen) for chosen in product(*choices)]


def single_bindings(bindings: Bindings, words: Sequence[Word]) -> list[Bindings] | None:
    """Return the bindings once for each combination of the words' variables, or None if there are too many."""
    used = {base_name(variable.name) for word in words for variable in word.variables}
    if not used:
        return [bindings]
    several = [name for name in sorted(used) if len(bindings.get(name, ())) > 1]
    count = 1
    for name in several:
        count *= len(bindings[name])
    if count > MAX_TURNS:
        return None
    return [
        {**bindings, **{name: (value,) for name, value in zip(several, chosen, strict=True)}}
        for chosen in product(*(bindings[name] for name in several))
    ]


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


def _with_home(word: Word, directory: str | None) -> Word:
    """Return the word with its tilde expanded.

    To bash, a tilde whose user name is partly quoted is a plain character.
    """
    if 0 not in word.live or word.value[0] != "~":
        return word
    end = word.value.find("/")
    end = len(word.value) if end < 0 else end
    prefix = word.value[:end]
    rest = part_of(word, end, len(word.value))
    home = UNKNOWN
    if word.text[: end + 1] in (prefix, f"{prefix}/"):
        if prefix == "~+":
            home = directory or UNKNOWN
        elif prefix == "~" or _USER.match(prefix):
            home = os.path.expanduser(prefix)
    shift = len(home)
    return Word(home + rest.value, frozenset(at + shift for at in rest.live), rest.variables)


def _filled(word: Word, pieces: list[str], chosen: tuple[str, ...]) -> Word:
    value = pieces[0]
    at = len(pieces[0])
    moved = {place for place in word.live if place < at}
    for text, piece in zip(chosen, pieces[1:], strict=True):
        value += text
        shift = len(value) - (at + 1)
        end = at + 1 + len(piece)
        moved |= {place + shift for place in word.live if at < place < end}
        value += piece
        at = end
    return Word(value, frozenset(moved))


def _values_of(name: str, directory: str | None, bindings: Bindings) -> tuple[str, ...]:
    if name in bindings:
        return bindings[name]
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
    places = range(len(value) + 1)
    shortest_first = reversed(places) if is_ending else places
    cut = (at for at in shortest_first if fits(value[at:] if is_ending else value[:at]))
    found = list(cut) if len(operator) == 2 else [next(cut, None)]
    at = found[-1] if found else None
    if at is None:
        return value
    return value[:at] if is_ending else value[at:]


def _widely(_: str) -> str:
    """Return an expression for a `?` or `[…]` that matches all that it may match."""
    return "."


def _certainly(pattern: str) -> str:
    """Return an expression for a `?` or `[…]` that matches only what it matches in any locale."""
    if pattern == "?":
        return r"[\x00-\x7f]"
    return pattern if _SET.match(pattern) else "(?!)"


@dataclass(slots=True)
class _Search:
    """Matching of one pattern, directory by directory."""

    directory: str
    entries_left: int
    gave_up: bool = False
    is_wide: bool = False
    """True if it matches more than bash would."""
    patterns: list[re.Pattern[str] | str] = field(default_factory=list[re.Pattern[str] | str])
    certain_patterns: list[re.Pattern[str] | str] = field(default_factory=list[re.Pattern[str] | str])
    """Patterns that match no more than bash would."""
    listed: list[str] = field(default_factory=list[str])
    """Absolute paths of the directories read."""

    def run(self, word: Word) -> list[str]:
        if word.value.count("/") > MAX_COMPONENTS:
            self.gave_up = True
            return []
        start = 0
        for component in word.value.split("/"):
            part = part_of(word, start, start + len(component))
            self.patterns.append(self._pattern(part, _widely))
            self.certain_patterns.append(self._pattern(part, _certainly))
            start += len(component) + 1
        found = [""]
        for number, pattern in enumerate(self.patterns):
            separator = "/" if number else ""
            found = [f"{prefix}{separator}{name}" for prefix in found for name in self._names(prefix, number, pattern)]
            if len(found) > MAX_VALUES:
                self.gave_up = True
            if self.gave_up:
                return []
        # The result also shows whether a literal name exists.
        self.listed.extend(os.path.join(self.directory, os.path.dirname(path)) for path in found)
        return [path for path in found if os.path.lexists(os.path.join(self.directory, path))]

    def is_certain(self, path: str) -> bool:
        """True if bash matches a path that was found, too."""
        return all(
            isinstance(pattern, str) or pattern.match(name)
            for pattern, name in zip(self.certain_patterns, path.split("/"), strict=True)
        )

    def _names(self, prefix: str, number: int, pattern: re.Pattern[str] | str) -> list[str]:
        if isinstance(pattern, str):
            return [pattern]
        place = os.path.join(self.directory, prefix + "/" if number else ".")
        try:
            with os.scandir(place) as entries:
                self.listed.append(place)
                # Shells before bash 5.2 match the directory itself and its parent, too.
                names = [name for name in (".", "..") if pattern.match(name)]
                for entry in entries:
                    self.entries_left -= 1
                    if self.entries_left < 0:
                        self.gave_up = True
                        break
                    # In a byte locale, `?` matches one byte of a longer character.
                    if pattern.match(entry.name) or (self.is_wide and not entry.name.isascii()):
                        names.append(entry.name)
                return names
        except OSError:
            return []

    def _pattern(self, component: Word, one: Callable[[str], str]) -> re.Pattern[str] | str:
        """Return one component as a regular expression, or as plain text if it has no pattern."""
        value = component.value
        if not has_glob(component):
            return value
        pieces = [""]
        at = 0
        while at < len(value):
            letter = value[at]
            is_live = at in component.live and letter in _GLOB
            close = value.find("]", at + 2) if is_live and letter == "[" else at
            if not is_live or close < 0:
                pieces[-1] += re.escape(letter)
            elif letter == "*":
                pieces.append("")
            else:
                pieces[-1] += one(value[at : close + 1])
                self.is_wide = True
            at = max(at, close) + 1
        # Atomic groups take the first match of each piece for good, so no pattern can make matching slow.
        middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
        last = f".*{pieces[-1]}" if len(pieces) > 1 else ""
        hidden = "" if value.startswith(".") else r"(?!\.)"
        return re.compile(rf"(?s:{hidden}{pieces[0]}{middle}{last})\Z")
