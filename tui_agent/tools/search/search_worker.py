"""Program that searches files for a pattern if ripgrep is not installed. The engine runs it, but never imports it.

Matching a regular expression can take for ever, and Python holds its global lock meanwhile; a separate process can be
ended and blocks nothing. Arguments: a JSON object, then the files. The output has ripgrep's format with `--null`.
"""

import codecs
import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

_BINARY_SAMPLE = 8_192
_LONGEST_LINE = 32 * 1024 * 1024
"""Bytes kept of a line; files with longer ones are not searched at all, if they are found in time."""
_WHOLE_LIMIT = 64 * 1024 * 1024
_DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""Flags with which opening a named pipe does not block."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

Write = Callable[[bytes], object]


def main(arguments: Sequence[str], write: Write) -> int:
    """Search; return 0 if something was found, 1 if nothing was, 2 if the pattern is invalid or a file unreadable.

    Args:
        arguments: `{"pattern", "ignore_case", "mode", "limit"}` as JSON, then the files.
        write: receives the output.
    """
    options: dict[str, Any] = json.loads(arguments[0])
    try:
        pattern = re.compile(options["pattern"], re.IGNORECASE if options["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        sys.stderr.write(f"regex parse error: {error}\n")
        return 2
    found = is_partial = False
    for name in arguments[1:]:
        try:
            found = _search(name, pattern, options["mode"], options["limit"], write) or found
        except OSError as error:
            # Files may vanish, or be replaced, after they were listed.
            is_partial = is_partial or error.errno not in (None, errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    _release()
    return 2 if is_partial else 0 if found else 1


def _search(name: str, pattern: re.Pattern[str], mode: str, limit: int, write: Write) -> bool:
    """Search one file and write its matches; return True if there are any."""
    shown = name.encode("utf-8", "surrogateescape") + b"\0"
    count = 0
    for number, line in enumerate(_lines(name), start=1):
        match = pattern.search(line)
        if match is None:
            continue
        count += 1
        if mode == "files_with_matches":
            write(shown)
            return True
        if mode == "content":
            column = len(line[: match.start()].encode("utf-8", "surrogateescape")) + 1
            write(shown + f"{number}:{column}:\n".encode())
            if count == limit:
                return True
    if count and mode == "count":
        write(shown + f"{count}\n".encode())
    return count > 0


def _lines(name: str) -> Iterator[str]:
    """Yield the lines of a text file without line endings, long ones cut; of a binary file yield none."""
    with _opened(name) as file:
        sample = file.read(_BINARY_SAMPLE)
        file.seek(0)
        if sample.startswith(_UTF16):
            text = file.read(_WHOLE_LIMIT).decode("utf-16", "replace")
            lines = text.split("\n")
            yield from (line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1]))
        elif b"\0" not in sample:
            if sample.startswith(codecs.BOM_UTF8):
                file.seek(len(codecs.BOM_UTF8))
            while line := file.readline(_LONGEST_LINE):
                rest = line
                # The rest of a long line is read only to find its end.
                while rest and not rest.endswith(b"\n"):
                    rest = file.readline(_LONGEST_LINE)
                yield line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "surrogateescape")


_held: dict[str, int] = {}
"""Path, with a slash, and descriptor of the directory of the last file: files arrive sorted."""


def _opened(name: str) -> BinaryIO:
    """Open a regular file without following symbolic links: files may have been replaced since they were listed.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    last = name.rpartition("/")[2]
    directory = name.removesuffix(last)
    if directory not in _held:
        _release()
        _held[directory] = _hold(directory)
    descriptor = os.open(last, _FILE, dir_fd=_held[directory])
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(name)
    return open(descriptor, "rb")


def _release() -> None:
    while _held:
        os.close(_held.popitem()[1])


def _hold(directory: str) -> int:
    """Open a directory part by part; an empty path is the current one."""
    held = os.open("/" if directory.startswith("/") else ".", _DIRECTORY)
    for part in filter(None, directory.split("/")):
        try:
            deeper = os.open(part, _DIRECTORY, dir_fd=held)
        finally:
            os.close(held)
        held = deeper
    return held


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdout.buffer.write))
