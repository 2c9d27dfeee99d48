"""Names that a command prints, where they can be listed in advance: of tracked files, `find`, `rg -l`, `ls`, `echo`.

A listing contains every name that the command can print, and often more. A command that receives the names (`xargs`,
`$(…)`, a loop) is judged with each of them, as if it had been written out. There is no listing if a shell or `xargs`
could take one of the names for an option or for several words. Other output may be a pattern, with which an unquoted
substitution lists a directory.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

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
from tui_agent.permissions.shell.syntax import UNKNOWN, Pipeline, SimpleCommand, Statement, Subshell, Word, names
from tui_agent.permissions.shell.syntax import Sequence as Statements

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
    is_nul_separated: bool = False
    """True if each name ends with a NUL character instead of a line break."""
    on_one_line: bool = False
    """True if blanks separate the names instead of line breaks."""


def listing_output(statement: Statement, expander: Expander, directory: str, bindings: Bindings) -> Listing | None:
    """Return the names that `statement` can print in `directory`, or None if it may print anything else."""
    statement = contents_of(statement)
    first, *filters = statement.parts if isinstance(statement, Pipeline) else (statement,)
    if not isinstance(first, SimpleCommand) or not all(_is_quiet(part) for part in (first, *filters)):
        return None
    for part in filters:
        if not isinstance(part, SimpleCommand) or not is_line_filter(expander.words_of(part, directory, bindings)):
            return None
    words = expander.words_of(first, directory, bindings)
    if not words or read_only_use(words, SimpleCommand("", ())) is None:
        return None
    found = _printed(words, directory)
    if found is None or (found.is_nul_separated and filters):
        return None
    is_plain = len(found.names) <= MAX_NAMES and all(_PLAIN.match(name) for name in found.names)
    return found if is_plain else None


def find_output_names(words: Sequence[str], directory: str) -> Listing | None:
    """Return the matches that a `find` passes to the commands it runs; these may be any name, passed unchanged."""
    words = without_exec(words)
    if read_only_use(words, SimpleCommand("", ())) is None:
        return None
    found = _by_find(words, directory)
    return found if found is not None and len(found.names) <= MAX_NAMES else None


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


def contents_of(statement: Statement) -> Statement:
    """Return the contents of a subshell if they are a single statement."""
    while isinstance(statement, Subshell) or (isinstance(statement, Statements) and len(statement.parts) == 1):
        statement = statement.body if isinstance(statement, Subshell) else statement.parts[0]
    return statement


def is_quiet(command: SimpleCommand) -> bool:
    """True if a command redirects nothing but its errors."""
    return all(redirect.text.replace(" ", "") == "2>/dev/null" for redirect in command.redirects)


def _is_quiet(part: Statement) -> bool:
    """True if a command prints only its own lines, and all of them."""
    if not isinstance(part, SimpleCommand) or part.assignments or part.heredoc is not None:
        return False
    return is_quiet(part)


def _printed(words: Sequence[str], directory: str) -> Listing | None:
    match canonical_name(words[0]):
        case "find":
            return _by_find(words, directory)
        case "rg" | "grep" as name:
            return _by_search(name, words, directory)
        case "ls":
            return _by_ls(words, directory)
        case "echo":
            return (
                None if any(word.startswith("-") for word in words[1:]) else Listing(tuple(words[1:]), on_one_line=True)
            )
        case "printf" if words[1:2] in (["%s\\n"], ("%s\\n",)):
            return Listing(tuple(words[2:]))
        case "seq" if 2 <= len(words) <= 4 and all(map(_NUMBERS.match, words[1:])):
            first, step = (int(words[1]) if len(words) > 2 else 1), (int(words[2]) if len(words) == 4 else 1)
            end = int(words[-1]) + (1 if step > 0 else -1)
            return Listing(tuple(map(str, range(first, end, step)))) if step else None
        case _:
            tracked = names_of_tracked(words, directory)
            return Listing(tracked, is_nul_separated="-z" in words) if tracked is not None else None


def _by_find(words: Sequence[str], directory: str) -> Listing | None:
    if not _PRINTS_MORE.isdisjoint(words) or {"-print", "-print0"} <= set(words):
        return None
    only_files = finds_only_files(words)
    pattern = next((words[at + 1] for at in range(len(words) - 1) if words[at] == "-name"), None)
    is_narrow = finds_all_at_once(words) and pattern is not None and bool(_SIMPLE_NAME.match(pattern))
    fits = re.compile(pattern.replace(".", r"\.").replace("*", ".*") + r"\Z") if is_narrow and pattern else None
    found: list[str] = []
    for root in find_roots(words):
        if not only_files and not os.path.isfile(os.path.join(directory, root)):
            found.append(root)
        below = _below(directory, root, only_files=only_files, with_hidden=True)
        if below is None:
            return None
        found.extend(below)
    if fits is not None:
        found = [path for path in found if fits.match(path.rstrip("/").rpartition("/")[2])]
    return Listing(tuple(found), is_nul_separated="-print0" in words)


def _by_search(name: str, words: Sequence[str], directory: str) -> Listing | None:
    options = _sorted(words)
    if options is None or "-" in options.operands or not options.has(*_LISTS):
        return None
    # For rg, `-r` is --replace, which prints another text for a match.
    if (name == "rg" and options.has("-r")) or not all(
        option in _LISTS or option in group("search_options") for option in options.given
    ):
        return None
    has_pattern = options.has("-e", "--regexp", "--files")
    roots = options.operands if has_pattern else options.operands[1:]
    if not roots and name == "grep" and not options.has("-r", "--recursive"):
        return None  # It reads its input and prints "(standard input)".
    if not roots and os.path.lexists(os.path.join(directory, "<stdin>")):
        return None  # rg prints "<stdin>" for its input, which would then name a file.
    found: list[str] = []
    for root in roots or [""]:
        with_hidden = name == "grep" or options.has(*_HIDDEN)
        below = _below(directory, root, only_files=True, with_hidden=with_hidden)
        if below is None:
            return None
        found.extend(below)
    return Listing(tuple(found), is_nul_separated=options.has("-0", "-Z", "--null"))


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
    try:
        with os.scandir(places[0] if places else directory) as entries:
            found = [entry.name for entry in entries]
    except OSError:
        return None
    if options.has("-a", "--all"):
        return Listing((".", "..", *found))
    return Listing(tuple(name for name in found if options.has("-A", "--almost-all") or not name.startswith(".")))


def _sorted(words: Sequence[str]) -> Arguments | None:
    command = read_only_command(canonical_name(words[0]))
    return exact_arguments(command, words[1:]) if command else None


def _below(directory: str, root: str, *, only_files: bool, with_hidden: bool) -> list[str] | None:
    """Return every path below a root, spelled as a search would print it, or None if there are too many.

    Links are not followed.
    """
    start = os.path.join(directory, root)
    if root and not os.path.isdir(start):
        return [root]
    found: list[str] = []
    try:
        for entry in entries_below(start, MAX_ENTRIES, enters=lambda entry: with_hidden or entry.name[0] != "."):
            is_shown = with_hidden or not entry.name.startswith(".")
            if is_shown and (not only_files or entry.is_file(follow_symlinks=False)):
                found.append(f"{root}{entry.path[len(start) :]}")
            if len(found) > MAX_NAMES:
                return None
    except TooMuchError:
        return None
    return found


def may_expand_to_anything(words: Sequence[Word], nested: Sequence[Statement], bindings: Bindings) -> bool:
    """True if a word has an unquoted substitution or variable whose value may be a pattern for any directory."""
    open_names = [variable.name for word in words for variable in word.variables if not variable.quoted]
    opened = [word for word in words if any(word.value[at] == UNKNOWN for at in word.live)]
    if any(bindings.get(base_name(name)) == OPEN for name in open_names):
        return True
    if any(not word.text or _GIVES_PATTERN.search(word.text) for word in opened):
        return True
    is_open = bool(opened) or any(map(is_computed_name, open_names))
    return is_open and not all(_prints_no_pattern(statement) for statement in nested)


def _prints_no_pattern(statement: Statement) -> bool:
    """True if a statement is a command that prints no pattern, or a pipeline that ends with one."""
    statement = contents_of(statement)
    last = statement.parts[-1] if isinstance(statement, Pipeline) else statement
    values = [word.value for word in last.words] if isinstance(last, SimpleCommand) else []
    if not values or "-printf" in values or any("format" in value for value in values):
        return False
    printing = words_by_program("prints_no_pattern_with").get(values[0], frozenset())
    return values[0] in group("prints_no_pattern") or not printing.isdisjoint((*values[1:2], ":".join(values[1:3])))
