"""`test`, `[ … ]` and `[[ … ]]` conditions that can neither set nor run anything.

`-v` and `-R` evaluate the subscript of a variable's name, and numbers inside `[[ ]]` are arithmetic: both can run
commands from data. So operators must be literal and numbers must be numbers.
"""

import re
from collections.abc import Sequence

from tui_agent.permissions.shell.syntax import PIPE, UNKNOWN, SimpleCommand, names

from .argv import is_known
from .reads import Reads

_TEXT_UNARY = names("-n -z -t -o")
_PATH_UNARY = names("-a -b -c -d -e -f -g -h -k -p -r -s -u -w -x -G -L -N -O -S")
_PATH_BINARY = names("-nt -ot -ef")
_TEXT_BINARY = names("= == != < > =~")
_NUMBER_BINARY = names("-eq -ne -lt -le -gt -ge")
_EVALUATING = names("-v -R")
_GLUE = names("& | ( ) !")
_INTEGER = re.compile(r"-?\d+\Z")


def test_command_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that `test …` or `[ … ]` checks, or None if it may do more."""
    if len(words) != len(raw.words) or any(not _is_one_word(word.value) for word in raw.words):
        return None
    pairs = zip(words, raw.words, strict=True)
    if any(not is_known(value) and any(not variable.quoted for variable in word.variables) for value, word in pairs):
        return None
    end = len(words) - 1 if raw.name == "[" else len(words)
    operators = [word.value for word in raw.words[1:end]]
    values = list(words[1:end])
    while len(values) > 2 and operators[0] == "!":
        values, operators = values[1:], operators[1:]
    return _long(values, operators) if len(values) > 3 else _short(values, operators)


def conditional_reads(words: Sequence[str], raw: SimpleCommand) -> Reads | None:
    """Return the paths that `[[ … ]]` checks, or None if it may do more."""
    inside = [word.value for word in raw.words[1:-1]]
    values = list(words[1:-1])
    if len(words) != len(raw.words) or not _EVALUATING.isdisjoint(inside):
        return None
    paths: list[str] = []
    for at, operator in enumerate(inside):
        before = values[at - 1] if at else ""
        after = values[at + 1] if at + 1 < len(values) else ""
        if operator in _NUMBER_BINARY and not (_INTEGER.match(before) and _INTEGER.match(after)):
            return None
        if operator in _PATH_BINARY:
            paths.extend((before, after))
        elif operator in _PATH_UNARY and after not in _GLUE:
            paths.append(after)
    return Reads(tuple(path for path in paths if path)) if all(is_known(path) for path in paths) else None


def _is_one_word(value: str) -> bool:
    """True if a word certainly stays one word once its (quoted) variables have values."""
    return UNKNOWN not in value and PIPE not in value


def _short(values: list[str], operators: list[str]) -> Reads | None:
    if len(values) <= 1:
        return Reads()
    if len(values) == 2:
        return Reads() if operators[0] == "!" else _unary(operators[0], values[1])
    return _binary(values[0], operators[1], values[2])


def _long(values: list[str], operators: list[str]) -> Reads | None:
    """Judge conditions joined by `-a` and `-o`: each must be safe alone, and every word must be known."""
    if not _EVALUATING.isdisjoint(operators) or not all(is_known(value) for value in values):
        return None
    paths: list[str] = []
    start = 0
    for end in (*(at for at, word in enumerate(operators) if word in ("-a", "-o")), len(operators)):
        reads = _short(values[start:end], operators[start:end]) if 1 <= end - start <= 3 else None
        if reads is None:
            return None
        paths.extend(reads.paths)
        start = end + 1
    return Reads(tuple(paths))


def _unary(operator: str, value: str) -> Reads | None:
    if operator in _TEXT_UNARY:
        return Reads()
    return Reads((value,)) if operator in _PATH_UNARY and is_known(value) else None


def _binary(left: str, operator: str, right: str) -> Reads | None:
    if operator in _PATH_BINARY:
        return Reads((left, right)) if is_known(left) and is_known(right) else None
    return Reads() if operator in _TEXT_BINARY or operator in _NUMBER_BINARY else None
