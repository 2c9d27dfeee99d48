"""`find`: its roots, its tests, and the commands that it runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tui_agent.permissions.shell.syntax import SimpleCommand, names

from .argv import is_known
from .invocation import Invocation, Reads, Write, writes_to

EXEC_ACTIONS = names("-exec -execdir")
"""Actions that run a command for each match; that command is judged separately."""
ELSEWHERE = names("-execdir -okdir")
"""Actions that run a command in the directory of the match."""

_RUNS = EXEC_ACTIONS | names("-ok -okdir")
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
_BRACKETS = ("(", "!", ",", ")")
_WIDENING = names("-o -or , ! -not ( -L -H -follow")
_TAKES_ALL = names("-delete -depth -d -print -print0 -xdev -mount -noleaf -ls -L -H -P -follow -a -and")
"""Options and actions that leave no match out."""
_FILES = names("-fprint -fprint0 -fls -fprintf")


@dataclass(frozen=True, slots=True)
class FindRun:
    """A command that `find` runs."""

    action: str
    at: int
    """Index of its first word."""
    end: int


def find_roots(words: Sequence[str]) -> tuple[str, ...]:
    """Return the roots of a `find` command, whatever its actions."""
    before = words[1 : _tests_begin(words)]
    return tuple(word for word in before if word not in _OPTIONS | _LINK_OPTIONS) or (".",)


def find_runs(words: Sequence[str]) -> list[FindRun]:
    """Return the commands that a `find` command runs."""
    found: list[FindRun] = []
    at = 1
    while at < len(words):
        at += 1
        if words[at - 1] in _RUNS:
            start = at
            while at < len(words) and words[at] != ";" and not (words[at] == "+" and words[at - 1] == "{}"):
                at += 1
            found.append(FindRun(words[start - 1], start, at))
    return found


def without_exec(words: Sequence[str]) -> list[str]:
    """Return a `find` command without its `-exec` actions, which are judged as commands of their own."""
    kept: list[str] = []
    at = 0
    for run in find_runs(words):
        if run.action in EXEC_ACTIONS:
            kept += words[at : run.at - 1]
            at = run.end + 1
    return [*kept, *words[at:]]


def finds_only_files(words: Sequence[str]) -> bool:
    """True if a `find` command matches nothing but regular files, so that their readers follow no link."""
    return finds_all_at_once(words) and ("-type", "f") in pairwise(words)


def finds_all_at_once(words: Sequence[str]) -> bool:
    """True if every match of a `find` command passes all its tests, and no link is followed."""
    return _WIDENING.isdisjoint(words)


def find_reads(words: Sequence[str], _: SimpleCommand) -> Reads | None:
    """Return the trees that a `find` command (with its name) searches, or None if it is not known to be read-only."""
    words = without_exec(words)
    at = _tests_begin(words)
    given = words[1:at]
    roots = [word for word in given if word not in _OPTIONS]
    is_ordered = given[len(given) - len(roots) :] == roots
    if not is_ordered or not all(map(is_known, words)) or not _LINK_OPTIONS.isdisjoint(given):
        return None
    paths: list[str] = []
    while at < len(words):
        word = words[at]
        at += 1
        if word in _VALUES or word in _PATHS or _NEWER_THAN_TIME.match(word):
            if at >= len(words):
                return None
            paths += [words[at]] if word in _PATHS else []
            at += 1
        elif word not in _TESTS:
            return None
    return Reads(tuple(paths), listed=tuple(roots) or (".",))


def find_invocation(words: Sequence[str]) -> Invocation:
    """Return the files that a `find` command writes and deletes by itself."""
    writes = writes_to(after for before, after in pairwise(words) if before in _FILES)
    if "-delete" not in words:
        return Invocation(writes=writes)
    # Without a test everything below the roots is deleted.
    is_whole = all(word in _TAKES_ALL for word in words[1:] if word.startswith(("-", "!", "(")))
    deleted = tuple(Write(root, whole=is_whole) for root in find_roots(words))
    return Invocation(writes=(*writes, *deleted), changes_matches=not is_whole)


def _tests_begin(words: Sequence[str]) -> int:
    """Return the index of the first word after a `find` command's options and roots."""
    for at, word in enumerate(words[1:], start=1):
        is_option = word in _OPTIONS or word in _LINK_OPTIONS
        if not is_option and (word.startswith("-") or word in _BRACKETS):
            return at
    return len(words)
