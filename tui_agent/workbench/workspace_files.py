"""The files of the workspace for completion: a listing that is kept for a moment, and the names that match a text."""

import asyncio
import heapq
import re
import time
from collections.abc import Sequence
from pathlib import Path

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.search.file_listing import list_files
from tui_agent.tools.search.search_engine import find_ripgrep

MAX_FOUND = 50
"""Names that one query returns."""
LISTING_AGE = 5.0
"""Seconds after which the files are listed again."""

_CHECK_INTERVAL = 1_000
"""Names between two checks for cancellation."""


class WorkspaceFiles:
    """Finds files of a workspace by a part of their path; files that `.gitignore` excludes are left out."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._names: tuple[str, ...] = ()
        self._listed_at = float("-inf")

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the paths below the root that match a text, the best first; none if the root cannot be listed.

        A query that is cancelled stops its search.
        """
        token = CancellationToken()
        try:
            if time.monotonic() - self._listed_at > LISTING_AGE:
                place = ResolvedPath(await asyncio.to_thread(self._root.resolve))
                listing = await list_files(place, place.path, find_ripgrep(place.path), token)
                self._names = await asyncio.to_thread(with_directories, listing.names)
                self._listed_at = time.monotonic()
            return await asyncio.to_thread(best_matches, self._names, text, token)
        except (ToolError, OSError, OperationCancelledError):
            return ()
        finally:
            token.cancel("the search is over")


def with_directories(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of files with those of their directories, which end in a slash."""
    directories: set[str] = set()
    for name in names:
        while (name := name.rpartition("/")[0]) and f"{name}/" not in directories:
            directories.add(f"{name}/")
    return (*sorted(directories), *names)


def best_matches(names: Sequence[str], text: str, cancellation: CancellationToken) -> tuple[str, ...]:
    """Return the names that contain the letters of a text in order, the best first, at most `MAX_FOUND`. Blocks.

    Raises:
        OperationCancelledError: the search was cancelled.
    """
    wanted = text.casefold()
    # Without backtracking, so that no text takes long.
    pattern = re.compile("".join(f"[^{re.escape(letter)}]*+{re.escape(letter)}" for letter in text), re.IGNORECASE)
    found: list[tuple[int, int, str]] = []
    for place, name in enumerate(names):
        if place % _CHECK_INTERVAL == 0:
            cancellation.raise_if_set()
        # Name by name: one search in all of them would keep the other threads waiting.
        if pattern.match(name) is not None:
            found.append((_distance(name.casefold(), wanted, pattern), len(name), name))
    return tuple(name for _, _, name in heapq.nsmallest(MAX_FOUND, found))


def _distance(name: str, wanted: str, pattern: re.Pattern[str]) -> int:
    """Return how far a path is from a text: the file name counts before the directories, whole parts before letters."""
    base = name.rstrip("/").rpartition("/")[2]
    checks = (
        wanted in (name, base, name.rstrip("/")),
        base.startswith(wanted),
        wanted in base,
        wanted in name,
        pattern.match(base) is not None,
    )
    return checks.index(True) if True in checks else len(checks)
