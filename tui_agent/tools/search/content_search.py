"""Search of file contents in batches, up to a limit, and the files that it leaves out.

The same search always gives the same result in the same order.
"""

import asyncio
import codecs
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tui_agent.protocol.cancellation import CancellationToken
from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import (
    ResolvedPath,
    open_regular_file,
    open_regular_file_at,
    pinned_cwd,
    pinned_directory,
)
from tui_agent.tools.processes.child_environment import child_environment
from tui_agent.tools.processes.process import ProcessOutcome, ProcessSpec, run_process
from tui_agent.tools.text_format import counted, is_binary, is_utf_8, printable_name

from .file_listing import BoundedBytes
from .search_engine import PythonSearch, Ripgrep, SearchEngine, SearchMode, SearchRequest

LONGEST_LINE = 32 * 1024 * 1024
"""Longest line in bytes that is searched: engines keep a whole line in memory."""

_LONGEST_UTF_16 = 64 * 1024 * 1024
_LARGE_SECONDS = 3.0
"""Seconds for reading large files."""
_SECONDS = 0.3
"""Seconds for looking for a reason why a search found nothing: enough for 10,000 files."""
_SAMPLE = 8_192
_PIECE = 4 * 1024 * 1024
_NAMED = 3


@dataclass(slots=True)
class Unsearched:
    """Names of the files that were not searched."""

    ignored: Sequence[str] = ()
    binary: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    too_long: list[str] = field(default_factory=list[str])
    """Files with a line that is too long to be kept in memory."""
    foreign: list[str] = field(default_factory=list[str])
    """Files that are not UTF-8: they were searched, but only for text in ASCII."""

    def words(self) -> str:
        """Return all in one line; empty if there are none."""
        kinds = (
            (self.ignored, "file that .gitignore excludes", "files that .gitignore excludes"),
            (self.binary, "binary file", ""),
            (self.unreadable, "unreadable file", ""),
            (self.too_long, f"file with a line of over {LONGEST_LINE // 1024**2} MB", "files with too long lines"),
            (self.foreign, "file in another encoding than UTF-8", "files in other encodings than UTF-8"),
        )
        return ", ".join(f"{counted(len(names), *nouns)} ({_named(names)})" for names, *nouns in kinds if names)


class Sizes:
    """Finds the large files that cannot be searched, because they are binary or have too long lines."""

    def __init__(self, place: ResolvedPath, found: Unsearched, stopped: Callable[[], bool]) -> None:
        """
        Args:
            place: the directory searched.
            found: gets the names of these files.
            stopped: returns True if the search was cancelled.
        """
        self._place, self._found, self._stopped = place, found, stopped
        self._seconds = _LARGE_SECONDS

    def without_large(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the files that can be searched. Blocks."""
        prefix = os.path.join(self._place.path, "")
        left_out: set[str] = set()
        for name in names:
            try:
                if os.lstat(prefix + name).st_size > LONGEST_LINE and self._is_left_out(name):
                    left_out.add(name)
            except (OSError, ToolError):
                continue
        return [name for name in names if name not in left_out] if left_out else names

    def _is_left_out(self, name: str) -> bool:
        began = time.monotonic()
        deadline = began + self._seconds
        with open_regular_file(self._place.path / name, name, place=self._place) as (descriptor, status):
            sample = os.pread(descriptor, _SAMPLE, 0)
            if is_binary(sample):
                self._found.binary.append(name)
                return True
            is_too_long = _is_too_long(
                descriptor, status.st_size, sample, lambda: self._stopped() or time.monotonic() > deadline
            )
        # All large files share the time.
        self._seconds -= time.monotonic() - began
        if is_too_long:
            self._found.too_long.append(name)
        return is_too_long


def _is_too_long(descriptor: int, size: int, sample: bytes, stopped: Callable[[], bool]) -> bool:
    if sample.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and size > _LONGEST_UTF_16:
        return True
    buffer = bytearray(_PIECE)
    read = start = 0
    while count := os.preadv(descriptor, [buffer], read):
        first = buffer.find(b"\n", 0, count)
        if (read + first if first >= 0 else read + count) - start > LONGEST_LINE:
            return True
        if first >= 0:
            start = read + buffer.rfind(b"\n", 0, count) + 1
        read += count
        if stopped():
            return True
    return False


def find_unsearched(
    place: ResolvedPath, names: Sequence[str], stopped: Callable[[], bool], *, beyond_ascii: bool
) -> Unsearched:
    """Look into files for a reason why a search found nothing in them, for a limited time. Blocks.

    Args:
        place: the directory searched.
        names: paths of the files below it, sorted.
        stopped: returns True if the search was cancelled.
        beyond_ascii: True if the pattern has characters beyond ASCII, which only UTF-8 and UTF-16 contain as such.
    """
    found = Unsearched()
    deadline = time.monotonic() + _SECONDS
    # The names are sorted, so each directory is opened once.
    for directory, files in groupby(names, os.path.dirname):
        try:
            with pinned_directory(place.path / directory, place=place) as held:
                for name in files:
                    if stopped() or time.monotonic() > deadline:
                        return found
                    _sort_in(found, name, _sample(place, held, name), beyond_ascii=beyond_ascii)
        except FileNotFoundError:
            continue
        except (OSError, ToolError):
            found.unreadable.extend(files)
    return found


def _sample(place: ResolvedPath, held: int, name: str) -> bytes | None:
    """Return the beginning of a file in an open directory; None if it cannot be read."""
    try:
        with open_regular_file_at(held, os.path.basename(name), name) as (descriptor, status):
            place.refuse_other(place.path / name, status)
            return os.pread(descriptor, _SAMPLE, 0)
    except FileNotFoundError:
        return b""
    except (OSError, ToolError):
        return None


def _sort_in(found: Unsearched, name: str, sample: bytes | None, *, beyond_ascii: bool) -> None:
    if sample is None:
        found.unreadable.append(name)
    elif is_binary(sample):
        found.binary.append(name)
    elif beyond_ascii and not is_utf_8(sample):
        found.foreign.append(name)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(map(printable_name, names[:_NAMED])) + more


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
    """Search files below a directory, in the given order, for `SEARCH_TIME` seconds; binary files are left out.

    Without ripgrep, or for a pattern that it does not accept, Python searches.

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
    # A name that begins with a dash would be an option.
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
        # Asked for files with a match only: looking into all of them would cost as much as the search.
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
