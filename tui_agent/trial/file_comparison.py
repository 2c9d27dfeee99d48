"""Comparison of two files, without reading the holes of sparse ones."""

import errno
import os
import stat
from pathlib import Path

_BLOCK = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_same_file(
    one: str | Path, status: os.stat_result | None, other: str | Path, other_status: os.stat_result | None
) -> bool:
    """Return True if there are two files of one kind, and of equal content if it is a regular file or a link. Blocks.

    Raises:
        OSError: a link cannot be read.
    """
    if status is None or other_status is None or stat.S_IFMT(status.st_mode) != stat.S_IFMT(other_status.st_mode):
        return False
    if stat.S_ISLNK(status.st_mode):
        return os.readlink(one) == os.readlink(other)
    if not stat.S_ISREG(status.st_mode):
        return status.st_rdev == other_status.st_rdev
    if status.st_size != other_status.st_size:
        return False
    try:
        with open(os.open(one, _READ), "rb", 0) as first, open(os.open(other, _READ), "rb", 0) as second:
            return _is_same(first.fileno(), second.fileno(), os.fstat(first.fileno()).st_size)
    except OSError:  # Without permission to read it, its times must do.
        return status.st_mtime_ns == other_status.st_mtime_ns


def _is_same(first: int, second: int, size: int) -> bool:
    at = 0
    while at < size:
        if size > _BLOCK:
            at = min(next_data(first, at, size), next_data(second, at, size))
        block = os.pread(first, _BLOCK, at)
        if block != os.pread(second, _BLOCK, at):
            return False
        at += len(block) or size
    return True


def next_data(descriptor: int, at: int, size: int) -> int:
    """Return the place of the next byte of a file that is not in a hole; its size if there is none."""
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        return size if error.errno == errno.ENXIO else at
