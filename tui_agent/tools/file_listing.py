"""Lists the files of a directory tree that `.gitignore` does not leave out: with ripgrep, or by walking."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError

from .child_environment import child_environment
from .held_directory import Place, entered_directory
from .ignore_rules import GIT_NAME, IgnoreRules, SearchScope
from .process import ProcessOutcome, ProcessSpec, run_process
from .search_engine import Ripgrep

LISTING_TIME = 10.0
"""Seconds a listing may take; what was found until then is used."""

_QUIET_TIME = 1.5
"""Seconds without a name before ripgrep counts as stuck, as at a pipe that is called like a file of rules."""
_LISTING_SIZE = 64 * 1024 * 1024
_RIPGREP_RAN = (0, 1)


@dataclass(frozen=True, slots=True)
class FileListing:
    """The files found: regular ones, symbolic links are neither followed nor listed."""

    names: tuple[str, ...]
    """Paths below the root, with `/`, sorted."""
    complete: bool
    """Whether the time and the memory given were enough."""


@dataclass(slots=True)
class BoundedBytes:
    """A sink that keeps everything up to a limit, and then has enough."""

    limit: int
    data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> bool:
        """Takes the next bytes."""
        self.data += data[: self.limit - len(self.data)]
        return len(self.data) < self.limit


async def list_files(
    place: Place, workspace: Path, ripgrep: Ripgrep | None, cancellation: CancellationToken
) -> FileListing:
    """Lists all files below a directory.

    Raises:
        ToolError: something else stands there than was shown.
        OperationCancelledError: the call was cancelled.
        OSError: ripgrep could not be started.
    """
    scope = await asyncio.to_thread(SearchScope.of, place.path, workspace)
    rules_only_we_know = bool(scope.rules and scope.rules.files) and not scope.in_repository
    if ripgrep is None or rules_only_we_know:
        return await asyncio.to_thread(walk_files, scope, cancellation.is_set, LISTING_TIME)
    command = ripgrep.list_command(parents=scope.in_repository, ignore=scope.rules is not None)
    output, errors = BoundedBytes(_LISTING_SIZE), BoundedBytes(_LISTING_SIZE)
    with entered_directory(place) as entered:
        spec = ProcessSpec(command, entered, child_environment(os.environ), LISTING_TIME)
        outcome, is_stuck = await _unless_stuck(spec, output, errors, cancellation)
    cancellation.raise_if_set()
    if is_stuck:
        return await asyncio.to_thread(walk_files, scope, cancellation.is_set, LISTING_TIME)
    whole, _, _ = bytes(output.data).rpartition(b"\0")
    if not whole and outcome.returncode not in _RIPGREP_RAN:
        return await asyncio.to_thread(walk_files, scope, cancellation.is_set, LISTING_TIME)
    names = sorted(os.fsdecode(name) for name in whole.split(b"\0")) if whole else []
    return FileListing(tuple(names), outcome.ending == "exited")


def walk_files(scope: SearchScope, stopped: Callable[[], bool], seconds: float, *, links: bool = False) -> FileListing:
    """Lists the same files without ripgrep. Blocks.

    Args:
        scope: where, and what is left out.
        stopped: asked for each directory.
        seconds: how long it may take.
        links: also list symbolic links.

    Raises:
        OperationCancelledError: `stopped` said so.
    """
    deadline = time.monotonic() + seconds
    names: list[str] = []
    root = str(scope.root)
    waiting: list[tuple[str, str, IgnoreRules | None]] = [(root, "", scope.rules)]
    while waiting:
        if stopped():
            raise OperationCancelledError("the search was cancelled")
        if time.monotonic() > deadline:
            break
        directory, prefix, rules = waiting.pop()
        rules = rules and rules.inside(directory)
        for entry in _entries(directory):
            if time.monotonic() > deadline:
                return FileListing(tuple(sorted(names)), False)
            is_directory = entry.is_dir(follow_symlinks=False)
            is_listed = entry.is_file(follow_symlinks=False) or (links and entry.is_symlink())
            if not is_directory and not is_listed:
                continue
            if entry.name == GIT_NAME or (rules and rules.leaves_out(entry.path, is_directory=is_directory)):
                continue
            if is_directory:
                waiting.append((entry.path, f"{prefix}{entry.name}/", rules))
            else:
                names.append(prefix + entry.name)
    return FileListing(tuple(sorted(names)), not waiting)


async def _unless_stuck(
    spec: ProcessSpec, output: BoundedBytes, errors: BoundedBytes, cancellation: CancellationToken
) -> tuple[ProcessOutcome, bool]:
    """Runs a program, and ends it once it says nothing for too long; whether that was so."""
    patience = cancellation.child()

    async def watch() -> None:
        heard = -1
        while heard != len(output.data):
            heard = len(output.data)
            await asyncio.sleep(_QUIET_TIME)
        patience.cancel("it says nothing")

    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch())
        try:
            outcome = await run_process(spec, output, errors, patience)
        finally:
            watching.cancel()
    return outcome, outcome.ending == "cancelled" and not cancellation.is_set()


def _entries(directory: str) -> list["os.DirEntry[str]"]:
    """What a directory holds; nothing where it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
