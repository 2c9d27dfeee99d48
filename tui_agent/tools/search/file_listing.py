"""Listing of the files in a directory tree, without those that `.gitignore` excludes: by ripgrep, or by walking."""

import asyncio
import os
import stat
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_below, pinned_cwd, pinned_directory, scan_directory
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.text_format import counted

from .path_patterns import GIT_NAME, RULES_NAME, GlobPattern, IgnoreRules, SearchScope
from .search_engine import Ripgrep

LISTING_TIME = 10.0
"""Seconds a listing may take; after that, the files found so far are the result."""

_QUIET_TIME = 1.5
"""Seconds without output before ripgrep counts as stuck, for example on a named pipe called `.gitignore`."""
_LISTING_SIZE = 64 * 1024 * 1024
_SORTED_AT_ONCE = 10_000
_RIPGREP_RAN = (0, 1)
_RIPGREP_HAD_ERRORS = 2


@dataclass(frozen=True, slots=True)
class FileListing:
    """The regular files in a tree; symbolic links are neither followed nor listed."""

    names: tuple[str, ...]
    """Paths below the root, with `/`, sorted."""
    complete: bool
    """False if the listing ran out of time or memory."""
    has_errors: bool = False
    """True if a directory could not be listed."""


@dataclass(slots=True)
class BoundedBytes:
    """A sink that keeps everything up to a limit, then refuses more."""

    limit: int
    data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; return False once the limit is reached."""
        self.data += data[: self.limit - len(self.data)]
        return len(self.data) < self.limit


UNREADABLE_NOTE = "[some directories could not be read]"
"""Note on a listing with errors, if nothing is found."""


def without_denied(names: Sequence[str], is_denied: Callable[[str], bool]) -> tuple[list[str], list[str]]:
    """Return the names that no rule denies, and a list with a note on the missing ones, if there are any. Blocks."""
    kept = [name for name in names if not is_denied(name)]
    count = len(names) - len(kept)
    note = f"[{counted(count, 'file')} left out: a permission rule denies reading {'it' if count == 1 else 'them'}]"
    return kept, [note] if count else []


async def list_files(
    place: ResolvedPath, workspace: Path, ripgrep: Ripgrep | None, cancellation: CancellationToken
) -> FileListing:
    """List all files below a directory, without those that `.gitignore` excludes. If it excludes all of a directory
    other than the workspace, list them: a call that names such a directory means its files.

    Raises:
        ToolError: the directory was replaced since the call was judged.
        OperationCancelledError: the call was cancelled.
        OSError: ripgrep could not be started.
    """
    scope = await asyncio.to_thread(SearchScope.of, place, workspace)
    listing = await _list_scope(scope, ripgrep, cancellation)
    if listing.names or scope.rules is None or place.path == workspace:
        return listing
    return await _list_scope(replace(scope, rules=None), ripgrep, cancellation)


async def list_ignored(
    place: ResolvedPath,
    workspace: Path,
    ripgrep: Ripgrep | None,
    cancellation: CancellationToken,
    listed: FileListing | None = None,
) -> tuple[str, ...]:
    """List the files that `list_files` leaves out because `.gitignore` excludes them, as far as time permits.

    Args:
        place, workspace, ripgrep, cancellation: as for `list_files`.
        listed: its result, if it is known.

    Raises:
        ToolError, OperationCancelledError, OSError: as for `list_files`.
    """
    scope = await asyncio.to_thread(SearchScope.of, place, workspace)
    if scope.rules is None:
        return ()
    listed = listed or await list_files(place, workspace, ripgrep, cancellation)
    every = await _list_scope(replace(scope, rules=None), ripgrep, cancellation, listed)
    return (
        await asyncio.to_thread(_without, every.names, listed.names) if listed.complete and every is not listed else ()
    )


def _without(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    known = set(others)
    return tuple(name for name in names if name not in known)


async def _list_scope(
    scope: SearchScope, ripgrep: Ripgrep | None, cancellation: CancellationToken, part: FileListing | None = None
) -> FileListing:
    """List the files of a scope; return `part`, which lists some of them, if ripgrep finds no more than these."""
    listing = None
    if ripgrep is not None and not (scope.rules and scope.rules.files):
        listing = await _listed_by(ripgrep, scope, cancellation, part)
    if listing is None or await asyncio.to_thread(_has_other_rules, scope, listing):
        return await asyncio.to_thread(walk_files, scope, cancellation.is_set, LISTING_TIME)
    return listing


async def _listed_by(
    ripgrep: Ripgrep, scope: SearchScope, cancellation: CancellationToken, part: FileListing | None
) -> FileListing | None:
    """Return the listing of ripgrep; None if it does not work here."""
    command = ripgrep.list_command(ignore=scope.rules is not None)
    output, errors = BoundedBytes(_LISTING_SIZE), BoundedBytes(_LISTING_SIZE)
    with pinned_cwd(scope.place) as entered:
        spec = ProcessSpec(command, entered, child_environment(os.environ), LISTING_TIME)
        outcome, is_stuck = await _unless_stuck(spec, output, errors, cancellation)
    cancellation.raise_if_set()
    # Counting is far cheaper than decoding and sorting: the larger listing has no more names, so it is the same one.
    if part is not None and output.data.count(0) == len(part.names):
        return part
    names = await asyncio.to_thread(_names, output.data)
    if is_stuck or (not names and outcome.returncode not in _RIPGREP_RAN):
        return None
    return FileListing(names, outcome.ending == "exited", outcome.returncode == _RIPGREP_HAD_ERRORS)


def _names(output: bytearray) -> tuple[str, ...]:
    """Return the names in an output, each ended by NUL, sorted; a last one that is cut is left out."""
    names = os.fsdecode(bytes(output)).split("\0")[:-1]
    # Python sorts under its global lock: pieces let the event loop run, and the last call only merges them.
    for start in range(0, len(names), _SORTED_AT_ONCE):
        names[start : start + _SORTED_AT_ONCE] = sorted(names[start : start + _SORTED_AT_ONCE])
    return tuple(sorted(names))


def _has_other_rules(scope: SearchScope, listing: FileListing) -> bool:
    """Return True if a listed rule file is in no repository, so that ripgrep did not apply it."""
    if scope.rules is None or scope.in_repository:
        return False
    directories = (os.path.dirname(name) for name in listing.names if os.path.basename(name) == RULES_NAME)
    return not all(_is_in_repository(scope.place.path, directory) for directory in directories)


def _is_in_repository(start: Path, below: str) -> bool:
    """Return True if a repository begins in a directory below the start, or on the way to it."""
    while below:
        if os.path.lexists(start / below / GIT_NAME):
            return True
        below = os.path.dirname(below)
    return False


def walk_files(scope: SearchScope, stopped: Callable[[], bool], seconds: float, *, links: bool = False) -> FileListing:
    """List the files of a scope, sorted, without ripgrep; an incomplete listing after the time limit. Blocks.

    Args:
        scope: the directory, and the rules for files to leave out.
        stopped: checked before each directory; True cancels the listing.
        seconds: time limit.
        links: also list symbolic links.

    Raises:
        ToolError: the directory was replaced since the call was judged.
        OperationCancelledError: `stopped` returned True.
        OSError: the directory itself cannot be listed.
    """
    walk = _Walk(scope, time.monotonic() + seconds, links)
    with pinned_directory(scope.place.path, place=scope.place) as start:
        with scan_directory(start):
            pass  # A start that cannot be listed is an error; such a directory below it is skipped.
        while walk.waiting and not walk.is_late():
            if stopped():
                raise OperationCancelledError("the search was cancelled")
            walk.list_next(start)
    return FileListing(tuple(sorted(walk.names)), not walk.waiting, walk.has_errors)


@dataclass(slots=True)
class _Walk:
    """State of a walk. Each directory is opened from the start downwards, so that a symbolic link that replaces one
    meanwhile does not lead out of the tree."""

    scope: SearchScope
    deadline: float
    links: bool
    names: list[str] = field(default_factory=list[str])
    waiting: list[tuple[str, IgnoreRules | None]] = field(default_factory=list[tuple[str, IgnoreRules | None]])
    """Directories below the start, each with a slash at the end, and the rules from above them."""
    has_errors: bool = False
    """True if a directory could not be listed."""

    def __post_init__(self) -> None:
        self.waiting.append(("", self.scope.rules))

    def is_late(self) -> bool:
        """Return True if the time limit has passed."""
        return time.monotonic() > self.deadline

    @contextmanager
    def _errors_noted(self) -> Generator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError):
            pass  # It vanished, or a symbolic link replaced it.
        except OSError:
            self.has_errors = True

    def list_next(self, start: int) -> None:
        """List one waiting directory; if the time limit passes before its end, it waits on."""
        # The last one first, so that few directories wait however wide the tree is.
        below, rules = self.waiting.pop()
        directory = os.path.join(self.scope.place.path, below)
        with self._errors_noted(), pinned_below(start, below) as held, scan_directory(held) as entries:
            rules = rules and rules.inside(held, directory)
            for entry in entries:
                if self.is_late():
                    self.waiting.append((below, rules))
                    return
                is_directory = entry.is_dir(follow_symlinks=False)
                is_listed = entry.is_file(follow_symlinks=False) or (self.links and entry.is_symlink())
                if not is_directory and not is_listed:
                    continue
                if entry.name == GIT_NAME or (
                    rules and rules.leaves_out(directory + entry.name, is_directory=is_directory)
                ):
                    continue
                if is_directory:
                    self.waiting.append((f"{below}{entry.name}/", rules))
                else:
                    self.names.append(below + entry.name)


async def _unless_stuck(
    spec: ProcessSpec, output: BoundedBytes, errors: BoundedBytes, cancellation: CancellationToken
) -> tuple[ProcessOutcome, bool]:
    """Run a program, and end it if it writes nothing for too long; return its outcome, and True if it was ended so."""
    patience = cancellation.child()

    async def watch() -> None:
        received = -1
        while received != len(output.data):
            received = len(output.data)
            await asyncio.sleep(_QUIET_TIME)
        patience.cancel("no output")

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        try:
            outcome = await run_process(spec, output, errors, patience)
        finally:
            watching.cancel()
    return outcome, outcome.ending == "cancelled" and not cancellation.is_set()


_MISSING = (FileNotFoundError, NotADirectoryError)


async def list_matching(
    place: ResolvedPath,
    workspace: Path,
    ripgrep: Ripgrep | None,
    pattern: GlobPattern,
    cancellation: CancellationToken,
    *,
    regular: bool = False,
) -> FileListing:
    """List the files below a directory that match a pattern, and the path that is the pattern itself.

    That one may be of any kind, and ends in a slash if it is a directory; with `regular` only files count.

    Raises:
        ToolError, OperationCancelledError, OSError: as for `list_files`.
    """
    literal = await asyncio.to_thread(existing, place, pattern.choices, regular=regular)
    names, complete, has_errors = set(literal), True, False
    # A path that does not exist may look equal to one that does.
    for base in pattern.bases or (() if literal else pattern.folders):
        with suppress(*_MISSING if base else ()):
            listing = await list_files(_below(place, base), workspace, ripgrep, cancellation)
            complete, has_errors = complete and listing.complete, has_errors or listing.has_errors
            names.update(await asyncio.to_thread(_matching, base, listing.names, pattern))
    return FileListing(tuple(sorted(names)), complete, has_errors)


async def list_matching_ignored(
    place: ResolvedPath,
    workspace: Path,
    ripgrep: Ripgrep | None,
    pattern: GlobPattern,
    cancellation: CancellationToken,
) -> tuple[str, ...]:
    """List the files that match a pattern and that `list_matching` leaves out, because `.gitignore` excludes them."""
    names: set[str] = set()
    for base in pattern.bases:
        with suppress(*_MISSING if base else ()):
            ignored = await list_ignored(_below(place, base), workspace, ripgrep, cancellation)
            names.update(await asyncio.to_thread(_matching, base, ignored, pattern))
    return tuple(sorted(names))


def _below(place: ResolvedPath, base: str) -> ResolvedPath:
    return ResolvedPath(place.path / base, place.known) if base else place


def _matching(base: str, names: Sequence[str], pattern: GlobPattern) -> list[str]:
    start = f"{base}/" if base else ""
    return [name for below in names if pattern.matches(name := start + below)]


def existing(place: ResolvedPath, paths: Sequence[str], *, regular: bool = False) -> list[str]:
    """Return those of `paths` that exist, reached without a symbolic link; directories end in a slash. Blocks.

    Raises:
        ToolError, OSError: the directory itself was replaced, or became a symbolic link.
    """
    found: list[str] = []
    with pinned_directory(place.path, place=place) as start:
        for path in paths:
            directory, name = os.path.split(os.path.normpath(path))
            with suppress(OSError, ValueError), pinned_below(start, os.path.join(directory, "")) as held:
                mode = os.stat(name, dir_fd=held, follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) or not regular:
                    found.append(os.path.join(directory, name) + ("/" if stat.S_ISDIR(mode) else ""))
    return found
