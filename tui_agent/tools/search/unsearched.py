"""Files that a search did not look into, and why, so that a search that finds nothing says what it left out."""

import codecs
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tui_agent.protocol.errors import ToolError
from tui_agent.tools.pinned_directory import ResolvedPath, open_regular_file, open_regular_file_at, pinned_directory
from tui_agent.tools.text_format import counted, is_binary, is_utf_8, printable_name

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
        names: paths of the files below it.
        stopped: returns True if the search was cancelled.
        beyond_ascii: True if the pattern has characters beyond ASCII, which only UTF-8 and UTF-16 contain as such.
    """
    found = Unsearched()
    deadline = time.monotonic() + _SECONDS
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
