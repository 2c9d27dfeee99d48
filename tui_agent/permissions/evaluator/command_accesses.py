"""Paths that a whole command reads and changes, for the scheduler; nothing unless the list is certainly complete.

Complete are scripts of literal words for a few programs, with options that the catalogue lists as `beside` or knows to
only read. Everything else runs alone: version control, package managers, interpreters, the network, the background.

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
from tui_agent.permissions.paths.protected_paths import TreeSearch
from tui_agent.permissions.shell.expansion import has_glob
from tui_agent.permissions.shell.syntax import PIPE, SimpleCommand, names
from tui_agent.protocol.tool import Accesses

from .case_state import ExecutionContext
from .execution_contexts import Part

MOST_ENTRIES = 1_000
"""Most entries in a directory that a command reads or changes as a whole."""

_REPLACERS = names("rm sed")
"""Programs that remove the files that they change, or replace them by others."""
_WRAPPERS = names("nice timeout")
"""Programs that run another one and touch nothing themselves."""
_PRINTERS = names("echo printf")
"""Programs to which every word is text."""
_BACKGROUND = re.compile(r"(?<![&<>|])&(?![&>])")
_BRACKETS = ("[", "[[")
"""Command names that look like the start of a pattern."""
_SYSTEM = names("/proc /dev /sys /run")


class _UnknownError(Exception):
    """The list would not be complete."""


def accesses_of(text: str, parts: Iterable[Part], path_lookup: PathLookup) -> Accesses | None:
    """Return all paths that the simple commands of a script read and change; None if some are not certain.

    Args:
        text: the script.
        parts: all its simple commands; a script with other parts has no list.
        path_lookup: looks up paths for the workspace.
    """
    if _BACKGROUND.search(text) is not None:
        return None
    found = _Accesses(path_lookup)
    try:
        for part in parts:
            found.add_command(part)
    except (_UnknownError, TooMuchError, OSError, ValueError):
        return None
    return Accesses(*(frozenset(map(Path, paths)) for paths in (found.reads, found.writes, found.searches)))


class _Accesses:
    """Accesses collected command by command. Methods raise `_UnknownError` if the list would not be complete."""

    def __init__(self, path_lookup: PathLookup) -> None:
        self._lookup = path_lookup
        self._zone = (path_lookup.workspace, os.path.realpath(tempfile.gettempdir()))
        """Directories in which a command may change files beside others."""
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.searches: set[str] = set()

    def add_command(self, part: Part) -> None:
        """Add a simple command."""
        command, wrapping = part.command, part.wrapping
        if not part.is_plain or (wrapping is not None and not _passes_on(command, wrapping)):
            raise _UnknownError
        # Other names may match a pattern when the command runs, and variables may have other values.
        targets = [redirect.target for redirect in command.redirects]
        names_paths = command.words[:1] if command.name in _PRINTERS else command.words
        if not all(word.is_fixed for word in (*names_paths, *targets)):
            raise _UnknownError
        if any(has_glob(word) for word in (*command.words, *targets) if word.value not in _BRACKETS):
            raise _UnknownError
        for context in part.contexts:
            self._add_in(command, context, runs_other=wrapping is not None, is_reading=part.is_reading)

    def _add_in(self, command: SimpleCommand, context: ExecutionContext, *, runs_other: bool, is_reading: bool) -> None:
        directory = context.directory
        if not context.listed.is_certain:
            raise _UnknownError
        if command.words:
            if not context.words or not is_trusted_name(context.words[0]):
                raise _UnknownError
            name = canonical_name(context.words[0])
            self._find_program(name)
            if runs_other:
                pass
            elif is_reading and context.invocation.reads is not None and name in group("access_readers"):
                self._add_reads(name, context.words, context.invocation.reads, directory)
            else:
                self._add_changes(name, context.words, directory)
        for redirect in command.redirects:
            if redirect.names_descriptor:
                continue
            if redirect.operator == "<":
                self._read(redirect.target.value, directory)
            elif redirect.operator in (">", ">>", ">|", "&>", "&>>"):
                self._write(redirect.target.value, directory)
            else:
                raise _UnknownError

    def _find_program(self, name: str) -> None:
        """Add the places where another command with a list may put a program of this name."""
        for directory in _program_directories(os.environ.get("PATH", os.defpath)):
            if self._is_in_zone(directory):
                self.reads.add(f"{directory}/{name}")

    # --- reads --------------------------------------------------------------------------------------------------------

    def _add_reads(self, name: str, words: Sequence[str], reads: Reads, directory: str | None) -> None:
        if reads.repository is not None or reads.follows_links or (name == "stat" and _has_letter(words, "f")):
            raise _UnknownError
        for path in reads.paths:
            if name == "cd":
                # The directory must be there, whatever is in it: the path through it to its parent is read.
                self.reads.add(f"{self._resolved(path, directory) or '/dev'}/..")
                continue
            found = self._read(path, directory)
            if found and reads.only_files and os.path.isdir(found):
                raise _UnknownError
            if found and name == "ls" and _has_letter(words, "a", "f"):
                self.reads.add(os.path.dirname(found))  # It also shows the times of `..`.
        for tree in (*reads.trees, *reads.listed):
            self._search(tree, directory)

    def _read(self, path: str, directory: str | None) -> str:
        found = self._resolved(path, directory)
        if found:
            _expect_one_name(found)
            self.reads.add(_first_missing(found))
        return found

    def _search(self, path: str, directory: str | None) -> None:
        found = self._resolved(path, directory)
        if found:
            _expect_plain_tree(found)
            self.searches.add(_first_missing(found))

    # --- changes ------------------------------------------------------------------------------------------------------

    def _add_changes(self, name: str, words: Sequence[str], directory: str | None) -> None:
        options, paths = _changed(name, words)
        is_whole = options.has("-r", "-a", "-R")
        if name == "cp":
            self._add_copies(paths[:-1], paths[-1], directory, is_whole=is_whole)
            return
        add = self._replace if name in _REPLACERS else self._write
        for path in paths:
            add(path, directory, is_whole=is_whole)

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

    def _write(self, path: str, directory: str | None, *, is_whole: bool = False) -> None:
        facts = self._look(path, directory)
        if facts is not None:
            why = self._lookup.why_protected(facts) or (
                is_whole and self._lookup.why_tree_protected(facts, TreeSearch())
            )
            if why or not self._is_in_zone(facts.resolved):
                raise _UnknownError
            _expect_one_name(facts.resolved)
            if is_whole:
                _expect_plain_tree(facts.resolved)
            self.writes.add(_first_missing(facts.resolved))

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
