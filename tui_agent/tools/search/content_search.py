"""Search of file contents in batches, up to a limit; the same search always gives the same result in the same order."""

import asyncio
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_regular_file, pinned_cwd
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.text_format import is_binary

from .file_listing import BoundedBytes
from .search_engine import PythonSearch, Ripgrep, SearchEngine, SearchMode, SearchRequest
from .unsearched import Sizes, Unsearched

SEARCH_TIME = 15.0
"""Seconds a search may take; after that, the matches so far are the result."""

_FIRST_BATCH, _BATCH_FILES = 1_000, 10_000
"""Files of the first batch, and most of any. Each is twice as large as the last: a frequent word is found soon."""
_BATCH_SIZE = 400 * 1024
_OUTPUT_SIZE = 32 * 1024 * 1024
_ERRORS_SIZE = 4_000
_BINARY_SAMPLE = 8_192
_HAD_ERRORS = 2
"""Exit code of an engine that could not read a file."""

_RECORDS: dict[SearchMode, re.Pattern[bytes]] = {
    "content": re.compile(rb"([^\0]+)\0(\d+):(\d+):[^\n]*\n"),
    "files_with_matches": re.compile(rb"([^\0]+)\0"),
    "count": re.compile(rb"([^\0]+)\0(\d+)\r?\n"),
}


@dataclass(slots=True)
class FileHits:
    """The matches in one file."""

    name: str
    """Path below the root."""
    columns: dict[int, int] = field(default_factory=dict[int, int])
    """Number of each matching line → byte, from 1, at which its first match begins; only in mode `content`."""
    count: int = 0
    """Number of matching lines; only in mode `count`."""


@dataclass(slots=True)
class SearchResult:
    """The matches in all files, sorted by name."""

    hits: list[FileHits] = field(default_factory=list[FileHits])
    more: bool = False
    """True if there are more matches than the limit."""
    complete: bool = True
    """False if the search ran out of time or memory."""
    has_errors: bool = False
    """True if a file could not be read."""
    large: Unsearched = field(default_factory=Unsearched)
    """Large files that were left out."""


async def search_contents(
    place: ResolvedPath,
    files: Sequence[str],
    request: SearchRequest,
    ripgrep: Ripgrep | None,
    cancellation: CancellationToken,
) -> SearchResult:
    """Search files below a directory, in the given order; binary files are left out.

    Raises:
        ToolError: the pattern is invalid, or the directory was replaced since the call was judged.
        OperationCancelledError: the call was cancelled.
        OSError: the search could not be started.
    """
    result = SearchResult()
    engines: list[SearchEngine] = [engine for engine in (ripgrep, PythonSearch()) if engine is not None]
    deadline, sizes = time.monotonic() + SEARCH_TIME, Sizes(place, result.large, cancellation.is_set)
    for batch in _batches(files):
        searched = await asyncio.to_thread(sizes.without_large, batch)
        if not searched:
            # Without a file, ripgrep would search the whole directory, and keep a line of zeros in memory.
            continue
        seconds = max(deadline - time.monotonic(), 0.1)
        output, outcome = await _search_batch(place, searched, request, engines, cancellation, seconds)
        result.complete = outcome.ending == "exited"
        result.has_errors = result.has_errors or outcome.returncode == _HAD_ERRORS
        await asyncio.to_thread(_add, result, place, searched, output, request)
        if result.more or not result.complete:
            break
    return result


async def _search_batch(
    place: ResolvedPath,
    batch: Sequence[str],
    request: SearchRequest,
    engines: list[SearchEngine],
    cancellation: CancellationToken,
    seconds: float,
) -> tuple[bytes, ProcessOutcome]:
    """Return an engine's output for one batch, and how the engine ended.

    An engine that rejects the pattern is removed from `engines`: the engines differ in the syntax they accept.
    """
    output, errors = BoundedBytes(_OUTPUT_SIZE), BoundedBytes(_ERRORS_SIZE)
    command = engines[0].search_command(request, [f"./{name}" for name in batch])
    with pinned_cwd(place) as entered:
        spec = ProcessSpec(command, entered, child_environment(os.environ), seconds)
        outcome = await run_process(spec, output, errors, cancellation)
    cancellation.raise_if_set()
    words = errors.data.decode("utf-8", "replace").strip()
    if not output.data and words and outcome.ending == "exited":
        if len(engines) == 1:
            raise ToolError(f"invalid pattern: {words}")
        engines.pop(0)
        return await _search_batch(place, batch, request, engines, cancellation, seconds)
    return bytes(output.data), outcome


def _batches(files: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split the list into batches that fit on a command line."""
    start, size, most = 0, 0, _FIRST_BATCH
    for place, name in enumerate(files):
        size += len(os.fsencode(name)) + 3
        if size > _BATCH_SIZE or place - start >= most:
            yield files[start:place]
            start, size, most = place, len(os.fsencode(name)) + 3, min(2 * most, _BATCH_FILES)
    if start < len(files):
        yield files[start:]


def _hits(output: bytes, mode: SearchMode) -> dict[str, FileHits]:
    """Parse the output of an engine; an incomplete last record is left out."""
    hits: dict[str, FileHits] = {}
    for record in _RECORDS[mode].finditer(output):
        name = os.fsdecode(record.group(1)).removeprefix("./")
        hit = hits.setdefault(name, FileHits(name))
        if mode == "content":
            hit.columns[int(record.group(2))] = int(record.group(3))
        elif mode == "count":
            hit.count = int(record.group(2))
    return hits


def _is_text_file(place: ResolvedPath, name: str) -> bool:
    """Return True for a text file, False also if a symbolic link replaced a directory on the way to it."""
    try:
        with open_regular_file(place.path / name, name, place=place) as (descriptor, _):
            return not is_binary(os.pread(descriptor, _BINARY_SAMPLE, 0))
    except (OSError, ToolError):
        return False


def _add(
    result: SearchResult, place: ResolvedPath, batch: Sequence[str], output: bytes, request: SearchRequest
) -> None:
    """Add the matches of a batch up to the limit, which counts lines in mode `content`, else files. Blocks."""
    places = {name: place for place, name in enumerate(batch)}
    # An engine searches all files in a directory. A listed file that became one meanwhile brings unwanted matches.
    asked_for = (hit for hit in _hits(output, request.mode).values() if hit.name in places)
    room = request.limit - sum(len(hit.columns) or 1 for hit in result.hits)
    for hit in sorted(asked_for, key=lambda hit: places[hit.name]):
        if not _is_text_file(place, hit.name):
            continue
        if room <= 0:
            result.more = True
            return
        if len(hit.columns) > room:
            result.more = True
            hit.columns = dict(sorted(hit.columns.items())[:room])
        room -= len(hit.columns) or 1
        result.hits.append(hit)
