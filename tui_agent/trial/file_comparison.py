"""Comparison of the contents of two files, without reading the holes of sparse ones."""

import errno
import os
from pathlib import Path

_BLOCK = 1024 * 1024
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_same_content(one: str | Path, other: str | Path) -> bool:
    """Return True if two regular files have equal content. Links are not followed. Blocks.

    Raises:
        OSError: one cannot be read.
    """
    first = os.open(one, _READ)
    try:
        second = os.open(other, _READ)
        try:
            size = os.fstat(first).st_size
            return size == os.fstat(second).st_size and _is_same(first, second, size)
        finally:
            os.close(second)
    finally:
        os.close(first)


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
