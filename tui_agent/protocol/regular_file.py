"""Safe reading of files of any origin: regular ones of limited size, as a pipe would block. Syncing of directories."""

import os
import re
import stat
import tomllib

from .async_file import open_for_reading
from .messages import JsonObject, nests_deeper

MAX_BYTES = 1024 * 1024
"""Default size limit in bytes."""

MAX_KEY_PARTS = 50
"""Maximum parts of a dotted key: the time to parse one grows with the square of their number."""

_KEY_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_KEY_PART}(?:[ \t]*+\.[ \t]*+{_KEY_PART}){{{MAX_KEY_PARTS}}}")


def read_regular_file(path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file; links are followed.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than `limit`.
    """
    opener = _Opener(path, limit)
    try:
        with open(path, "rb", opener=opener) as file:
            return opener.checked(file.read(opener.most))
    except ValueError as error:
        raise OSError(f"{path!r} is not a path: {error}") from error


async def read_regular_file_async(path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a file as `read_regular_file` does, without blocking the event loop.

    Raises:
        OSError: as for `read_regular_file`.
    """
    opener = _Opener(path, limit)
    try:
        async with open_for_reading(path, opener) as file:
            return opener.checked(await file.read(opener.most))
    except ValueError as error:
        raise OSError(f"{path!r} is not a path: {error}") from error


class _Opener:
    """Opener of one regular file, with its limit."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self.most = 0
        """Bytes to read, one more than the file may have; known once it is open."""

    def __call__(self, path: str, flags: int) -> int:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(f"{path} is not a regular file")
        except BaseException:
            os.close(descriptor)
            raise
        # `read` allocates all bytes it is asked for. Files may grow meanwhile, and those of /proc report size 0.
        self.most = min(self._limit, status.st_size + MAX_BYTES) + 1
        return descriptor

    def checked(self, content: bytes) -> bytes:
        """Return the content that was read.

        Raises:
            OSError: it is larger than the limit.
        """
        if len(content) > self._limit:
            raise OSError(f"{self._path} is larger than {self._limit:,} bytes")
        return content


def sync_directory(path: str | os.PathLike[str], dir_fd: int | None = None) -> None:
    """Make creations and renames in a directory durable. Blocks.

    Raises:
        OSError: it cannot be opened for reading, or not be synced.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=dir_fd)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def parse_toml(content: bytes) -> JsonObject:
    """Return the values of a TOML file.

    Raises:
        ValueError: the content is not valid TOML; the text has the reason and the line.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"cannot be read: {error} (at line {line})") from error
    if long_key := _LONG_KEY.search(text):
        line = text.count("\n", 0, long_key.start()) + 1
        raise ValueError(f"not valid TOML: a key has more than {MAX_KEY_PARTS} parts (at line {line})")
    try:
        values = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(f"not valid TOML: nested too deeply (at line {_deepest_line(text)})") from error
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"not valid TOML: {error}") from error
    except ValueError as error:
        # Python refuses to parse integers of more than some thousand digits.
        line = next((at for at, part in enumerate(text.split("\n"), 1) if _LONG_NUMBER.search(part)), 1)
        raise ValueError(f"not valid TOML: a number is too long (at line {line})") from error
    if nests_deeper(values):
        raise ValueError(f"not valid TOML: nested too deeply (at line {_deepest_line(text)})")
    return values


_LONG_NUMBER = re.compile(r"[\d_]{4000}")


def _deepest_line(text: str) -> int:
    """Return the line with the most opening brackets, for an error message; brackets in strings count, too."""
    counts = [line.count("[") + line.count("{") for line in text.split("\n")]
    return counts.index(max(counts)) + 1
