"""Reads a file that others may have put there: nothing but a regular file of sound size, as a pipe would block."""

import os
import stat

MAX_BYTES = 1024 * 1024
"""Largest file in bytes that is read unless a caller says otherwise."""


def plain_content(path: str, limit: int = MAX_BYTES) -> bytes:
    """The whole content of a file; links are followed.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than `limit`.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OSError(f"{path} is larger than {limit:,} bytes")
    return content
