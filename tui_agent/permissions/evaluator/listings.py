"""Names that a command prints, where they can be listed in advance: of tracked files, `find`, `rg -l`, `ls`, `echo`.

A listing contains every name that the command can print, and often more. A command that receives the names (`xargs`,
`$(…)`, a loop) is judged with each of them, as if it had been written out. There is no listing if a shell or `xargs`
could take one of the names for an option or for several words. Other output may be a pattern, with which an unquoted
substitution lists a directory.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from tui_agent.permissions.commands.analysis import read_only_use
from tui_agent.permissions.commands.argv import Arguments, exact_arguments
from tui_agent.permissions.commands.catalogue import canonical_name, group, read_only_command, words_by_program
from tui_agent.permissions.commands.searches import (
    EXEC_ACTIONS,
    find_roots,
    finds_all_at_once,
    finds_only_files,
    without_exec,
)
from tui_agent.permissions.commands.version_control import names_of_tracked
from tui_agent.permissions.paths.path_resolution import TooMuchError, entries_below
from tui_agent.permissions.shell.expansion import OPEN, Bindings, Expander, base_name, is_computed_name
from tui_agent.permissions.shell.syntax import (
    SUM,
    UNKNOWN,
    Pipeline,
    SimpleCommand,
    Statement,
    Word,
    contents_of,
    names,
)

MAX_NAMES = 3_000
"""Maximum number of names in a listing."""
MAX_ENTRIES = 20_000
"""Maximum number of directory entries to read."""

_PLAIN = re.compile(r"[\w./:=@%+,][\w./:=@%+,-]*\Z", re.ASCII)
_NUMBERS = re.compile(r"-?\d{1,4}\Z")
_FILTERS = {
    "head": names("-n -c -q --lines"),
    "tail": names("-n -q --lines"),
    "sort": names("-r -u -f -n -V -R --reverse --unique --version-sort"),
    "uniq": names("-u -d -i"),
    "grep": names("-v -i -E -F -P -w -x -e -m --invert-match --extended-regexp --fixed-strings --ignore-case"),
    "tac": names(""),
    "cat": names("-u"),
}
"""Commands that print some of the lines they read and nothing else, with the options that keep it so."""
_PRINTS_MORE = EXEC_ACTIONS | names("-printf -ls")
_SIMPLE_NAME = re.compile(r"[\w.*-]+\Z", re.ASCII)
_LISTS = names("-l --files-with-matches --files")
"""Arguments with which `grep` and `rg` print nothing but paths."""
_HIDDEN = names("-u --hidden --unrestricted")
_LS_PLAIN = names("-1 -a -A -d -r -t -S -U -X -v -c -u --all --almost-all --directory --reverse --color")

_GIVES_PATTERN = re.compile(r"\$\{[#!]?\w+(?::?[-+=]|/)[^}]*[*?\[\\$`'\"{]|\$\{!|\$\{\w+@")
"""A parameter expansion with text that may be a pattern, or with the value of another variable."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Names that a command prints."""

    names: tuple[str, ...]
    separator: Literal["\n", "\0", " "] = "\n"
    """Character between the names."""


def listed_names(
    statement: Statement, expander: Expander, places: Sequence[str | None], bindings: Bindings
) -> Listing | None:
    """Return the names that `statement` can print in one of several directories, or None if it may print others."""
    found = [place and _listing(statement, expander, place, bindings) for place in places]
    known = [listing for listing in found if isinstance(listing, Listing)]
    if len(known) < len(found) or len({listing.separator for listing in known}) != 1:
        return None
    return replace(known[0], names=tuple(dict.fromkeys(name for listing in known for name in listing.names)))


def _listing(statement: Statement, expander: Expander, directory: str, bindings: Bindings) -> Listing | None:
    """Return the names that `statement` can print in `directory`, or None if it may print anything else."""
    statement = contents_of(statement)
    parts = statement.parts if isinstance(statement, Pipeline) else (statement,)
    commands = [part for part in parts if isinstance(part, SimpleCommand) and is_quiet(part)]
    if len(commands) < len(parts):
        return None
    words, *filters = [expander.words_of(command, directory, bindings) for command in commands]
    if not words or not all(map(is_line_filter, filters)):
        return None
    if read_only_use(words, SimpleCommand("", ())) is None:
        return None
    found = _printed(words, directory)
    if found is None or (found.separator == "\0" and filters):
        return None
    return found if all(map(_PLAIN.match, found.names)) else None


def find_output_names(words: Sequence[str], directory: str) -> Listing | None:
    """Return the matches that a `find` passes to the commands it runs; these may be any name, passed unchanged."""
    words = without_exec(words)
    return _printed(words, directory) if read_only_use(words, SimpleCommand("", ())) is not None else None


def is_line_filter(words: Sequence[str] | None) -> bool:
    """True if a filter prints some of the lines it reads and nothing else."""
    if not words or words[0] not in _FILTERS:
        return False
    options = _sorted(words)
    if options is None or any(option not in _FILTERS[words[0]] for option in options.given):
        return False
    if words[0] in ("head", "tail") and "-c" in options.given:
        return False
    patterns = 1 if words[0] == "grep" and "-e" not in options.given else 0
    return len(options.operands) == patterns and not options.paths


def is_quiet(command: SimpleCommand) -> bool:
    """True if a command prints only its own lines, and all of them."""
    redirects = {redirect.text.replace(" ", "") for redirect in command.redirects}
    return not command.assignments and command.heredoc is None and redirects <= {"2>/dev/null"}


def _printed(words: Sequence[str], directory: str) -> Listing | None:
    try:
        found = _PRINTERS.get(canonical_name(words[0]), _by_index)(words, directory)
    except (TooMuchError, OSError):
        return None
    return found if found is not None and len(found.names) <= MAX_NAMES else None


def _by_index(words: Sequence[str], directory: str) -> Listing | None:
    tracked = names_of_tracked(words, directory)
    return None if tracked is None else Listing(tracked, "\0" if "-z" in words else "\n")


def _by_echo(words: Sequence[str], _: str) -> Listing | None:
    if any(word.startswith("-") for word in words[1:]):
        return None
    return Listing(tuple(words[1:]), " " if len(words) > 2 else "\n")


def _by_printf(words: Sequence[str], _: str) -> Listing | None:
    return Listing(tuple(words[2:])) if words[1:2] == ["%s\\n"] else None


def _by_seq(words: Sequence[str], _: str) -> Listing | None:
    if not 2 <= len(words) <= 4 or not all(map(_NUMBERS.match, words[1:])):
        return None
    first, step = (int(words[1]) if len(words) > 2 else 1), (int(words[2]) if len(words) == 4 else 1)
    end = int(words[-1]) + (1 if step > 0 else -1)
    return Listing(tuple(map(str, range(first, end, step)))) if step else None


def _by_find(words: Sequence[str], directory: str) -> Listing | None:
    if not _PRINTS_MORE.isdisjoint(words) or {"-print", "-print0"} <= set(words):
        return None
    only_files = finds_only_files(words)
    pattern = next((words[at + 1] for at in range(len(words) - 1) if words[at] == "-name"), "")
    is_narrow = finds_all_at_once(words) and _SIMPLE_NAME.match(pattern)
    roots = find_roots(words)
    found = [root for root in roots if not only_files and not os.path.isfile(os.path.join(directory, root))]
    found += _below(directory, roots, only_files=only_files, with_hidden=True)
    if is_narrow:
        found = [path for path in found if fnmatchcase(path.rstrip("/").rpartition("/")[2], pattern)]
    return Listing(tuple(found), "\0" if "-print0" in words else "\n")


def _by_search(words: Sequence[str], directory: str) -> Listing | None:
    name, options = canonical_name(words[0]), _sorted(words)
    if options is None or "-" in options.operands or not options.has(*_LISTS):
        return None
    # For rg, `-r` is --replace, which prints another text for a match.
    if not options.given.keys() <= _LISTS | group("search_options") or (name == "rg" and options.has("-r")):
        return None
    has_pattern = options.has("-e", "--regexp", "--files")
    roots = options.operands if has_pattern else options.operands[1:]
    if not roots and name == "grep" and not options.has("-r", "--recursive"):
        return None  # It reads its input and prints "(standard input)".
    if not roots and os.path.lexists(os.path.join(directory, "<stdin>")):
        return None  # rg prints "<stdin>" for its input, which would then name a file.
    with_hidden = name == "grep" or options.has(*_HIDDEN)
    found = _below(directory, roots or [""], only_files=True, with_hidden=with_hidden)
    return Listing(tuple(found), "\0" if options.has("-0", "-Z", "--null") else "\n")


def _by_ls(words: Sequence[str], directory: str) -> Listing | None:
    options = _sorted(words)
    if options is None or any(option not in _LS_PLAIN for option in options.given):
        return None
    if not {*options.given.get("--color", ())} <= {"never", "auto"}:
        return None
    if options.has("-d", "--directory"):
        return Listing(tuple(options.operands) or (".",))
    places = [os.path.join(directory, operand) for operand in options.operands]
    if places and not any(os.path.isdir(place) for place in places):
        return Listing(tuple(options.operands))
    if len(places) > 1:
        return None  # With several directories, ls prints headings.
    found = os.listdir(places[0] if places else directory)
    if options.has("-a", "--all"):
        return Listing((".", "..", *found))
    return Listing(tuple(name for name in found if options.has("-A", "--almost-all") or not name.startswith(".")))


def _sorted(words: Sequence[str]) -> Arguments | None:
    command = read_only_command(canonical_name(words[0]))
    return exact_arguments(command, words[1:]) if command else None


def _below(directory: str, roots: Sequence[str], *, only_files: bool, with_hidden: bool) -> list[str]:
    """Return every path below some roots, spelled as a search would print it; links are not followed.

    Raises:
        TooMuchError: there are too many.
    """
    found: list[str] = []
    for root in roots:
        start = os.path.join(directory, root)
        if root and not os.path.isdir(start):
            found.append(root)
            continue
        for entry in entries_below(start, MAX_ENTRIES, enters=lambda entry: with_hidden or entry.name[0] != "."):
            is_shown = with_hidden or not entry.name.startswith(".")
            if is_shown and (not only_files or entry.is_file(follow_symlinks=False)):
                found.append(f"{root}{entry.path[len(start) :]}")
            if len(found) > MAX_NAMES:
                raise TooMuchError
    return found


_PRINTERS = {
    "find": _by_find,
    "rg": _by_search,
    "grep": _by_search,
    "ls": _by_ls,
    "echo": _by_echo,
    "printf": _by_printf,
    "seq": _by_seq,
}
"""Functions that list the output of a command, by its name; every other one may be a search of version control."""


def may_expand_to_anything(words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> bool:
    """True if a word has an unquoted substitution or variable whose value may be a pattern for any directory."""
    unsure = [word for word in words if not _has_known_values(word, bindings)]
    open_names = [one.name for word in unsure for one in word.variables if not one.quoted]
    opened = [word for word in unsure if _has_live_unknown(word)]
    if any(bindings.get(base_name(name)) == OPEN for name in open_names):
        return True
    if any(not word.text or _GIVES_PATTERN.search(word.text) for word in opened):
        return True
    is_open = bool(opened) or any(map(is_computed_name, open_names))
    return is_open and not all(map(_prints_no_pattern, nested))


def _has_live_unknown(word: Word) -> bool:
    return any(word.value[at] == UNKNOWN for at in word.live)


def _has_known_values(word: Word, bindings: Bindings) -> bool:
    """True if all unquoted variables and substitutions of a word are known."""
    unquoted = [variable.name for variable in word.variables if not variable.quoted and variable.name != SUM]
    return not _has_live_unknown(word) and all(
        bindings.get(name, OPEN) != OPEN or bindings.get(base_name(name), OPEN).kind == "text" for name in unquoted
    )


def _prints_no_pattern(statement: Statement) -> bool:
    """True if a statement is a command that prints no pattern, or a pipeline that ends with one."""
    statement = contents_of(statement)
    last = statement.parts[-1] if isinstance(statement, Pipeline) else statement
    values = [word.value for word in last.words] if isinstance(last, SimpleCommand) else []
    if not values or "-printf" in values or any("format" in value for value in values):
        return False
    printing = words_by_program("prints_no_pattern_with").get(values[0], frozenset())
    return values[0] in group("prints_no_pattern") or not printing.isdisjoint((*values[1:2], ":".join(values[1:3])))
