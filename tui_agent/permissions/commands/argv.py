"""The one option parser: a command's words sorted by the facts about it, and the meaning of its operands.

Words that the facts explain completely make the result exact. Otherwise the parser takes too many words for operands
rather than too few, so that no change is overlooked.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import get_args

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, VARIABLE

from .catalogue import CommandFacts, ValueKind, group, matching_row

_KINDS: tuple[ValueKind, ...] = get_args(ValueKind)
_NO_VALUE: ValueKind = ""
_NO_NEXT: tuple[ValueKind, ...] = ("", "optional", "program")
"""Kinds whose value is never the next word."""
_FIELD = re.compile(r'"((?:[^"]|"")*)"|([^,]+)')
_REMOTE = re.compile(r"(?:[^/@]*@)?[\w.-]+:|[a-z]+://")


@dataclass(slots=True)
class Arguments:
    """Sorted words of a command."""

    is_exact: bool = True
    """True if every word is certain and every option is in the facts, in full and harmless."""
    operands: list[str] = field(default_factory=list[str])
    given: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Values by option of the facts; empty texts for flags."""
    flags: set[str] = field(default_factory=set[str])
    """Every option, in full and as written; joined flags one by one."""
    values: dict[ValueKind, list[str]] = field(default_factory=dict[ValueKind, list[str]])
    """Values by their meaning.

    Those without one (and whole words with options without facts) may contain paths that are changed.
    """
    unclear: list[str] = field(default_factory=list[str])
    """Words that may be paths that are changed: the words after options without facts."""

    directory: str | None = None
    """Directory that the command changes to first."""
    into: str | None = None
    """Target directory named by an option."""

    def of(self, *kinds: ValueKind) -> list[str]:
        """Return the values of some kinds."""
        found: list[str] = []
        for kind in kinds:
            found += self.values.get(kind, ())
        return found

    @property
    def paths(self) -> list[str]:
        """Values of options that name files that are read."""
        return [path for path in self.of("read", "script", "list") if path not in ("-", PIPE)]

    @property
    def sources(self) -> list[str]:
        """Files that are copied, moved or linked."""
        return self.operands if self.into is not None or len(self.operands) < 2 else self.operands[:-1]

    @property
    def target(self) -> str:
        """Target of these files; `.` by default."""
        if self.into is not None:
            return self.into
        return self.operands[-1] if len(self.operands) > 1 else "."

    def has(self, *options: str) -> bool:
        """True if one of these options is present."""
        return not self.flags.isdisjoint(options)


def is_known(word: str) -> bool:
    """True if a word is certain; the name of a pipe counts as certain."""
    return UNKNOWN not in word and VARIABLE not in word and (PIPE not in word or word == PIPE)


def is_remote(path: str) -> bool:
    """True for a file on another machine: `host:path` or a URL."""
    return bool(_REMOTE.match(path))


def _settings(text: str) -> dict[str, str]:
    """Return the values of `type=bind,src=x` by name; quotes may enclose a part."""
    fields = (quoted.replace('""', '"') or plain for quoted, plain in _FIELD.findall(text))
    parts = (field.removeprefix("volume-opt=").partition("=") for field in fields)
    return {name: value for name, _, value in parts}


def host_side(mount: str) -> list[str]:
    """Return the path of this machine that a container gets to write, in a list, or an empty one."""
    settings = _settings(mount)
    if "type" in settings or "source" in settings or "src" in settings:
        host = settings.get("device", settings.get("source", settings.get("src", "")))
        is_read_only = not {"readonly", "ro"}.isdisjoint(settings)
    else:
        host, _, rest = mount.partition(":")
        host, is_read_only = host if rest else "", "ro" in rest.rpartition(":")[2].split(",")
    # Otherwise a bare name is a volume of the container program.
    is_bind = settings.get("type") == "bind" or "device" in settings
    return [host] if host and not is_read_only and (is_bind or host[0] in "./~" or not is_known(host)) else []


def parse_arguments(facts: CommandFacts, words: Sequence[str]) -> Arguments:
    """Sort the words after a command's name, once for all who ask; do not change the result."""
    return _parsed(facts, tuple(words))


def arguments_of(words: Sequence[str]) -> Arguments:
    """Sort the words of a command, with its name; the result is empty for a program without facts."""
    row = matching_row(words)
    return parse_arguments(*row) if row is not None else Arguments()


@lru_cache(maxsize=256)
def _parsed(facts: CommandFacts, words: tuple[str, ...]) -> Arguments:
    return _Parser(facts, words).run()


def exact_arguments(facts: CommandFacts, words: Sequence[str]) -> Arguments | None:
    """Sort the words of a read-only use; None if a word is uncertain, or an option or operand may do more."""
    found = parse_arguments(facts, words)
    return found if found.is_exact and facts.reading.allows(words, found.operands, found.flags) else None


@dataclass(frozen=True, slots=True)
class OptionWord:
    """One word of options."""

    flags: tuple[str, ...]
    """Options without a value, before the last."""
    last: str
    value: str | None
    """Value in the same word; None without one."""
    takes_next: bool
    """True if the next word is the value."""


def split_options(facts: CommandFacts, word: str) -> OptionWord | None:
    """Return the options in a word that begins with a dash, or None if the facts do not explain all of it."""
    options = facts.options
    name, equals, value = word.partition("=") if word.startswith("--") or not facts.joins else (word, "", "")
    if not facts.joins and name not in options and name[1:] in options:
        name = name[1:]  # Such programs take `--x` for `-x`.
    if name in options and (options[name] or not equals):
        return OptionWord((), name, value if equals else None, not equals and options[name] not in _NO_NEXT)
    if word.startswith("--") or not facts.joins or len(word) < 2:
        return None
    flags: list[str] = []
    place = 1
    while True:
        last = _option_at(facts, word, place)
        if last not in options:
            return None
        place += len(last) - 1
        if options[last] or place == len(word):
            break
        flags.append(last)
    rest = word[place:].removeprefix("=" if len(last) > 2 else "")
    return OptionWord(tuple(flags), last, rest or None, not rest and options[last] not in _NO_NEXT)


def _option_at(facts: CommandFacts, word: str, place: int) -> str:
    """Return the option that begins at a letter of a word with one dash."""
    return "-" + next((name for name in facts.longer if word.startswith(name, place)), word[place])


def options_meant(facts: CommandFacts, word: str) -> list[str]:
    """Return the options of the facts that a word beginning with a dash may mean."""
    split = split_options(facts, word)
    return [*split.flags, split.last] if split is not None else _meant(facts, _option_at_end(facts, word)[0])


def _meant(facts: CommandFacts, option: str) -> list[str]:
    """Return the options that a word may mean: itself, or the long options it may abbreviate."""
    if option in facts.options:
        return [option]
    return [name for name in facts.options if option.startswith("--") and name.startswith(option)]


def _option_at_end(facts: CommandFacts, word: str) -> tuple[str, str | None]:
    """Return the option that a word ends with, and the value attached to it."""
    if word.startswith("--"):
        option, equals, value = word.partition("=")
        return option, value if equals else None
    if not facts.joins:
        return word, None
    for place in range(1, len(word)):
        option = _option_at(facts, word, place)
        if facts.options.get(option):
            return option, word[place + len(option) - 1 :] or None
    return word, None


class _Parser:
    """One pass over the words of one command."""

    def __init__(self, facts: CommandFacts, words: Sequence[str]) -> None:
        self._facts = facts
        self._found = Arguments(is_exact=all(map(is_known, words)))
        self._waiting = list(reversed(words))

    def run(self) -> Arguments:
        found, waiting = self._found, self._waiting
        is_after_unknown = False
        while waiting:
            word = waiting.pop()
            if word == "--":
                found.operands.extend(reversed(waiting))
                break
            if word[:1] == "+" and "+" in self._facts.options:
                self._take("+", word[1:])
            elif not word.startswith("-") or word == "-":
                found.operands.append(word)
                found.unclear.extend([word] if is_after_unknown else ())
                is_after_unknown = False
            elif "-#" in self._facts.options and word[1:].isdigit():
                pass  # Such as `head -5`.
            else:
                is_after_unknown = not self._exactly(word) and self._roughly(word)
        return found

    def _exactly(self, word: str) -> bool:
        """Take an option word that the facts explain completely; False if they do not."""
        split = split_options(self._facts, word)
        if split is None:
            return False
        for flag in split.flags:
            self._take(flag, None)
        if not split.takes_next:
            self._take(split.last, split.value)
        elif self._waiting:
            self._take(split.last, self._waiting.pop())
        else:
            self._found.is_exact = False
            self._found.flags.add(split.last)
        return True

    def _take(self, option: str, value: str | None) -> None:
        found, kind = self._found, self._facts.options[option]
        is_harmless = option in self._facts.harmless
        found.is_exact = found.is_exact and is_harmless
        found.flags.add(option)
        found.given.setdefault(option, []).append(value or "")
        if kind == "pair":
            found.is_exact = found.is_exact and bool(self._waiting)
            del self._waiting[-1:]
        if value is not None and not (kind == "optional" and is_harmless) and not self._facts.is_plain(option, value):
            self._keep(kind, value)

    def _roughly(self, word: str) -> bool:
        """Take an option word without facts; True if the next word may be its value."""
        found, facts = self._found, self._facts
        found.is_exact = False
        option, value = _option_at_end(facts, word)
        meant = _meant(facts, option)
        letters = "" if word.startswith("--") else word[1 : len(word) - len(value or "")]
        found.flags |= {option, *meant, *(f"-{letter}" for letter in letters)}
        kinds: list[ValueKind] = [_NO_VALUE, *(facts.options[one] for one in meant)]
        kind = max(kinds, key=_KINDS.index)
        if kind not in _NO_NEXT and value is None and self._waiting:
            # An abbreviation may also be an option of its own without a value: then the next word is an operand, too.
            value = self._waiting.pop() if option in meant else self._waiting[-1]
        if not word.startswith("--"):
            self._keep(_NO_VALUE, word)  # An unknown letter may take the rest of the word as its value.
        if value is not None:
            for one in meant:
                found.given.setdefault(one, []).append(value)
            self._keep(kind, value)
        return not meant and value is None and word not in group("plain_flags")

    def _keep(self, kind: ValueKind, value: str) -> None:
        if kind == "directory":
            self._found.directory = value
        elif kind == "into":
            self._found.into = value
        else:
            # `docker build -o type=tar,dest=x`.
            plain = _settings(value).get("dest", value) if kind == "write" and "dest=" in value else value
            written = host_side(value) if kind == "mount" else [plain]
            self._found.values.setdefault(kind, []).extend(written)
