"""Files that a pattern names: whatever exists literally, and what matches, also below an ignored directory it names."""

import asyncio
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.tools.pinned_directory import ResolvedPath, pinned_below, pinned_directory

from .file_listing import FileListing, list_files, list_ignored
from .glob_pattern import GlobPattern
from .search_engine import Ripgrep

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
    literal = await asyncio.to_thread(_existing, place, pattern.choices, regular=regular)
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


def _existing(place: ResolvedPath, paths: Sequence[str], *, regular: bool) -> list[str]:
    """Return those of `paths` that exist, reached without a symbolic link; directories with a slash at the end.

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
