"""Searches: the roots, tests and commands of `find`, and the files of a tree that a search certainly leaves out.

A rule that denies reading `.env` is no reason to ask about `rg foo`, which skips hidden files. A file that is not
certainly excluded counts as read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from tui_agent.permissions.shell.syntax import SimpleCommand, names

from .argv import Arguments, exact_arguments
from .catalogue import facts_of
from .invocation import FileFilter, Invocation, Reads, Write, writes_to

EXEC_ACTIONS = names("-exec -execdir")
"""Actions that run a command for each match; that command is judged separately."""
ELSEWHERE = names("-execdir -okdir")
"""Actions that run a command in the directory of the match."""

_RUNS = EXEC_ACTIONS | names("-ok -okdir")
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
    return _roots(words) or (".",)


def _roots(words: Sequence[str]) -> tuple[str, ...]:
    given = [word for word in words[1:] if word not in _OPTIONS | _LINK_OPTIONS]
    return tuple(takewhile(lambda word: not word.startswith("-") and word not in _BRACKETS, given))


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
    row = facts_of("find", "expression")
    found = exact_arguments(row, words[1:]) if row is not None else None
    # Behind the first test there are no roots.
    if found is None or tuple(one for one in found.operands if one not in _BRACKETS) != _roots(words):
        return None
    return Reads(tuple(found.paths), listed=find_roots(words))


def find_invocation(words: Sequence[str]) -> Invocation:
    """Return the files that a `find` command writes and deletes by itself."""
    writes = writes_to(after for before, after in pairwise(words) if before in _FILES)
    if "-delete" not in words:
        return Invocation(writes=writes)
    # Without a test everything below the roots is deleted.
    is_whole = all(word in _TAKES_ALL for word in words[1:] if word.startswith(("-", "!", "(")))
    deleted = tuple(Write(root, whole=is_whole) for root in find_roots(words))
    return Invocation(writes=(*writes, *deleted), changes_matches=not is_whole)


# --- filters ----------------------------------------------------------------------------------------------------------

_GLOB = re.compile(r"[\w.*?@+ -]+\Z", re.ASCII)
_PATHSPEC = re.compile(r"[\w.*?@+ -][\w./*?@+ -]*\Z", re.ASCII)
_TYPES = {"py": ("*.py", "*.pyi"), "rust": ("*.rs",), "go": ("*.go",), "ts": ("*.ts", "*.tsx", "*.cts", "*.mts")}
"""File name patterns of `rg`'s types."""
_SEES_HIDDEN = ("-u", "-.", "--hidden", "--unrestricted", "--no-ignore")
_UNCLEAR = ("--iglob", "--type-not", "-T", "--glob-case-insensitive", "--ignore-file", "--type-add")


def search_filter(name: str, options: Arguments) -> FileFilter | None:
    """Return the filter of a `grep` or `rg` with these options; None for everything."""
    return _of_grep(options) if name == "grep" else _of_rg(options)


def find_filter(words: Sequence[str]) -> FileFilter | None:
    """Return the filter of a `find` with these words, its name included; None for everything."""
    patterns = tuple(after for before, after in pairwise(words) if before == "-name")
    is_sure = finds_all_at_once(words) and len(patterns) == 1 and _GLOB.match(patterns[0])
    return FileFilter(patterns) if is_sure else None


def pathspec_filter(specs: Sequence[str]) -> FileFilter | None:
    """Return the filter of a command with these paths behind `--`; None for everything."""
    if not specs or not all(_PATHSPEC.match(spec) and ".." not in spec and spec not in (".", "./") for spec in specs):
        return None
    return FileFilter(below=tuple(spec.removeprefix("./").rstrip("/") for spec in specs))


def _of_grep(options: Arguments) -> FileFilter | None:
    wanted, unwanted = (tuple(options.given.get(option, ())) for option in ("--include", "--exclude"))
    without = tuple(options.given.get("--exclude-dir", ()))
    # With both kinds, the result depends on their order.
    if (wanted and unwanted) or not all(map(_GLOB.match, (*wanted, *unwanted, *without))):
        return None
    return FileFilter(wanted, unwanted, without) if wanted or unwanted or without else None


def _of_rg(options: Arguments) -> FileFilter | None:
    if options.has(*_UNCLEAR):
        return None
    globs = [*options.given.get("-g", ()), *options.given.get("--glob", ())]
    if not all(_GLOB.match(glob.removeprefix("!")) for glob in globs):
        return None
    wanted = tuple(glob for glob in globs if not glob.startswith("!"))
    if wanted:
        # An explicit glob matches hidden files, too.
        return FileFilter(wanted)
    types = [*options.given.get("-t", ()), *options.given.get("--type", ())]
    kinds = tuple(ending for one in types for ending in _TYPES.get(one, ("*",)))
    unwanted = tuple(glob[1:] for glob in globs)
    hides = not options.has(*_SEES_HIDDEN)
    # A type matches hidden files, too, but not in hidden directories.
    return FileFilter(kinds, unwanted, unwanted, is_hidden_out=hides, has_hidden_files=bool(types))
