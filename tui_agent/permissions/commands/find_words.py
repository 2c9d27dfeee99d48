"""`find` with tests and actions that only read."""

import re
from collections.abc import Sequence
from itertools import pairwise

from tui_agent.permissions.shell.syntax import names

from .argv import is_known
from .reads import Reads

EXEC_ACTIONS = names("-exec -execdir")
"""Actions that run a command for each match; that command is judged separately."""
ASKING_ACTIONS = names("-ok -okdir")
"""Actions that ask before they run a command."""

_TESTS = names(
    "-true -false -not ! -a -and -o -or ( ) , -print -print0 -ls -prune -quit -depth -mount -xdev -daystart -noleaf "
    "-empty -nouser -nogroup -readable -writable -executable -ignore_readdir_race -noignore_readdir_race -warn -nowarn"
)
_VALUES = names(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype -size "
    "-mtime -mmin -ctime -cmin -atime -amin -used -perm -user -group -uid -gid -links -inum -maxdepth -mindepth "
    "-fstype -printf"
)
_PATHS = names("-newer -anewer -cnewer -samefile")
_NEWER_THAN_TIME = re.compile(r"-newer[aBcm]t\Z")
_OPTIONS = names("-P -O1 -O2 -O3")
_LINK_OPTIONS = names("-L -H")
_WIDENING = names("-o -or , ! -not ( -L -H -follow")


def find_reads(words: Sequence[str]) -> Reads | None:
    """Return the trees that a `find` command (with its name) searches, or None if it is not known to be read-only."""
    words = without_exec(words)
    if not all(is_known(word) for word in words):
        return None
    at = 1
    while at < len(words) and words[at] in _OPTIONS:
        at += 1
    roots: list[str] = []
    while at < len(words) and not words[at].startswith("-") and words[at] not in ("(", "!", ",", ")"):
        roots.append(words[at])
        at += 1
    paths: list[str] = []
    while at < len(words):
        word = words[at]
        at += 1
        if takes_value(word):
            if at >= len(words):
                return None
            if word in _PATHS:
                paths.append(words[at])
            at += 1
        elif word not in _TESTS:
            return None
    return Reads(tuple(paths), listed=tuple(roots) or (".",))


def find_roots(words: Sequence[str]) -> tuple[str, ...]:
    """Return the roots of a `find` command, whatever its actions."""
    before = words[1 : tests_begin(words)]
    return tuple(word for word in before if word not in _OPTIONS and word not in _LINK_OPTIONS) or (".",)


def tests_begin(words: Sequence[str]) -> int:
    """Return the index of the first word after a `find` command's options and roots."""
    for at, word in enumerate(words[1:], start=1):
        if word in _OPTIONS or word in _LINK_OPTIONS:
            continue
        if word.startswith("-") or word in ("(", "!", ",", ")"):
            return at
    return len(words)


def takes_value(word: str) -> bool:
    """True if a value follows a test."""
    return word in _VALUES or word in _PATHS or bool(_NEWER_THAN_TIME.match(word))


def runs_of(words: Sequence[str]) -> list[list[str]]:
    """Return the commands that a `find` command runs, with `{}` for its match."""
    found: list[list[str]] = []
    at = 1
    while at < len(words):
        at += 1
        if words[at - 1] not in EXEC_ACTIONS | ASKING_ACTIONS:
            continue
        start = at
        while at < len(words) and words[at] != ";" and not (words[at] == "+" and words[at - 1] == "{}"):
            at += 1
        found.append(list(words[start:at]))
    return found


def without_exec(words: Sequence[str]) -> list[str]:
    """Return a `find` command without its `-exec` actions, which are judged as commands of their own."""
    kept: list[str] = []
    at = 0
    while at < len(words):
        if words[at] in EXEC_ACTIONS:
            at += 1
            while at < len(words) and words[at] != ";" and not (words[at] == "+" and words[at - 1] == "{}"):
                at += 1
        else:
            kept.append(words[at])
        at += 1
    return kept


def finds_only_files(words: Sequence[str]) -> bool:
    """True if a `find` command matches nothing but regular files, so that their readers follow no link."""
    return finds_all_at_once(words) and ("-type", "f") in pairwise(words)


def finds_all_at_once(words: Sequence[str]) -> bool:
    """True if every match of a `find` command passes all its tests, and no link is followed."""
    return _WIDENING.isdisjoint(words)
