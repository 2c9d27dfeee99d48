"""Paths that a whole command reads and changes, for the scheduler; nothing unless the list is certainly complete.

Complete are scripts of a few programs, with options that the catalogue lists as `beside` or knows to only read.
Everything else runs alone: version control, package managers, interpreters, the network, the background.

The scheduler compares paths when it registers a call, and the call may run after others. That is right as long as no
call that has a list makes or removes a link, or removes or moves a directory: a path then leads to the same place, and
through the same directories, whatever runs before. So a command that might do that, or meets a file with several names,
has no list.
"""

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tui_agent.permissions.commands.argv import Arguments, arguments_of, is_known
from tui_agent.permissions.commands.catalogue import canonical_name, group, is_trusted_name, matching_row
from tui_agent.permissions.commands.invocation import Reads
from tui_agent.permissions.commands.text_scripts import edited_files
from tui_agent.permissions.commands.wrappers import Wrapping
from tui_agent.permissions.paths.path_judge import PathLookup
from tui_agent.permissions.paths.path_resolution import PathFacts, TooMuchError, entries_below, is_within
from tui_agent.permissions.shell.expansion import OPEN, Bindings, Expander, base_name, has_glob
from tui_agent.permissions.shell.syntax import PIPE, ForEach, Redirect, SimpleCommand, Word, names
from tui_agent.protocol.tool import Accesses

from .execution_contexts import Part
from .path_checks import ExecutionContext

MOST_ENTRIES = 1_000
"""Most entries in a directory that a command reads or changes as a whole."""

_REPLACERS = names("rm sed")
"""Programs that remove the files that they change, or replace them by others."""
_WRAPPERS = names("nice timeout")
"""Programs that run another one and touch nothing themselves."""
_PRINTERS = names("echo printf")
"""Programs to which every word is text."""
_BACKGROUND = re.compile(r"(?<![&<>|])&(?![&>])")
_SYSTEM = names("/proc /dev /sys /run")


class _UnknownError(Exception):
    """The list would not be complete."""


class AccessCollector:
    """Accesses of one script, collected command by command."""

    def __init__(self, path_lookup: PathLookup, expander: Expander, *, is_wanted: bool = True) -> None:
        self._lookup = path_lookup
        self._expander = expander
        self._zone = (path_lookup.workspace, os.path.realpath(tempfile.gettempdir())) if is_wanted else ()
        """Directories in which a command may change files beside others."""
        self._reads: set[str] = set()
        self._writes: set[str] = set()
        self._searches: set[str] = set()
        self._used: set[str] = set()
        """Variables on whose values the list depends."""
        self._computed: set[str] = set()
        """Variables whose values are not literal, and may be others when the command runs."""
        self._is_complete = is_wanted

    def give_up(self) -> None:
        """Record a part whose accesses are unknown."""
        self._is_complete = False

    def accesses(self) -> Accesses | None:
        """Return all paths; None if some are unknown."""
        if not self._is_complete or not self._used.isdisjoint(self._computed):
            return None
        return Accesses(_paths(self._reads), _paths(self._writes), _paths(self._searches))

    def add_loop(self, loop: ForEach) -> None:
        """Add a `for` loop; its values must be literal, because others may be different when it runs."""
        if loop.words is None or any(not word.is_fixed or has_glob(word) for word in loop.words):
            self.give_up()

    def add_command(self, part: Part) -> None:
        """Add a simple command."""
        if not self._is_complete:
            return
        try:
            command, wrapping = part.command, part.wrapping
            if not part.is_plain or (wrapping is not None and not _passes_on(command, wrapping)):
                raise _UnknownError
            for assignment in command.assignments:
                if not assignment.value.is_fixed:
                    self._computed.add(assignment.name)
            self._add_variables(command, part.task.step.bindings)
            for context in part.contexts:
                self._add_in(command, context, runs_other=wrapping is not None, is_reading=part.is_reading)
        except (_UnknownError, TooMuchError, OSError, ValueError):
            self.give_up()

    def _add_variables(self, command: SimpleCommand, bindings: Bindings) -> None:
        words = () if command.name in _PRINTERS else command.words
        for word in (*words, *(redirect.target for redirect in command.redirects)):
            for variable in word.variables:
                name = base_name(variable.name)
                # The judge takes a number or a revision for a value of its own, and an output for what it is now.
                if not name.isidentifier() or bindings.get(name, OPEN).kind in ("number", "revision"):
                    raise _UnknownError
                self._used.add(name)

    def _add_in(self, command: SimpleCommand, context: ExecutionContext, *, runs_other: bool, is_reading: bool) -> None:
        variables = {base_name(variable.name) for word in command.words for variable in word.variables}
        if any(context.bindings.get(name, OPEN).is_one_of_several for name in variables):
            raise _UnknownError
        if command.words:
            if not context.words or not is_known(context.words[0]) or not is_trusted_name(context.words[0]):
                raise _UnknownError
            name = canonical_name(context.words[0])
            self._find_program(name)
            if runs_other:
                pass
            elif is_reading and context.invocation.reads is not None and name in group("access_readers"):
                self._add_reads(name, context.words, context.invocation.reads, context.directory)
                self._add_listing(command, context)
            else:
                self._add_changes(name, command, context)
        for redirect in command.redirects:
            self._add_redirect(redirect, context)

    def _find_program(self, name: str) -> None:
        """Add the places where another command with a list may put a program of this name."""
        for directory in _program_directories(os.environ.get("PATH", os.defpath)):
            if self._is_in_zone(directory):
                self._reads.add(f"{directory}/{name}")

    # --- reads --------------------------------------------------------------------------------------------------------

    def _add_reads(self, name: str, words: Sequence[str], reads: Reads, directory: str | None) -> None:
        if reads.repository is not None or reads.follows_links or (name == "stat" and _has_letter(words, "f")):
            raise _UnknownError
        for path in reads.paths:
            if name == "cd":
                # The directory must be there, whatever is in it: the path through it to its parent is read.
                self._reads.add(f"{self._resolved(path, directory) or '/dev'}/..")
                continue
            found = self._read(path, directory)
            if found and reads.only_files and os.path.isdir(found):
                raise _UnknownError
            if found and name == "ls" and _has_letter(words, "a", "f"):
                self._reads.add(os.path.dirname(found))  # It also shows the times of `..`.
        for tree in (*reads.trees, *reads.listed):
            self._search(tree, directory)

    def _read(self, path: str, directory: str | None) -> str:
        found = self._resolved(path, directory)
        if found:
            _expect_one_name(found)
            self._reads.add(_first_missing(found))
        return found

    def _search(self, path: str, directory: str | None) -> None:
        found = self._resolved(path, directory)
        if found:
            _expect_plain_tree(found)
            self._searches.add(_first_missing(found))

    def _add_listing(self, command: SimpleCommand, context: ExecutionContext) -> bool:
        """Add the directories of the patterns in a command's words; return True if there are any."""
        name, *others = command.words
        patterns = [word for word in others if has_glob(word)]
        has_patterns = bool(patterns)
        is_varying = (has_patterns or context.listed.directories) and any(word.variables for word in command.words)
        if not context.listed.is_certain or is_varying or (has_glob(name) and name.value not in ("[", "[[")):
            raise _UnknownError
        if not all(self._lists_existing(word, context.directory) for word in patterns):
            raise _UnknownError
        if has_patterns:
            # Other names may match when the command runs, so the whole directory counts.
            self._reads.update(map(os.path.realpath, context.listed.directories))
        return has_patterns

    def _lists_existing(self, word: Word, directory: str | None) -> bool:
        """Return True if a pattern lists one directory that exists: another call may make any other."""
        above = word.value.rpartition("/")[0]
        is_fixed = all(at >= len(above) or word.value[at] not in "*?[" for at in word.live)
        return is_fixed and ("/" not in word.value or os.path.isdir(self._resolved(above or "/", directory)))

    # --- changes ------------------------------------------------------------------------------------------------------

    def _add_changes(self, name: str, command: SimpleCommand, context: ExecutionContext) -> None:
        before, self._writes = self._writes, set[str]()
        options, paths = _changed(name, context.words)
        is_whole = options.has("-r", "-a", "-R")
        if name == "cp":
            self._add_copies(paths[:-1], paths[-1], context.directory, is_whole=is_whole)
        else:
            add = self._replace if name in _REPLACERS else self._write
            for path in paths:
                add(path, context.directory, is_whole=is_whole)
        if any(has_glob(word) and word.value[0] in "*?[" for word in command.words):
            raise _UnknownError  # A file's name may be an option.
        if self._add_listing(command, context):
            for path in (*map(os.path.dirname, self._writes), *context.listed.directories):
                self._write(path, None)
        self._writes |= before

    def _add_copies(self, sources: Sequence[str], target: str, place: str | None, *, is_whole: bool) -> None:
        # What is a directory now is one when the command runs; anything else may have become one.
        is_into = os.path.isdir(self._resolved(target, place))
        if not is_into:
            self._replace(target, place)
        for source in sources:
            last = source.rstrip("/").rpartition("/")[2]
            if last in ("", ".", ".."):
                raise _UnknownError
            if is_whole:
                _expect_no_link(source, place)
                self._search(source, place)
            else:
                self._read(source, place)
            if is_into:
                self._replace(f"{target}/{last}", place, is_whole=is_whole)

    def _add_redirect(self, redirect: Redirect, context: ExecutionContext) -> None:
        operator, target = redirect.operator, redirect.target
        if redirect.names_descriptor:
            return
        if has_glob(target):
            raise _UnknownError
        for path in self._expander.expand(target, context.directory, context.bindings):
            if operator == "<":
                self._read(path, context.directory)
            elif operator in (">", ">>", ">|", "&>", "&>>"):
                self._write(path, context.directory)
            else:
                raise _UnknownError

    def _write(self, path: str, directory: str | None, *, is_whole: bool = False) -> None:
        facts = self._look(path, directory)
        if facts is not None:
            why = self._lookup.why_protected(facts) or (is_whole and self._lookup.why_tree_protected(facts))
            if why or not self._is_in_zone(facts.resolved):
                raise _UnknownError
            _expect_one_name(facts.resolved)
            if is_whole:
                _expect_plain_tree(facts.resolved)
            self._writes.add(_first_missing(facts.resolved))

    def _replace(self, path: str, directory: str | None, *, is_whole: bool = False) -> None:
        """Add a path that is removed, or replaced by another file."""
        _expect_no_link(path, directory)
        self._write(path, directory, is_whole=is_whole)

    # --- paths --------------------------------------------------------------------------------------------------------

    def _is_in_zone(self, path: str) -> bool:
        return any(is_within(path, top) for top in self._zone)

    def _resolved(self, path: str, directory: str | None) -> str:
        """Return where a path leads; empty for `/dev/null` and the command's own streams."""
        facts = self._look(path, directory)
        return "" if facts is None else facts.resolved

    def _look(self, path: str, directory: str | None) -> PathFacts | None:
        """Return the facts of a path; None for `/dev/null` and the command's own streams."""
        if not path or not is_known(path) or PIPE in path or path.startswith("~"):
            raise _UnknownError
        if directory is None and not path.startswith("/"):
            raise _UnknownError
        facts = self._lookup.look(path, directory)
        if facts.is_device:
            return None
        names_passed = _components(path)
        ups = next((at for at, name in enumerate(names_passed) if name != ".."), len(names_passed))
        # The way up from a directory needs that directory, which the result does not name.
        if ".." in names_passed[ups:] or facts.private or not facts.is_certain:
            raise _UnknownError
        if any(is_within(facts.resolved, system) for system in _SYSTEM):
            raise _UnknownError
        return facts


def runs_in_background(text: str) -> bool:
    """True if a script may run a part beside the others."""
    return _BACKGROUND.search(text) is not None


@lru_cache(maxsize=4)
def _program_directories(path: str) -> tuple[str, ...]:
    """Return the directories of PATH with links followed."""
    entries = path.split(os.pathsep)
    if not all(entry.startswith("/") for entry in entries):
        raise _UnknownError
    return tuple(map(os.path.realpath, entries))


def _first_missing(path: str) -> str:
    """Return the topmost missing directory above a resolved path, or the path itself.

    `mkdir -p` makes those directories. For other commands it matters whether another call makes them first.
    """
    while not os.path.isdir(above := os.path.dirname(path)):
        path = above
    return path


def _passes_on(command: SimpleCommand, wrapping: Wrapping) -> bool:
    """True if a command does nothing but run another one that is known."""
    is_known_wrapper = command.name in _WRAPPERS or (command.name == "time" and len(wrapping.own) < 2)
    return is_known_wrapper and wrapping.is_transparent and not wrapping.scripts and wrapping.hidden is None


def _changed(name: str, words: Sequence[str]) -> tuple[Arguments, Sequence[str]]:
    """Return the arguments of a command that changes only files that its words name, and these files."""
    row, found = matching_row(words), arguments_of(words)
    # Flags of one dash are listed one by one.
    flags = {flag for flag in found.flags if len(flag) == 2 or flag.startswith("--")}
    if row is None or not row[0].changes.beside or not flags <= row[0].changes.beside | row[0].harmless:
        raise _UnknownError
    paths = edited_files(words) if name == "sed" else found.operands
    if name == "chmod":
        paths = found.operands[1:]  # The first one is the mode.
    if paths is None or not found.operands or "-" in found.operands:
        raise _UnknownError
    return found, paths


def _has_letter(words: Iterable[str], *letters: str) -> bool:
    """True if a word of options may have one of these letters."""
    return any(word.startswith("-") and any(letter in word for letter in letters) for word in words)


def _components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")] or ["."]


def _paths(found: Iterable[str]) -> frozenset[Path]:
    return frozenset(map(Path, found))


def _expect_no_link(path: str, directory: str | None) -> None:
    if os.path.islink(os.path.join(directory or "/", path.rstrip("/"))):
        raise _UnknownError


def _expect_one_name(path: str) -> None:
    """Expect a resolved path that is missing, a directory, or a regular file without another name."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return
    is_single = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    if not is_single and not stat.S_ISDIR(status.st_mode):
        raise _UnknownError


def _expect_plain_tree(path: str) -> None:
    """Expect nothing but directories and such files at and below a resolved path."""
    _expect_one_name(path)
    if os.path.isdir(path):
        for entry in entries_below(path, MOST_ENTRIES, must_read=True):
            _expect_one_name(entry.path)
