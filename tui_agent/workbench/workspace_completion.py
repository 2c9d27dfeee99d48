"""Completion of paths and symbols of the workspace.

Paths come from a listing that is kept for a moment, functions and classes from an index that another process builds,
file by file.
"""

import asyncio
import heapq
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import OperationCancelledError, ToolError
from tui_agent.protocol.regular_file import read_regular_file
from tui_agent.tools.pinned_directory import ResolvedPath
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.process import ProcessSpec, run_process
from tui_agent.tools.search import symbol_worker
from tui_agent.tools.search.file_listing import BoundedBytes, list_files
from tui_agent.tools.search.search_engine import find_ripgrep
from tui_agent.tools.search.tree_listing import GitFiles
from tui_agent.tools.text_format import find_format, is_binary

MAX_SHOWN = 2_000_000
"""Most bytes of a file that is shown."""
MAX_PATHS_FOUND = 50
"""Paths that one query returns."""
LISTING_AGE = 5.0
"""Seconds after which the files are listed again."""

_CHECK_INTERVAL = 1_000
"""Names between two checks for cancellation."""

MAX_SYMBOLS_FOUND = 20
"""Symbols that one query returns."""
MAX_FILES = 30_000
"""Source files that are read."""
MAX_SYMBOLS = 150_000
"""Symbols of the index."""
INDEX_AGE = 10.0
"""Seconds after which a query lets changed files be read again."""
LEAST_LETTERS = 2

_BUILD_TIME = 90.0
_OUTPUT_SIZE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceSymbol:
    """A function or class in a file of the workspace."""

    name: str
    kind: str
    """The word that declares it, such as `def` or `class`."""
    path: str
    first: int
    """Number of its first line, from 1."""
    last: int
    """Number of its last line."""


class WorkspaceFiles:
    """Finds files of a workspace by a part of their path; files that `.gitignore` excludes are left out."""

    def __init__(self, root: Path, folders: Callable[[], Sequence[Path]] = tuple) -> None:
        """
        Args:
            folders: returns the folders that were added to it, whose files are found by their absolute paths.
        """
        self._root = root
        self._folders = folders
        self._listings: dict[Path, tuple[float, tuple[str, ...]]] = {}
        """Time and names of the newest listing of each directory."""

    async def find(self, text: str) -> tuple[str, ...]:
        """Return the paths below the root that match a text, the best first, at most `MAX_PATHS_FOUND`.

        Empty if the root cannot be listed. Directories end in a slash.

        A text that begins like an added folder finds the folder, then what is in it, as absolute paths. A query that is
        cancelled stops its search.
        """
        token = CancellationToken()
        path = os.path.expanduser(text) if text.startswith("~/") else text
        try:
            for folder in self._folders():
                top = f"{folder}/"
                if path.startswith("/") and top.startswith(path):
                    return (top,)
                if path.startswith(top):
                    names = await self._listed(folder, token)
                    found = await asyncio.to_thread(best_matches, names, path.removeprefix(top), token)
                    return tuple(f"{top}{name}" for name in found)
            return await asyncio.to_thread(best_matches, await self._listed(self._root, token), text, token)
        except (ToolError, OSError, OperationCancelledError):
            return ()
        finally:
            token.cancel("the search is over")

    async def _listed(self, directory: Path, token: CancellationToken) -> tuple[str, ...]:
        """Return the names below a directory, as they were at most `LISTING_AGE` ago."""
        listed_at, names = self._listings.get(directory, (float("-inf"), ()))
        # A query comes with each key, and a listing of a large workspace takes seconds.
        if time.monotonic() - listed_at > LISTING_AGE:
            place = ResolvedPath(await asyncio.to_thread(directory.resolve))
            listing = await list_files(place, place.path, find_ripgrep(place.path), token)
            names = await asyncio.to_thread(with_directories, listing.names)
            self._listings[directory] = (time.monotonic(), names)
        return names

    def path(self, path: str) -> str:
        """Return the absolute path of a file that is named relative to the root."""
        return str(self._root / path)

    async def text(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            ToolError: it cannot be read, is larger than `MAX_SHOWN` bytes, or is binary.
        """
        try:
            content = await asyncio.to_thread(read_regular_file, str(self._root / path), MAX_SHOWN)
        except OSError as error:
            raise ToolError(f"{path} cannot be read: {error.strerror or error}.") from error
        if is_binary(content):
            raise ToolError(f"{path} is a binary file.")
        form = await find_format(content)
        return form.decode(content)


def with_directories(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of files with those of their directories, which end in a slash."""
    directories: set[str] = set()
    for name in names:
        while (name := name.rpartition("/")[0]) and f"{name}/" not in directories:
            directories.add(f"{name}/")
    return (*sorted(directories), *names)


def best_matches(names: Sequence[str], text: str, cancellation: CancellationToken) -> tuple[str, ...]:
    """Return the names that contain the letters of a text in order, the best first, at most `MAX_PATHS_FOUND`. Blocks.

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
    return tuple(name for _, _, name in heapq.nsmallest(MAX_PATHS_FOUND, found))


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


class WorkspaceSymbols:
    """An index of the symbols in the files that git tracks or would track; it begins with the first query."""

    def __init__(self, root: Path, *, is_trusted: bool) -> None:
        """
        Args:
            is_trusted: False if git may run there only behind walls.
        """
        self._root, self._is_trusted = root, is_trusted
        self._files: dict[str, tuple[int, int, tuple[SourceSymbol, ...]]] = {}
        self._symbols: tuple[SourceSymbol, ...] = ()
        self._wanted, self._built = asyncio.Event(), asyncio.Event()
        self._built_at = float("-inf")

    async def keep(self) -> None:
        """Build the index each time that `prepare` or a query asks for it, until cancelled. `find` waits for this."""
        while True:
            await self._wanted.wait()
            with suppress(OSError):
                await self._build()
            self._built_at = time.monotonic()
            self._wanted.clear()
            self._built.set()

    def prepare(self) -> None:
        """Ask for a new index if the present one is older than `INDEX_AGE` seconds; never waits."""
        if time.monotonic() - self._built_at > INDEX_AGE:
            self._wanted.set()

    async def find(self, text: str) -> tuple[SourceSymbol, ...]:
        """Return at most `MAX_SYMBOLS_FOUND` symbols whose names match a text, the best first.

        Empty for paths and single letters.

        The first query waits for the index, later ones get the present one while changed files are read.
        """
        self.prepare()
        # A single letter matches nearly every name.
        if len(text) < LEAST_LETTERS or not text.isidentifier():
            return ()
        await self._built.wait()
        token = CancellationToken()
        try:
            return await asyncio.to_thread(best_symbols, self._symbols, text, token)
        finally:
            token.cancel("the search is over")

    async def _build(self) -> None:
        """Read the files that are new or have changed since the last time."""
        names = await asyncio.to_thread(self._source_files)
        output = BoundedBytes(_OUTPUT_SIZE)
        with tempfile.TemporaryFile() as file:
            await asyncio.to_thread(self._write_known, names, file)
            # A process of its own: parsing thousands of files in a thread would hold the interpreter lock.
            argv = (sys.executable, "-I", "-S", "-B", "-W", "ignore", str(symbol_worker.__file__), str(file.fileno()))
            environment = child_environment(os.environ)
            spec = ProcessSpec(argv, self._root, environment, _BUILD_TIME, descriptors=(file.fileno(),))
            await run_process(spec, output, BoundedBytes(0), CancellationToken())
        await asyncio.to_thread(self._take, names, bytes(output.data))

    def _source_files(self) -> list[str]:
        listing = GitFiles(self._root, self._is_trusted).list(compared=False)
        names = listing.names if listing is not None else {}
        found = [name for name in names if os.path.splitext(name)[1] in symbol_worker.PATTERNS]
        # Files near the root first, if there are too many.
        return heapq.nsmallest(MAX_FILES, found, key=lambda name: (name.count("/"), name))

    def _write_known(self, names: Sequence[str], file: BinaryIO) -> None:
        for name in names:
            seen_time, seen_size, _ = self._files.get(name, (0, -1, ()))
            file.write(f"{json.dumps([name, seen_time, seen_size])}\n".encode())
        file.seek(0)

    def _take(self, names: Sequence[str], output: bytes) -> None:
        """Take over what the program found; an output that was cut has its last line left out."""
        files = {name: self._files[name] for name in names if name in self._files}
        for line in output.split(b"\n")[:-1]:
            name, seen_time, seen_size, symbols = json.loads(line)
            found = tuple(SourceSymbol(one, kind, name, first, last) for one, kind, first, last in symbols)
            files[name] = (seen_time, seen_size, found)
        self._files = files
        symbols = [symbol for _, _, found in files.values() for symbol in found]
        self._symbols = tuple(symbols[:MAX_SYMBOLS])


def best_symbols(
    symbols: Sequence[SourceSymbol], text: str, cancellation: CancellationToken
) -> tuple[SourceSymbol, ...]:
    """Return at most `MAX_SYMBOLS_FOUND` symbols whose names contain a text's letters in order, best first. Blocks.

    Raises:
        OperationCancelledError: the search was cancelled.
    """
    wanted = text.casefold()
    pattern = re.compile("".join(f"[^{re.escape(letter)}]*+{re.escape(letter)}" for letter in text), re.IGNORECASE)
    found: list[tuple[int, int, str, int, SourceSymbol]] = []
    for place, symbol in enumerate(symbols):
        if place % _CHECK_INTERVAL == 0:
            cancellation.raise_if_set()
        if pattern.match(symbol.name) is not None:
            name = symbol.name.casefold()
            checks = (symbol.name == text, name == wanted, name.startswith(wanted), wanted in name, True)
            found.append((checks.index(True), len(name), symbol.path, place, symbol))
    return tuple(symbol for *_, symbol in heapq.nsmallest(MAX_SYMBOLS_FOUND, found))
